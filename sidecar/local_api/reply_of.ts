import type { Result } from '../../shared/model/result.ts';
import { errorReply, type LocalError } from './local_error.ts';

export const NOT_STORED = { 'cache-control': 'no-store' };

/** The reply to an outcome: its value, 204 without a value, or the refusal. */
export function replyOf(outcome: Result<object | void, LocalError>, status = 200): Response {
  if (!outcome.ok) return errorReply(outcome.error);
  if (outcome.value === undefined) return new Response(null, { status: 204, headers: NOT_STORED });
  return Response.json(outcome.value, { status, headers: NOT_STORED });
}
