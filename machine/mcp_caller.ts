import { parseJson } from '../shared/model/json.ts';

/** A client of the gateway, as authenticated by the front that accepted it. */
export interface Caller {
  /** Its launch session; null for the host. */
  readonly sessionId: string | null;
  /** Ids of the servers that it may use; null for all. */
  readonly servers: readonly string[] | null;
}

/** The host, which may use everything. */
export const HOST_CALLER: Caller = { sessionId: null, servers: null };

/**
 * Carries a {@link Caller} from the sidecar to the gateway's socket, as JSON in base64url. Only the sidecar can reach that
 * socket, and it removes this header from clients' requests.
 */
export const CALLER_HEADER = 'svc-mcp-caller';

/** Encodes {@link CALLER_HEADER}. */
export function callerHeader(caller: Caller): string {
  return Buffer.from(JSON.stringify({ session_id: caller.sessionId, servers: caller.servers })).toString('base64url');
}

/** Decodes {@link CALLER_HEADER}; null if it is invalid. */
export function readCallerHeader(text: string | null): Caller | null {
  if (text === null || !/^[\w-]{1,65536}$/.test(text)) return null;
  const value = parseJson(Buffer.from(text, 'base64url').toString('utf8'));
  if (typeof value !== 'object' || value === null) return null;
  const { session_id: sessionId, servers } = value as { readonly session_id?: unknown; readonly servers?: unknown };
  if (sessionId !== null && typeof sessionId !== 'string') return null;
  if (servers === null) return { sessionId, servers };
  return Array.isArray(servers) && servers.every((id) => typeof id === 'string') ? { sessionId, servers } : null;
}

/** Whether `caller` may use a server. */
export function mayUse(caller: Caller, serverId: string): boolean {
  return caller.servers === null || caller.servers.includes(serverId);
}
