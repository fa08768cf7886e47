import { SdkHttpError } from '@modelcontextprotocol/client';
import type { Downstream } from '../fronts/downstream.ts';
import { isUnauthorised, unreachableFailure } from './launcher.ts';
import type { SupervisedServer } from './supervised_server.ts';

/**
 * Ends the connection of a remote server that refuses the credentials (401), cannot be reached any more, or does not know the
 * session (404, or 400 for every request). True if nothing was done and a new session may help.
 */
export async function dropStale(
  supervised: Pick<SupervisedServer, 'current' | 'drop' | 'lose' | 'server'>,
  downstream: Downstream,
  error: unknown,
): Promise<boolean> {
  if (isUnauthorised(error)) {
    const message = 'it refuses the credentials (401); sign in again, or store another credential for it';
    if (supervised.current === downstream) await supervised.drop({ reason: 'authorisation_needed', message });
    return false;
  }
  const unreachable =
    supervised.server.mode === 'remote' ? unreachableFailure(supervised.server, error, downstream.mask) : null;
  if (unreachable !== null) {
    await supervised.lose(downstream, unreachable);
    return false;
  }
  if (!(await isLostSession(downstream, error))) return false;
  // Another request may have noticed it before, so that there is a new session already.
  if (supervised.current === downstream) await supervised.drop(null);
  return true;
}

/**
 * The specification's answer to an unknown session is 404 (revision 2025-11-25, session management). Several servers answer 400,
 * as they do to a malformed request: a ping tells the two apart, which no server refuses within a session that it knows.
 */
async function isLostSession(downstream: Downstream, error: unknown): Promise<boolean> {
  const status = statusOf(error);
  if (status !== 400) return status === 404;
  const { client } = downstream;
  if (client.getProtocolEra() !== 'legacy' || client.transport?.sessionId === undefined) return false;
  try {
    await client.ping({ timeout: PING_MS });
    return false;
  } catch (refusal) {
    return LOST.has(statusOf(refusal) ?? 0);
  }
}

const PING_MS = 10_000;
const LOST: ReadonlySet<number> = new Set([400, 404]);

function statusOf(error: unknown): number | null {
  return SdkHttpError.isInstance(error) ? error.data.status : null;
}
