import { ProtocolError, SdkHttpError } from '@modelcontextprotocol/client';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import type { Downstream } from '../fronts/downstream.ts';
import { isUnauthorised, unreachableFailure } from './launcher.ts';
import type { SupervisedServer } from './supervised_server.ts';

/**
 * Ends the connection of a remote server that refuses the credentials (401), cannot be reached any more, not by a ping either, or
 * does not know the session (404, or 400 for every request). True if nothing was done and a new session may help.
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
    // One request may be refused alone, such as for its rate (503); the connection is everybody's.
    const isLost = supervised.current === downstream && !(await isAnswering(supervised.server, downstream));
    if (isLost) await supervised.lose(downstream, unreachable);
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

/** Whether the server answers a request without content; a refusal is an answer, unless the session is lost. */
async function isAnswering(server: McpServer, { client, mask }: Downstream): Promise<boolean> {
  const options = { timeout: PING_MS };
  try {
    // The later generation has no ping.
    await (client.getProtocolEra() === 'modern' ? client.discover(options) : client.ping(options));
    return true;
  } catch (refusal) {
    if (ProtocolError.isInstance(refusal)) return true;
    const status = statusOf(refusal);
    return status !== null && !LOST.has(status) && unreachableFailure(server, refusal, mask) === null;
  }
}

const PING_MS = 10_000;
const LOST: ReadonlySet<number> = new Set([400, 404]);

function statusOf(error: unknown): number | null {
  return SdkHttpError.isInstance(error) ? error.data.status : null;
}
