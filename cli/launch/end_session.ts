import { parseJson } from '../../shared/model/json.ts';
import { isTextList, readFields } from '../read_fields.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';

/** Ending a session waits until its events are delivered. */
const END_TIMEOUT_MS = 40_000;

/**
 * Ends a session; only warns if that fails. Gives the reasons of its events; null if they are not known, as from a sidecar that was
 * started after the session or does not know the question.
 */
export async function endSession(call: Call, sessionId: string): Promise<readonly string[] | null> {
  try {
    const sidecar = sidecarClient(call.context, call.options);
    const options = { query: { reasons: 'true' }, timeoutMs: END_TIMEOUT_MS };
    const reply = await sidecar.callEmpty('DELETE', `/v1/sandbox-proxy/sessions/${sessionId}`, options);
    return readFields<{ reasons: readonly string[] }>(parseJson(reply.text), { reasons: isTextList })?.reasons ?? null;
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    call.print.warn(`the session could not be ended: ${error.message}`);
    return null;
  }
}
