import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AuditEvent } from '../model/audit_event.ts';
import { CHAIN_START, chainBreak, chainEvents, EMPTY_CHAIN } from './hash_chain.ts';

const sha256Hex = (text: string) => createHash('sha256').update(text).digest('hex');

const event: AuditEvent = {
  id: 'evt_00000000000000000000000001',
  type: 'sandbox.proxy.passthrough',
  time: '2026-01-01T00:00:00.000Z',
  sidecar_id: null,
  session_id: 'ses_1',
  actor: 'session',
  data: { 'svc.proxy.upstream.host': 'a.test' },
};
const place = { writer: 'w', receivedAt: '2026-01-01T00:00:01.000Z', head: EMPTY_CHAIN };
const three = () => chainEvents([event, { ...event, id: '2' }, { ...event, id: '3' }], place, sha256Hex);

describe('the hash chain', () => {
  test('hashes the canonical JSON of the event with the hash before it', () => {
    const { chained } = chainEvents([event], place, sha256Hex);
    const text =
      '{"actor":"session","data":{"svc.proxy.upstream.host":"a.test"},"id":"evt_00000000000000000000000001",' +
      `"previous_hash":"${CHAIN_START}","received_at":"2026-01-01T00:00:01.000Z","sequence":1,"session_id":"ses_1",` +
      '"sidecar_id":null,"time":"2026-01-01T00:00:00.000Z","type":"sandbox.proxy.passthrough","writer":"w"}';
    expect(chained[0]?.hash).toBe(createHash('sha256').update(text).digest('hex'));
  });

  test('verifies without a break', () => {
    const { chained, head } = three();
    let end = EMPTY_CHAIN;
    for (const each of chained) {
      expect(chainBreak(end, each, sha256Hex)).toBeNull();
      end = each;
    }
    expect(head).toEqual({ sequence: 3, hash: end.hash });
  });

  test('continues from a given head', () => {
    const { head } = three();
    const { chained } = chainEvents([{ ...event, id: '4' }], { ...place, head }, sha256Hex);
    expect(chained[0]).toMatchObject({ sequence: 4, previous_hash: head.hash });
  });

  test.each([
    ['an altered event', { actor: 'someone else' }, 'wrong_hash'],
    ['an altered time of arrival', { received_at: '2026-01-01T00:00:02.000Z' }, 'wrong_hash'],
    ['an altered link', { previous_hash: CHAIN_START }, 'wrong_previous_hash'],
    ['a missing number', { sequence: 3 }, 'missing_event'],
  ])('breaks at %s', (_, change, reason) => {
    const { chained } = three();
    const [first, second] = chained;
    expect(chainBreak(first!, { ...second!, ...change }, sha256Hex)).toBe(reason);
  });
});
