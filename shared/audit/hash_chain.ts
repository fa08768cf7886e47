import type { AuditEvent, ChainBreak } from '../model/audit_event.ts';
import { canonicalJson } from './canonical_json.ts';

/** The "hash before" of a chain's first event. */
export const CHAIN_START = '0'.repeat(64);

/** An event's position in its writer's chain. */
interface ChainPlace {
  readonly writer: string;
  readonly sequence: number;
  readonly previous_hash: string;
  readonly received_at: string;
}

/** An event with its position, before its own hash. */
type ChainedEvent = AuditEvent & ChainPlace;

/** An event with its hash, also of a type that this version does not know. */
export type HashedEvent = ChainPlace & { readonly hash: string };

/** The end of a chain. */
export interface ChainHead {
  readonly sequence: number;
  readonly hash: string;
}
export const EMPTY_CHAIN: ChainHead = { sequence: 0, hash: CHAIN_START };

/** The hash of an event: SHA-256, in hex, over its canonical JSON, including the hash before it. */
async function eventHash(event: ChainPlace): Promise<string> {
  const bytes = new TextEncoder().encode(canonicalJson(event));
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Appends events to their writer's chain. */
export async function chainEvents(
  events: readonly AuditEvent[],
  place: { readonly writer: string; readonly receivedAt: string; readonly head: ChainHead },
): Promise<{ readonly chained: (ChainedEvent & { readonly hash: string })[]; readonly head: ChainHead }> {
  const chained: (ChainedEvent & { readonly hash: string })[] = [];
  let head = place.head;
  for (const event of events) {
    const next: ChainedEvent = {
      ...event,
      writer: place.writer,
      sequence: head.sequence + 1,
      previous_hash: head.hash,
      received_at: place.receivedAt,
    };
    const hash = await eventHash(next);
    chained.push({ ...next, hash });
    head = { sequence: next.sequence, hash };
  }
  return { chained, head };
}

/** Why an event cannot follow `head`, or null. The event's own `hash` is the stored one. */
export async function chainBreak(head: ChainHead, event: HashedEvent): Promise<ChainBreak | null> {
  if (event.sequence !== head.sequence + 1) return 'missing_event';
  if (event.previous_hash !== head.hash) return 'wrong_previous_hash';
  const { hash, ...hashed } = event;
  return (await eventHash(hashed)) === hash ? null : 'wrong_hash';
}
