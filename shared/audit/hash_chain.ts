import type { AuditEvent, ChainBreak } from '../model/audit_event.ts';
import type { Sha256Hex } from '../model/sha256_hex.ts';
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

/** An event in its chain, with its hash. */
export type ChainedEvent = AuditEvent & ChainPlace & { readonly hash: string };

/** Events after those of a chain, and the chain's end then. */
interface Appended {
  readonly chained: readonly ChainedEvent[];
  /** The canonical JSON of each event's data. */
  readonly dataTexts: readonly string[];
  readonly head: ChainHead;
}

/** An event with its hash, also of a type that this version does not know. */
export type HashedEvent = ChainPlace & { readonly hash: string };

/** The end of a chain. */
export interface ChainHead {
  readonly sequence: number;
  readonly hash: string;
}
export const EMPTY_CHAIN: ChainHead = { sequence: 0, hash: CHAIN_START };

/**
 * Appends events to their writer's chain. The hash of an event is SHA-256, in hex, over its canonical JSON, including the
 * hash before it.
 */
export function chainEvents(
  events: readonly AuditEvent[],
  place: { readonly writer: string; readonly receivedAt: string; readonly head: ChainHead },
  sha256Hex: Sha256Hex,
): Appended {
  const { writer, receivedAt } = place;
  const chained: ChainedEvent[] = [];
  const dataTexts: string[] = [];
  let head = place.head;
  for (const { id, type, time, sidecar_id, session_id, actor, data } of events) {
    const at = { writer, sequence: head.sequence + 1, previous_hash: head.hash, received_at: receivedAt };
    const event = { id, type, time, sidecar_id, session_id, actor, data, ...at };
    const dataText = canonicalJson(data);
    const hash = sha256Hex(canonicalEvent(event, dataText));
    chained.push({ ...event, hash });
    dataTexts.push(dataText);
    head = { sequence: at.sequence, hash };
  }
  return { chained, dataTexts, head };
}

/** The canonical JSON of an event, whose data is already text: the members in the order of their keys. */
function canonicalEvent(event: AuditEvent & ChainPlace, dataText: string): string {
  const { id, type, time, sidecar_id, session_id, actor, writer, sequence, previous_hash, received_at } = event;
  return (
    `{"actor":${canonicalJson(actor)},"data":${dataText},"id":${canonicalJson(id)},"previous_hash":"${previous_hash}",` +
    `"received_at":${canonicalJson(received_at)},"sequence":${sequence},"session_id":${canonicalJson(session_id)},` +
    `"sidecar_id":${canonicalJson(sidecar_id)},"time":${canonicalJson(time)},"type":"${type}","writer":${canonicalJson(writer)}}`
  );
}

/** Why an event cannot follow `head`, or null. The event's own `hash` is the stored one. */
export function chainBreak(head: ChainHead, event: HashedEvent, sha256Hex: Sha256Hex): ChainBreak | null {
  if (event.sequence !== head.sequence + 1) return 'missing_event';
  if (event.previous_hash !== head.hash) return 'wrong_previous_hash';
  const { hash, ...hashed } = event;
  return sha256Hex(canonicalJson(hashed)) === hash ? null : 'wrong_hash';
}
