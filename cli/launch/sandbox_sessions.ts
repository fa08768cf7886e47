import { z } from 'zod';
import { SDK_ENDPOINTS } from '../../shared/net/sdk_endpoints.ts';
import type { SandboxSession, SandboxSessions, NewSandboxSession } from '../../sandbox/launch/launch_ports.ts';
import { sidecarClient } from '../clients.ts';
import { allowListFields, otherPortsFields } from './hosts/allowed_hosts.ts';
import { plainHttpFields } from './hosts/plain_http_option.ts';
import type { Call } from '../command_line.ts';
import { errorOfReply } from '../terminal/http_client.ts';
import { toLimitFields } from '../../shared/model/request_limits.ts';
import { scopesField } from './scope_option.ts';
import { policyVersion, useSecretsField } from './session_access.ts';

const BASE = '/v1/sandbox-proxy';
/** Creating a session waits for the newest policy; ending one waits until its events are delivered. */
const SESSION_TIMEOUT_MS = 40_000;
/** The sidecar may have to wait for a provider that mints the value: longer than it does, so that its reply is seen. */
export const UNSEAL_TIMEOUT_MS = 100_000;

/** Reply of `POST /v1/sandbox-proxy/sessions` with a sandbox. */
const sessionReply = z.object({
  session_id: z.string(),
  token: z.string().optional(),
  proxy_url: z.string(),
  ca_pem_path: z.string(),
  listener: z.enum(['namespace', 'gateway']),
  sentinels: z.array(z.object({ env: z.string(), value: z.string() })),
  /** An earlier sidecar has none, and a later one may have more. */
  sdk_endpoints: z.array(z.string()).default([]),
});

const unsealedReply = z.object({ value: z.string() });

/** The sessions of the sidecar on the state directory; fails with exit code 3 if none runs. */
export function sandboxSessions(call: Call): SandboxSessions {
  const sidecar = sidecarClient(call.context, call.options);
  const timeoutMs = SESSION_TIMEOUT_MS;
  return {
    create: async (wanted) => {
      const folder = call.context.workingDirectory;
      const body = { ...sessionBody(wanted, await policyVersion(call)), folder };
      return sandboxSession(await sidecar.call('POST', `${BASE}/sessions`, sessionReply, { body, timeoutMs }));
    },
    recordContainer: async (id, containerId) => {
      await sidecar.callEmpty('PUT', `${BASE}/sessions/${id}/container`, { body: { container_id: containerId } });
    },
    openListener: async (id, pid, relay) => {
      const body = { pid, ...(relay && { relay }) };
      await sidecar.callEmpty('POST', `${BASE}/sessions/${id}/listener`, { body });
    },
    unseal: async (sessionId, credential) => {
      const body = { session_id: sessionId, ...credential };
      const request = { body, timeoutMs: UNSEAL_TIMEOUT_MS };
      return (await sidecar.call('POST', `${BASE}/unsealed`, unsealedReply, request)).value;
    },
    recordDisabled: async (reason, mode, image) => {
      const body = { reason, mode, ...(image !== null && { image }) };
      await sidecar.callEmpty('POST', `${BASE}/disabled`, { body, timeoutMs });
    },
    end: async (id) => {
      const reply = await sidecar.send('DELETE', `${BASE}/sessions/${id}`, { timeoutMs });
      // The sidecar ends a session when its container ends.
      if (reply.status !== 204 && reply.status !== 404) throw errorOfReply('the sidecar', reply);
    },
  };
}

function sessionBody(wanted: NewSandboxSession, version: number | null): object {
  const {
    name,
    ttlSeconds,
    owner,
    image,
    imageId,
    runtime,
    detached,
    egress,
    allowList,
    plainHttp,
    otherPorts,
    unsealed,
    mcpServers,
    secrets = [],
    scopes,
    limits,
  } = wanted;
  return {
    ...(name !== null && { name }),
    ...(ttlSeconds !== null && { ttl_seconds: ttlSeconds }),
    ...(version !== null && { min_policy_version: version }),
    ...(owner !== null && { owner }),
    ...(allowList !== null && allowListFields(allowList)),
    ...plainHttpFields(plainHttp),
    ...otherPortsFields(otherPorts),
    ...useSecretsField(secrets),
    ...scopesField(scopes),
    ...toLimitFields(limits),
    ...(mcpServers.length > 0 && { mcp_servers: mcpServers }),
    sandbox: { mode: runtime.program, image, image_id: imageId, runtime, detached, egress, unsealed },
  };
}

function sandboxSession(reply: z.infer<typeof sessionReply>): SandboxSession {
  return {
    sessionId: reply.session_id,
    token: reply.token ?? null,
    proxyUrl: reply.proxy_url,
    listener: reply.listener,
    caPemPath: reply.ca_pem_path,
    sentinels: reply.sentinels,
    sdkEndpoints: SDK_ENDPOINTS.filter((sdk) => reply.sdk_endpoints.includes(sdk)),
  };
}
