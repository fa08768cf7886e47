import { z } from 'zod';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { errorCode } from '../control/state_file.ts';
import type { CreatedSession, Session } from '../session/sessions.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { localError, type LocalError } from './local_error.ts';

const DEFAULT_TTL_SECONDS = 24 * 3600;
const MAX_TTL_SECONDS = 30 * 24 * 3600;
const DEFAULT_POLICY_WAIT_MS = 10_000;
const DEFAULT_FLUSH_MS = 2_000;

/** `POST /v1/sandbox-proxy/sessions`. */
export const sessionInput = z.strictObject({
  name: z.string().trim().min(1).max(100).optional(),
  /** The session begins with a policy at least this new. */
  min_policy_version: z.number().int().min(0).optional(),
  ttl_seconds: z.number().int().min(1).max(MAX_TTL_SECONDS).default(DEFAULT_TTL_SECONDS),
});

/** Waits for the policy, then makes the session with its CA and bundle. */
export async function createSession(
  options: LocalApiOptions,
  input: z.output<typeof sessionInput>,
): Promise<Result<object, LocalError>> {
  const { policy, sessions, policyWaitMs = DEFAULT_POLICY_WAIT_MS } = options;
  const reached = await policy.waitForVersion(input.min_policy_version ?? 0, policyWaitMs);
  if (!reached.ok) return err(localError(reached.error.reason, reached.error.message));
  try {
    const created = await sessions.create({ name: input.name ?? null, ttlSeconds: input.ttl_seconds });
    return ok(createdReply(options, created));
  } catch (error) {
    const code = errorCode(error);
    const cause = code === '' ? '' : ` (${code})`;
    return err(
      localError('session_ca_unavailable', `The session's CA could not be made${cause}. Check the state directory.`),
    );
  }
}

/** Ends a session; its events are with the control plane when this resolves, if it can be reached. */
export async function endSession(options: LocalApiOptions, sessionId: string): Promise<Result<void, LocalError>> {
  const ended = await options.sessions.end(sessionId);
  if (!ended) return err(localError('not_found', `There is no session ${JSON.stringify(sessionId.slice(0, 64))}.`));
  await options.audit.flush(options.flushMs ?? DEFAULT_FLUSH_MS);
  return ok(undefined);
}

/** `GET /v1/sandbox-proxy/sessions`. */
export function listSessions(options: LocalApiOptions): object {
  return { items: options.sessions.list().map(sessionRecord), next_cursor: null };
}

/**
 * The environment variables that hold sentinels, for the agent to start with. A variable that several bindings name goes to
 * the first one, a personal one before the enterprise's.
 */
export function sentinelsOf(bindings: readonly HostBinding[]): { readonly env: string; readonly value: string }[] {
  const sentinels = new Map<string, string>();
  const personalFirst = bindings.toSorted((a, b) => rank(a) - rank(b));
  for (const { emit } of personalFirst) {
    if (emit.mechanism !== 'sentinel-swap' || emit.env === undefined || sentinels.has(emit.env)) continue;
    sentinels.set(emit.env, emit.sentinel);
  }
  return [...sentinels].map(([env, value]) => ({ env, value }));
}

function rank(binding: HostBinding): number {
  return binding.owner === 'personal' ? 0 : 1;
}

function createdReply(options: LocalApiOptions, { session, token }: CreatedSession): object {
  return {
    session_id: session.id,
    token,
    expires_at: new Date(session.expiresAt).toISOString(),
    proxy_url: proxyUrl(options.proxyOrigin(), session.id, token),
    ca_pem_path: session.caPemPath,
    ca_bundle_path: session.caBundlePath,
    sentinels: sentinelsOf(options.policy.bindings()),
  };
}

/** `http://<session_id>:<daemon_token>@<daemon_host>` (specification section 1, Sandbox launch). */
function proxyUrl(origin: string, sessionId: string, token: string): string {
  const url = new URL(origin);
  return `${url.protocol}//${sessionId}:${token}@${url.host}`;
}

function sessionRecord(session: Session): object {
  return {
    session_id: session.id,
    name: session.name,
    created_at: new Date(session.createdAt).toISOString(),
    expires_at: new Date(session.expiresAt).toISOString(),
    open_tunnels: session.openTunnels,
  };
}
