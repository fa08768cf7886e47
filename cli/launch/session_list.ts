import { z } from 'zod';
import { CHOSEN_BY } from '../../shared/model/account_choice.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';

export const SESSIONS_PATH = '/v1/sandbox-proxy/sessions';
/** The sidecar answers when the session's events are delivered and its container is removed. */
const END_TIMEOUT_MS = 40_000;

const sandbox = z.object({
  mode: z.string(),
  image: z.string(),
  image_id: z.string().optional(),
  container_id: z.string().nullish(),
  egress: z.string(),
  detached: z.boolean().optional(),
  runtime: z.object({ program: z.string(), endpoint: z.string() }).optional(),
  unsealed: z
    .array(z.object({ env: z.string(), reference: z.string(), host: z.string(), reason: z.string() }))
    .default([]),
});

/** A session as returned by the sidecar's local API; unknown fields are kept for `--json`. */
export const sessionRecord = z.looseObject({
  session_id: z.string(),
  name: z.string().nullable(),
  state: z.string().default('live'),
  created_at: z.string(),
  expires_at: z.string(),
  renews: z.boolean().default(false),
  open_tunnels: z.number(),
  owner_alive: z.boolean().nullish(),
  /** The process that the session depends on: its launcher. */
  owner: z.object({ pid: z.number().int().min(2), started: z.string().nullable() }).nullish(),
  mcp_servers: z.array(z.object({ id: z.string(), name: z.string().nullable() })).default([]),
  every_mcp_server: z.boolean().default(false),
  sandbox: sandbox.nullish(),
  /** The sandbox of `svc run --sandbox`, without a container engine. */
  host_sandbox: z.object({ mode: z.string(), egress: z.string() }).nullish(),
  /** Null: every host. */
  allowed_hosts: z.array(z.string()).nullish(),
  used_secrets: z
    .array(z.object({ reference: z.string(), by: z.enum(CHOSEN_BY), from: z.string().nullable() }))
    .default([]),
  /** How many of its requests may get a credential, and with how many bytes; null: any number. */
  requests_per_minute: z.number().nullish(),
  requests_per_day: z.number().nullish(),
  bytes_per_day: z.number().nullish(),
  masked_replies: z.array(z.object({ host: z.string(), count: z.number(), paused: z.boolean() })).default([]),
});
export type SessionRecord = z.infer<typeof sessionRecord>;

const sessionsPage = z.object({ items: z.array(sessionRecord) });

/** The live sessions and ended launches of the sidecar on the state directory. */
export async function listSessions(call: Call, signal?: AbortSignal): Promise<readonly SessionRecord[]> {
  const client = sidecarClient(call.context, call.options);
  return (await client.call('GET', SESSIONS_PATH, sessionsPage, { ...(signal !== undefined && { signal }) })).items;
}

/** Ends a session and removes its container. */
export async function endSession(call: Call, id: string, timeoutMs = END_TIMEOUT_MS): Promise<void> {
  await sidecarClient(call.context, call.options).callEmpty('DELETE', `${SESSIONS_PATH}/${id}`, { timeoutMs });
}
