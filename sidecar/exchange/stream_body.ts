import type { BodyTransform } from '../../shared/inject/outgoing_request.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import { BodyReader, encodeChunk, encodeLastChunk } from '../../shared/net/http/http1_framing.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import { brokenBodyRefusal } from './body.ts';
import type { ByteMeter } from './request_counts.ts';

/** How copying a request body ended: all of it was sent, one side disconnected, or the body itself was refused. */
export type BodyEnd = 'sent' | 'client_gone' | 'upstream_gone' | Refusal;

/** Why the body was refused, if copying it has ended with that. */
export async function refusalOfBody(requestBody: BodyEnd | Promise<BodyEnd>): Promise<Refusal | null> {
  const end = await Promise.race([requestBody, Promise.resolve(null)]);
  return typeof end === 'object' ? end : null;
}

/**
 * Copies a request body to the upstream as it arrives, with its framing; a transform can rewrite its payload. A body that is
 * cut off or has broken framing destroys the upstream connection: a partial body must never look complete. `meter` counts the payload
 * that the client sent.
 */
export async function streamBody(
  client: Connection,
  upstream: Connection,
  framing: BodyFraming,
  transform: BodyTransform | null,
  meter: ByteMeter | null = null,
): Promise<BodyEnd> {
  const reader = new BodyReader(framing, { collectTrailers: transform !== null });
  const copy = transform === null ? null : new TransformedCopy(transform, framing.kind === 'chunked');
  try {
    while (!reader.done) {
      if (upstream.closed) return 'upstream_gone';
      const piece = client.take() ?? (await client.nextChunk());
      const fed = piece === null ? reader.end() : reader.feed(piece);
      if (!fed.ok) return abandonUpstream(upstream, brokenBodyRefusal(fed.error.message));
      if (piece === null || fed.value === undefined) break;
      const { used, data } = fed.value;
      meter?.addAll(data);
      if (used < piece.length) client.putBack(piece.subarray(used));
      const out = copy === null ? ok([piece.subarray(0, used)]) : await copy.push(data);
      if (!out.ok) return abandonUpstream(upstream, out.error);
      if (!writeAll(upstream, out.value)) await upstream.waitForDrain();
    }
    const rest = (await copy?.end(reader.trailers)) ?? ok([]);
    if (!rest.ok) return abandonUpstream(upstream, rest.error);
    writeAll(upstream, rest.value);
  } catch (error) {
    upstream.destroy();
    if (error instanceof ConnectionLost) return 'client_gone';
    throw error;
  }
  return upstream.closed ? 'upstream_gone' : 'sent';
}

function abandonUpstream(upstream: Connection, why: Refusal): Refusal {
  upstream.destroy();
  return why;
}

function writeAll(upstream: Connection, pieces: readonly Uint8Array[]): boolean {
  let roomy = true;
  for (const piece of pieces) roomy = upstream.writeInTurn(piece);
  return roomy;
}

/** A body whose payload is rewritten in transit, framed as the client framed it. */
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
      out.push(...this.#frame(step.value));
    }
    return ok(out);
  }

  async end(trailers: string): Promise<Result<readonly Uint8Array[], Refusal>> {
    const step = await this.#transform.end();
    if (!step.ok) return step;
    const last = this.#chunked ? [encodeLastChunk(trailers)] : [];
    return ok([...this.#frame(step.value), ...last]);
  }

  #frame(pieces: readonly Uint8Array[]): readonly Uint8Array[] {
    return this.#chunked ? encodeChunk(pieces) : pieces;
  }
}
