import { err, ok, type Result } from '../model/result.ts';
import type { Sha256Hex } from '../model/sha256_hex.ts';
import { ChainWalk, type StatedChain, type WalkBreak } from './chain_walk.ts';
import type { HashedEvent } from './hash_chain.ts';

/** The next lines of an exported log, and how many events were written up to their end. */
interface ExportedPart {
  readonly text: string;
  readonly events: number;
}

/** At most `limit` events of a chain after a number, oldest first. */
type ReadChain = (
  writer: string,
  page: { readonly after: number; readonly limit: number },
) => Promise<readonly HashedEvent[]>;

interface LogSource {
  readonly read: ReadChain;
  readonly eventsPerRead: number;
  readonly sha256Hex: Sha256Hex;
}

interface StatedLog {
  /** The first line: the reply of `GET /v1/audit-events/statement`. */
  readonly statement: object;
  /** What it signs. */
  readonly chains: readonly StatedChain[];
}

/**
 * An exported log that proves itself (decision 0094): the statement, then each chain's events, oldest first, one JSON document
 * per line. It is read page by page, because a log may be larger than memory. Events are compared with the statement before
 * they are given out; a break is the last item, so that an export is whole or fails.
 */
export async function* exportedLog(
  { statement, chains }: StatedLog,
  { read, eventsPerRead, sha256Hex }: LogSource,
): AsyncGenerator<Result<ExportedPart, WalkBreak>, void> {
  const walk = new ChainWalk(chains, sha256Hex);
  yield ok({ text: toLine('audit_statement', statement), events: 0 });
  for (const { writer, sequence, beginning } of chains) {
    let after = beginning.sequence;
    while (after < sequence) {
      const events = await read(writer, { after, limit: Math.min(eventsPerRead, sequence - after) });
      for (const event of events) {
        const broken = walk.take(event);
        if (broken === null) continue;
        yield err(broken);
        return;
      }
      yield ok({ text: events.map((event) => toLine('audit_event', event)).join(''), events: walk.events });
      // The walk says at its end that the rest is missing.
      after = events.at(-1)?.sequence ?? sequence;
    }
  }
  const broken = walk.finish();
  if (broken !== null) yield err(broken);
}

function toLine(kind: string, item: object): string {
  return `${JSON.stringify({ kind, ...item })}\n`;
}
