import type { RunRefusal } from './run_ports.ts';
import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { maskMatches } from '../../shared/inject/scrub/patterns.ts';
import { replyFormatOf } from '../../shared/inject/scrub/reply_format.ts';
import { formatQuantity } from '../../shared/model/limit_settings.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { fieldValues } from '../../shared/net/http/http1_head.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import type { BodyBudget } from '../exchange/body.ts';
import type { ExchangePorts } from '../exchange/exchange_ports.ts';
import type { Reply } from '../exchange/outgoing.ts';
import { contentDecoders, decodeBody } from '../tunnel/content_decoder.ts';
import { BrokenReply, ReplyBody } from '../tunnel/reply_body.ts';

/** A masked body, and whether anything was masked. */
interface WholeBody {
  readonly body: Buffer;
  readonly masked: boolean;
}

/**
 * Reads a reply's whole body, decodes the codings it knows, and masks the credential. Refuses with
 * `upstream_response_too_large`, `upstream_invalid_reply`, or `upstream_unreachable` if the connection is lost.
 */
export async function readWholeBody(
  reply: Reply,
  patterns: ScrubPatterns,
  { budget, limits }: Pick<ExchangePorts, 'budget' | 'limits'>,
): Promise<Result<WholeBody, RunRefusal>> {
  const kept = new KeptBody(budget, limits.maxRunReplyBytes);
  try {
    for await (const piece of decodePayload(reply)) {
      const refused = kept.add(piece);
      if (refused !== null) return err(refused);
    }
    const body = kept.bytes();
    const matches = patterns.find(body, replyFormatOf(fieldValues(reply.head.fields, 'content-type')[0] ?? '').isText);
    maskMatches(body, matches);
    return ok({ body, masked: matches.length > 0 });
  } catch (error) {
    if (error instanceof BrokenReply) return invalid(error.message);
    if (!(error instanceof ConnectionLost)) throw error;
    const message = 'the connection to the upstream was lost before the end of its reply';
    return err({ reason: 'upstream_unreachable', message });
  } finally {
    kept.release();
  }
}

function decodePayload(reply: Reply): AsyncIterable<Uint8Array> {
  const body = new ReplyBody(reply.upstream, reply.framing);
  const decoders = reply.framing.kind === 'none' ? null : contentDecoders(reply.head);
  return decoders === null ? pieces(body) : decodeBody(body, decoders);
}

async function* pieces(body: ReplyBody): AsyncGenerator<Uint8Array> {
  for (let piece = await body.nextPiece(); piece !== 'done'; piece = await body.nextPiece()) yield* piece.data;
}

/** The bytes of one body, counted against the limit of one body and of all bodies together. */
class KeptBody {
  readonly #budget: BodyBudget;
  readonly #maxBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(budget: BodyBudget, maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  add(piece: Uint8Array): RunRefusal | null {
    if (this.#bytes + piece.length > this.#maxBytes) {
      return tooLargeRefusal(
        `the reply is larger than ${formatQuantity(this.#maxBytes, 'bytes')}: ask for less at a time`,
      );
    }
    if (!this.#budget.reserve(piece.length)) {
      return tooLargeRefusal('the bodies held at the moment reach SVC_MAX_BUFFERED_BODIES_BYTES; try again');
    }
    this.#bytes += piece.length;
    this.#chunks.push(piece);
    return null;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  release(): void {
    this.#budget.release(this.#bytes);
    this.#bytes = 0;
  }
}

function tooLargeRefusal(message: string): RunRefusal {
  return { reason: 'upstream_response_too_large', message };
}

function invalid(problem: string): Result<never, RunRefusal> {
  return err({ reason: 'upstream_invalid_reply', message: `the upstream's reply is not valid: ${problem}` });
}
