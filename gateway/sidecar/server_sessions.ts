import { z } from 'zod';
import { err, ok } from '../../shared/model/result.ts';
import { identify } from '../../machine/process_identity.ts';
import { engineNameOf } from '../../sandbox/engine/engine_address.ts';
import type { ServerSessions } from '../gateway_ports.ts';
import type { LocalApi } from './local_api.ts';

const BASE = '/v1/sandbox-proxy/sessions';
/** Creating a session waits for the policy, ending one for the container's removal and the session's events. */
const TIMEOUT_MS = 40_000;
const nothing = z.null();
const opened = z.unknown();

const created = z.object({
  session_id: z.string(),
  proxy_url: z.string(),
  ca_bundle_path: z.string(),
  sentinels: z.array(z.object({ env: z.string(), value: z.string() })),
});

/** The sessions of the sidecar that `localApi` calls, for servers of the program with this process id. */
export function serverSessions(localApi: LocalApi, pid: number): ServerSessions {
  return {
    async open({ id, name }, place) {
      const owner = identify(pid);
      const body = { name: `mcp ${name}`, mcp_server: id, ...placeField(place), ...(owner !== null && { owner }) };
      const reply = await localApi.call('POST', BASE, created, { body, timeoutMs: TIMEOUT_MS, isOnce: true });
      if (!reply.ok) return err(reply.error.message);
      const { session_id, proxy_url, ca_bundle_path, sentinels } = reply.value;
      return ok({ sessionId: session_id, proxyUrl: proxy_url, caBundlePath: ca_bundle_path, sentinels });
    },
    async recordContainer(sessionId, containerId) {
      const body = { container_id: containerId };
      const reply = await localApi.call('PUT', `${BASE}/${sessionId}/container`, nothing, { body });
      return reply.ok ? ok(undefined) : err(reply.error.message);
    },
    async openListener(sessionId, pidOfContainer) {
      const body = { pid: pidOfContainer };
      const reply = await localApi.call('POST', `${BASE}/${sessionId}/listener`, opened, { body });
      return reply.ok ? ok(undefined) : err(reply.error.message);
    },
    async end(sessionId) {
      // A session that cannot be ended now ends with this program.
      await localApi.send('DELETE', `${BASE}/${sessionId}`, { timeoutMs: TIMEOUT_MS });
    },
  };
}

function placeField(place: Parameters<ServerSessions['open']>[1]): object {
  if (place.kind === 'sandbox') return { host_sandbox: { mode: 'bubblewrap', egress: 'sealed', folder: place.folder } };
  const { image, imageId, endpoint } = place;
  const program = engineNameOf(endpoint);
  const runtime = { program, endpoint };
  return { sandbox: { mode: program, image, image_id: imageId, runtime, detached: false, egress: 'sealed' } };
}
