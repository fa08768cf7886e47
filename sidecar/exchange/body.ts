import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import { BodyReader } from '../../shared/net/http/http1_framing.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import { ByteCollector } from './byte_collector.ts';

/** The share of the budget that one session may hold, so that it cannot starve the others. */
const SHARE_OF_A_SESSION = 0.5;

/** The bytes of request bodies in memory, over all exchanges. */
export class BodyBudget {
  readonly #mostBytes: number;
  readonly #heldBy = new Map<string, number>();
  #heldBytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** False if all sessions together, or this one, would exceed the limit. */
  reserve(bytes: number, sessionId: string | null = null): boolean {
    if (this.#heldBytes + bytes > this.#mostBytes) return false;
    if (sessionId !== null) {
      const held = (this.#heldBy.get(sessionId) ?? 0) + bytes;
      if (held > this.#mostBytes * SHARE_OF_A_SESSION) return false;
      this.#heldBy.set(sessionId, held);
    }
    this.#heldBytes += bytes;
    return true;
  }

  release(bytes: number, sessionId: string | null = null): void {
    this.#heldBytes -= bytes;
    if (sessionId === null) return;
    const held = (this.#heldBy.get(sessionId) ?? 0) - bytes;
    if (held > 0) this.#heldBy.set(sessionId, held);
    else this.#heldBy.delete(sessionId);
  }
}

/** A request body in memory. `release` returns its bytes to the budget, once. */
export interface BufferedBody {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  release(): void;
}

interface BodyLimits {
  readonly maxBytes: number;
  /** The fix to name when a body is too large. */
  readonly advice: string;
  readonly budget: BodyBudget;
  /** The session that the body counts against. */
  readonly sessionId: string | null;
}

/** How long the next byte of a body may take. A held body uses budget that other requests need. */
export const BODY_STALL_MS = 60_000;
const STALLED = `no byte of it arrived for ${BODY_STALL_MS / 1000} s; a body that waits for its reply (gRPC streams) needs \`body: stream\` in its binding`;

/** Whether a body's declared length is over the limit, so that the client need not send it. */
export function refuseDeclared(framing: BodyFraming, limits: Pick<BodyLimits, 'maxBytes' | 'advice'>): Refusal | null {
  return framing.kind === 'length' && framing.length > limits.maxBytes ? tooLargeRefusal(limits) : null;
}

/**
 * Reads a whole request body, because the request is re-issued after injection (specification section 8). Refuses with
 * `body_too_large`, or with `invalid_request` if its framing is broken, the client ends early, or no byte arrives for a
 * minute.
 */
export async function bufferBody(
  client: Connection,
  framing: BodyFraming,
  limits: BodyLimits,
): Promise<Result<BufferedBody, Refusal>> {
  const declared = refuseDeclared(framing, limits);
  if (declared !== null) return err(declared);
  const reservation = new Reservation(limits);
  const refused = await collect(client, new BodyReader(framing), reservation);
  if (refused !== null) {
    reservation.release();
    return err(refused);
  }
  const { bytes } = reservation;
  return ok({ chunks: reservation.collector.chunks(), bytes, release: () => reservation.release() });
}

async function collect(client: Connection, reader: BodyReader, reservation: Reservation): Promise<Refusal | null> {
  while (!reader.done) {
    const piece = client.take() ?? (await nextChunkOrEnd(client));
    if (piece === 'late') return brokenBodyRefusal(STALLED);
    if (piece === 'lost' || (piece === null && !reader.end().ok)) {
      return brokenBodyRefusal('the client ended before the end of the body');
    }
    if (piece === null) return null;
    const fed = reader.feed(piece);
    if (!fed.ok) return brokenBodyRefusal(fed.error.message);
    if (fed.value.used < piece.length) client.putBack(piece.subarray(fed.value.used));
    for (const data of fed.value.data) {
      const refused = reservation.add(data);
      if (refused !== null) return refused;
    }
  }
  return null;
}

async function nextChunkOrEnd(client: Connection): Promise<Buffer | null | 'late' | 'lost'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), BODY_STALL_MS);
  });
  try {
    return await Promise.race([client.nextChunk(), late]);
  } catch (error) {
    if (error instanceof ConnectionLost) return 'lost';
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** The bytes of one body, counted against the limit of one body and of all bodies together. */
class Reservation {
  readonly collector = new ByteCollector();
  bytes = 0;
  readonly #limits: BodyLimits;
  #released = false;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  add(data: Uint8Array): Refusal | null {
    const { maxBytes, budget, sessionId } = this.#limits;
    if (this.bytes + data.length > maxBytes) return tooLargeRefusal(this.#limits);
    if (!budget.reserve(data.length, sessionId)) return budgetSpent();
    this.bytes += data.length;
    this.collector.add(data);
    return null;
  }

  release(): void {
    if (!this.#released) this.#limits.budget.release(this.bytes, this.#limits.sessionId);
    this.#released = true;
  }
}

/** The refusal of a body with broken framing. */
export function brokenBodyRefusal(message: string): Refusal {
  return refusal('invalid_request', `request body: ${message}`);
}

function tooLargeRefusal({ maxBytes, advice }: Pick<BodyLimits, 'maxBytes' | 'advice'>): Refusal {
  const message = `a request that gets a credential may have a body of at most ${maxBytes} bytes; ${advice}`;
  return refusal('body_too_large', message);
}

function budgetSpent(): Refusal {
  const message =
    'the request bodies held at the moment reach SVC_MAX_BUFFERED_BODIES_BYTES; try again, or set `body: stream` on its host binding';
  return refusal('body_too_large', message);
}
