import { beforeEach, describe, expect, test } from 'vitest';
import { createHash } from 'node:crypto';
import type { AuditEvent } from '../model/audit_event.ts';
import { chainEvents, EMPTY_CHAIN, type HashedEvent } from './hash_chain.ts';
import { ChainWalk, type StatedChain, type WalkBreak } from './chain_walk.ts';

const sha256Hex = (text: string) => createHash('sha256').update(text).digest('hex');

const [A, B] = ['sdc_00000000000000000000000001', 'ent_00000000000000000000000001'];

let events: HashedEvent[];
let chains: StatedChain[];

const bareEvent = (index: number): AuditEvent => ({
  id: `evt_${index}`,
  type: 'sandbox.proxy.passthrough',
  time: '2026-01-01T00:00:00.000Z',
  sidecar_id: null,
  session_id: null,
  actor: null,
  data: {},
});

async function chainOf(writer: string, count: number) {
  const bare = Array.from({ length: count }, (_, index) => bareEvent(index));
  return chainEvents(bare, { writer, receivedAt: '2026-01-01T00:00:01.000Z', head: EMPTY_CHAIN }, sha256Hex);
}

beforeEach(async () => {
  const [a, b] = [await chainOf(A, 4), await chainOf(B, 3)];
  const [first] = b.chained;
  // The first event of the second chain was pruned.
  events = [...a.chained, ...b.chained.slice(1)];
  chains = [
    { writer: A, ...a.head, beginning: EMPTY_CHAIN },
    { writer: B, ...b.head, beginning: { sequence: 1, hash: first?.hash ?? '' } },
  ];
});

async function walk(list: readonly HashedEvent[] = events): Promise<WalkBreak | null> {
  const walked = new ChainWalk(chains, sha256Hex);
  for (const event of list) {
    const broken = walked.take(event);
    if (broken !== null) return broken;
  }
  return walked.finish();
}

const without = (index: number) => events.filter((_, at) => at !== index);
const changed = (index: number, change: object) =>
  events.map((event, at) => (at === index ? { ...event, ...change } : event));

describe('an export', () => {
  test('that has every event matches its statement, whatever the order of the chains', async () => {
    expect(await walk()).toBeNull();
    const mixed = [4, 0, 5, 1, 2, 3].flatMap((index) => events[index] ?? []);
    expect(await walk(mixed)).toBeNull();
  });

  test.each<readonly [string, () => readonly HashedEvent[], WalkBreak]>([
    ['lacks its first event', () => without(0), { writer: A, sequence: 1, reason: 'missing_event' }],
    ['lacks one inside', () => without(2), { writer: A, sequence: 3, reason: 'missing_event' }],
    ['lacks the last one', () => without(3), { writer: A, sequence: 4, reason: 'missing_event' }],
    ['lacks a whole chain', () => events.slice(0, 4), { writer: B, sequence: 2, reason: 'missing_event' }],
    [
      'has an event twice',
      () => [...events, ...events.slice(0, 1)],
      { writer: A, sequence: 5, reason: 'missing_event' },
    ],
    ['has a changed event', () => changed(1, { actor: 'other' }), { writer: A, sequence: 2, reason: 'wrong_hash' }],
    ['has a member that was added', () => changed(1, { note: 'x' }), { writer: A, sequence: 2, reason: 'wrong_hash' }],
    [
      'has an event with another hash before it',
      () => changed(1, { previous_hash: 'f'.repeat(64) }),
      { writer: A, sequence: 2, reason: 'wrong_previous_hash' },
    ],
    [
      'has an event after the head',
      () => [...events, ...changed(3, { sequence: 5 }).slice(3, 4)],
      { writer: A, sequence: 5, reason: 'wrong_head' },
    ],
    [
      'has an event of a chain that is not stated',
      () => changed(0, { writer: 'sdc_other' }),
      { writer: 'sdc_other', sequence: 1, reason: 'wrong_writers' },
    ],
  ])('that %s does not', async (_what, make, broken) => {
    expect(await walk(make())).toEqual(broken);
  });

  test('whose last event was replaced by a whole other one does not', async () => {
    const [, , third] = events;
    const head = { sequence: 3, hash: third?.hash ?? '' };
    const place = { writer: A, receivedAt: '2026-01-01T00:00:01.000Z', head };
    const { chained } = chainEvents([{ ...bareEvent(9), actor: 'other' }], place, sha256Hex);
    expect(await walk([...events.slice(0, 3), ...chained, ...events.slice(4)])).toEqual({
      writer: A,
      sequence: 4,
      reason: 'wrong_head',
    });
  });
});
