import type { OperationRequestParts } from '../../../shared/connect/operation_request.ts';
import type { SanitisedReply } from '../../../shared/connect/sanitised_reply.ts';
import { byteTextOf } from '../../../shared/inject/byte_text.ts';
import { SEARCH_KEY_WORDS } from '../../../shared/inject/scrub/block_search.ts';
import { compileScrubPatterns, maskMatches } from '../../../shared/inject/scrub/patterns.ts';
import { scrubText } from '../../../shared/inject/scrub/scrub_text.ts';
import { replyFormatOf } from '../../../shared/inject/scrub/reply_format.ts';
import type { ApiLimits } from '../../../shared/model/limits.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { Secret } from '../../../shared/model/secret.ts';
import type { Outbound, OutboundFailureReason } from '../../kernel/outbound.ts';
import type { Failure } from '../../../shared/model/failure.ts';

type CallFailureReason = OutboundFailureReason | 'credential_unavailable';

const MOST_TYPE_CHARACTERS = 200;

/**
 * Sends an operation's request with its credential as bearer token. The reply is sanitised and scrubbed of the
 * credential.
 */
export async function callUpstream(
  outbound: Outbound,
  parts: OperationRequestParts,
  credential: Secret,
  { maxRunReplyBytes: maxReplyBytes, runTimeoutSeconds }: ApiLimits,
): Promise<Result<SanitisedReply, Failure<CallFailureReason>>> {
  const value = credential.reveal();
  // A line break in it would start another header.
  if (value === '' || /\p{Cc}/u.test(value)) return err(unsendableFailure());
  const called = await outbound.call({
    method: parts.method,
    url: `https://${parts.host}${parts.path}${parts.query === null ? '' : `?${parts.query}`}`,
    headers: headersOf(parts, value),
    body: parts.body === null ? null : new TextEncoder().encode(parts.body),
    limits: { maxReplyBytes, timeoutMs: runTimeoutSeconds * 1000 },
  });
  if (!called.ok) return called;
  const { status, contentType, body } = called.value;
  const patterns = compileScrubPatterns([value], crypto.getRandomValues(new Uint32Array(SEARCH_KEY_WORDS)));
  const type = scrubText(contentType, patterns).slice(0, MOST_TYPE_CHARACTERS);
  const masked = new Uint8Array(body);
  maskMatches(masked, patterns.find(masked, replyFormatOf(contentType).isText));
  return ok({ upstreamStatus: status, contentType: type, body: masked });
}

function headersOf(parts: OperationRequestParts, credential: string): Record<string, string> {
  return {
    accept: '*/*',
    'user-agent': 'svc',
    ...(parts.body !== null && { 'content-type': 'application/json' }),
    authorization: `Bearer ${byteTextOf(credential)}`,
  };
}

function unsendableFailure(): Failure<CallFailureReason> {
  const message =
    'the stored credential is empty or contains a line break or another control character: store it again';
  return { reason: 'credential_unavailable', message };
}
