import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { AuditEvent } from '../model/audit_event.ts';
import { CHAIN_START, chainBreak, chainEvents, EMPTY_CHAIN } from './hash_chain.ts';

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
const three = () => chainEvents([event, { ...event, id: '2' }, { ...event, id: '3' }], place);

describe('the hash chain', () => {
  test('hashes the canonical JSON of the event with the hash before it', async () => {
    const { chained } = await chainEvents([event], place);
    const text =
      '{"actor":"session","data":{"svc.proxy.upstream.host":"a.test"},"id":"evt_00000000000000000000000001",' +
      `"previous_hash":"${CHAIN_START}","received_at":"2026-01-01T00:00:01.000Z","sequence":1,"session_id":"ses_1",` +
      '"sidecar_id":null,"time":"2026-01-01T00:00:00.000Z","type":"sandbox.proxy.passthrough","writer":"w"}';
    expect(chained[0]?.hash).toBe(createHash('sha256').update(text).digest('hex'));
  });

  test('verifies without a break', async () => {
    const { chained, head } = await three();
    let end = EMPTY_CHAIN;
    for (const each of chained) {
      expect(await chainBreak(end, each)).toBeNull();
      end = each;
    }
    expect(head).toEqual({ sequence: 3, hash: end.hash });
  });

  test('continues from a given head', async () => {
    const { head } = await three();
    const { chained } = await chainEvents([{ ...event, id: '4' }], { ...place, head });
    expect(chained[0]).toMatchObject({ sequence: 4, previous_hash: head.hash });
  });

  test.each([
    ['an altered event', { actor: 'someone else' }, 'wrong_hash'],
    ['an altered time of arrival', { received_at: '2026-01-01T00:00:02.000Z' }, 'wrong_hash'],
    ['an altered link', { previous_hash: CHAIN_START }, 'wrong_previous_hash'],
    ['a missing number', { sequence: 3 }, 'missing_event'],
  ])('breaks at %s', async (_, change, reason) => {
    const { chained } = await three();
    const [first, second] = chained;
    expect(await chainBreak(first!, { ...second!, ...change })).toBe(reason);
  });
});
