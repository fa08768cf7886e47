import type { BodyTransform } from '../../shared/inject/outgoing_request.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http1_framing.ts';
import { BodyReader, chunk, lastChunk } from '../../shared/net/http1_framing.ts';
import type { Connection } from '../connection/connection.ts';
import { ConnectionLost } from '../connection/connection.ts';

/** Bytes of request bodies held at one time, over all exchanges. */
export class BodyBudget {
  readonly #mostBytes: number;
  #heldBytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** False when it would hold more than it may. */
  reserve(bytes: number): boolean {
    if (this.#heldBytes + bytes > this.#mostBytes) return false;
    this.#heldBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}

/** A request body in memory. `release` gives its bytes back to the budget, once. */
export interface BufferedBody {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  release(): void;
}

/**
 * Reads a whole request body, because the request is re-issued after injection (specification section 8). Refuses with
 * `body_too_large`, or `invalid_request` when its framing is broken.
 */
export async function bufferBody(
  client: Connection,
  framing: BodyFraming,
  maxBytes: number,
  budget: BodyBudget,
): Promise<Result<BufferedBody, Refusal>> {
  if (framing.kind === 'length' && framing.length > maxBytes) return tooLarge(maxBytes);
  const reader = new BodyReader(framing);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const refused = (answer: { ok: false; error: Refusal }): Result<BufferedBody, Refusal> => {
    budget.release(bytes);
    return answer;
  };
  while (!reader.done) {
    const piece = client.take() ?? (await client.next());
    if (piece === null) return refused(broken('the client finished before the body did'));
    const fed = reader.feed(piece);
    if (!fed.ok) return refused(broken(fed.error.message));
    if (fed.value.used < piece.length) client.unread(piece.subarray(fed.value.used));
    for (const data of fed.value.data) {
      if (bytes + data.length > maxBytes) return refused(tooLarge(maxBytes));
      if (!budget.reserve(data.length)) return refused(budgetSpent());
      bytes += data.length;
      chunks.push(data);
    }
  }
  let released = false;
  const release = (): void => {
    if (!released) budget.release(bytes);
    released = true;
  };
  return ok({ chunks, bytes, release });
}

function broken(message: string): { ok: false; error: Refusal } {
  return err(refusal('invalid_request', `request body: ${message}`));
}

function tooLarge(maxBytes: number): { ok: false; error: Refusal } {
  const message = `a request that gets a credential may have a body of ${maxBytes} bytes at most; raise SVC_MAX_CREDENTIALED_BODY_BYTES, or set \`body: stream\` on the binding`;
  return err(refusal('body_too_large', message));
}

function budgetSpent(): { ok: false; error: Refusal } {
  const message =
    'the request bodies that are held right now fill SVC_MAX_BUFFERED_BODIES_BYTES; try again, or set `body: stream` on the binding';
  return err(refusal('body_too_large', message));
}

/** How the copying of a request body ended: all of it is sent, one side is gone, or the body itself was refused. */
export type BodyEnd = 'sent' | 'client_gone' | 'upstream_gone' | Refusal;

/**
 * Copies a request body to the upstream as its bytes come, framing and all; a transform re-writes its payload on the way.
 * A body that breaks off, or whose framing is broken, destroys the upstream connection: a part of a body must never look
 * like a whole one.
 */
export async function streamBody(
  client: Connection,
  upstream: Connection,
  framing: BodyFraming,
  transform: BodyTransform | null,
): Promise<BodyEnd> {
  const reader = new BodyReader(framing, { collectTrailers: transform !== null });
  const copy = transform === null ? null : new TransformedCopy(transform, framing.kind === 'chunked');
  try {
    while (!reader.done) {
      const piece = client.take() ?? (await client.next());
      const fed = piece === null ? reader.end() : reader.feed(piece);
      if (!fed.ok) return abandoned(upstream, broken(fed.error.message).error);
      if (piece === null || fed.value === undefined) break;
      const { used, data } = fed.value;
      if (used < piece.length) client.unread(piece.subarray(used));
      const out = copy === null ? ok([piece.subarray(0, used)]) : await copy.push(data);
      if (!out.ok) return abandoned(upstream, out.error);
      if (!writeAll(upstream, out.value)) await upstream.drained();
    }
    const rest = (await copy?.end(reader.trailers)) ?? ok([]);
    if (!rest.ok) return abandoned(upstream, rest.error);
    writeAll(upstream, rest.value);
  } catch (error) {
    upstream.destroy();
    if (error instanceof ConnectionLost) return 'client_gone';
    throw error;
  }
  return upstream.closed ? 'upstream_gone' : 'sent';
}

function abandoned(upstream: Connection, why: Refusal): Refusal {
  upstream.destroy();
  return why;
}

function writeAll(upstream: Connection, pieces: readonly Uint8Array[]): boolean {
  let roomy = true;
  for (const piece of pieces) roomy = upstream.write(piece);
  return roomy;
}

/** A body whose payload is re-written as it passes, framed as the client framed it. */
class TransformedCopy {
  readonly #transform: BodyTransform;
  readonly #chunked: boolean;

  constructor(transform: BodyTransform, chunked: boolean) {
    this.#transform = transform;
    this.#chunked = chunked;
  }

  async push(data: readonly Uint8Array[]): Promise<Result<readonly Uint8Array[], Refusal>> {
    const out: Uint8Array[] = [];
    for (const piece of data) {
      const step = await this.#transform.push(piece);
      if (!step.ok) return step;
      out.push(...this.#framed(step.value));
    }
    return ok(out);
  }

  async end(trailers: string): Promise<Result<readonly Uint8Array[], Refusal>> {
    const step = await this.#transform.end();
    if (!step.ok) return step;
    const last = this.#chunked ? [lastChunk(trailers)] : [];
    return ok([...this.#framed(step.value), ...last]);
  }

  #framed(pieces: readonly Uint8Array[]): readonly Uint8Array[] {
    if (!this.#chunked) return pieces;
    return pieces.filter((piece) => piece.length > 0).flatMap((piece) => chunk(piece));
  }
}
