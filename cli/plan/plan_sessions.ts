import { z } from 'zod';
import { err, ok } from '../../shared/model/result.ts';
import { stepScopeReply } from '../../shared/wire/plan/plan_lock.ts';
import type { NewPlanSession, PlanSessions } from '../../sandbox/plan/plan_ports.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { errorOfReply } from '../terminal/http_client.ts';
import { sandboxSessions } from '../launch/sandbox_sessions.ts';
import { policyVersion } from '../launch/session_access.ts';

const BASE = '/v1/sandbox-proxy';
/** Creating a session waits for the newest policy. */
const SESSION_TIMEOUT_MS = 40_000;

/** Reply of `POST /v1/sandbox-proxy/sessions` with a plan: it contains no token. */
const planSessionReply = z.object({
  session_id: z.string(),
  token: z.never({ error: 'the sidecar sent a token for a plan session, which must not have one' }).optional(),
  proxy_url: z.string(),
  ca_pem_path: z.string(),
  listener: z.enum(['namespace', 'gateway']),
  sentinels: z.array(z.object({ env: z.string(), value: z.string() })),
});

/** The sidecar on the state directory, as plans use it; fails with exit code 3 if none runs. */
export function planSessions(call: Call): PlanSessions {
  const sidecar = sidecarClient(call.context, call.options);
  return {
    ...sandboxSessions(call),
    create: async (wanted) => {
      const body = sessionBody(wanted, await policyVersion(call));
      const timeoutMs = SESSION_TIMEOUT_MS;
      const reply = await sidecar.call('POST', `${BASE}/sessions`, planSessionReply, { body, timeoutMs });
      const { session_id: sessionId, proxy_url: proxyUrl, ca_pem_path: caPemPath, listener, sentinels } = reply;
      return { sessionId, token: null, proxyUrl, caPemPath, listener, sentinels };
    },
    openScope: async (sessionId, stepId) => {
      const body = { session_id: sessionId, step_id: stepId };
      try {
        const reply = await sidecar.call('POST', `${BASE}/step-scopes`, stepScopeReply, { body });
        const { scope_id: scopeId, token, hosts, effect, sentinels = null } = reply;
        return ok({ scopeId, token, hosts, effect, sentinels });
      } catch (error) {
        if (error instanceof CliError) return err(error.message);
        throw error;
      }
    },
    recordStart: async (sessionId, { stepId, scopeId, began }) => {
      const body = { session_id: sessionId, step_id: stepId, ...(scopeId !== null && { scope_id: scopeId }), began };
      await sidecar.callEmpty('POST', `${BASE}/step-starts`, { body });
    },
    closeScope: async (scopeId) => {
      const reply = await sidecar.send('DELETE', `${BASE}/step-scopes/${scopeId}`, {});
      // The scope expires by itself.
      if (reply.status !== 204 && reply.status !== 404) throw errorOfReply('the sidecar', reply);
    },
  };
}

function sessionBody(wanted: NewPlanSession, version: number | null): object {
  const { name, ttlSeconds, owner, image, runtime, egress, lock } = wanted;
  const { program, endpoint } = runtime;
  return {
    name,
    ttl_seconds: ttlSeconds,
    ...(version !== null && { min_policy_version: version }),
    ...(owner !== null && { owner }),
    plan: { lock },
    sandbox: {
      mode: program,
      image: image.name,
      image_id: image.id,
      runtime: { program, endpoint },
      detached: false,
      egress,
      unsealed: [],
    },
  };
}
