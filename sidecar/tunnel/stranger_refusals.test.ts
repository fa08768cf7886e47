import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { exchangeEvent, type UnstampedEvent } from '../../shared/audit/exchange_event.ts';
import { auditEventData } from '../../shared/wire/audit_events.ts';
import { StrangerRefusals } from './stranger_refusals.ts';

let recorded: UnstampedEvent[];
let refusals: StrangerRefusals;

beforeEach(() => {
  vi.useFakeTimers();
  recorded = [];
  refusals = new StrangerRefusals({ record: (event) => `evt_${recorded.push(event)}` });
});
afterEach(() => void vi.useRealTimers());

function refuse(
  count: number,
  reason: 'proxy_authentication_required' | 'invalid_request',
  method: string | null,
): void {
  const facts = { sessionId: null, host: null, method, path: null, binding: null };
  const event = exchangeEvent(facts, { kind: 'refused', reason });
  if (event === null) throw new Error('the refusal has no event');
  for (let number = 0; number < count; number += 1) refusals.record(event);
}

const counts = () => recorded.map(({ data }) => [data['svc.proxy.reason'], data['svc.proxy.count'] ?? 'one']);

test('those of a minute use a bounded number of events, however many there are', () => {
  refuse(50_000, 'proxy_authentication_required', 'CONNECT');
  expect(recorded).toHaveLength(60);
  refuse(7, 'invalid_request', null);
  vi.advanceTimersByTime(60_000);
  expect(counts().slice(60)).toEqual([
    ['proxy_authentication_required', 49_940],
    ['invalid_request', 7],
  ]);
});

test('a summary has what all of them have in common, in words that the log accepts', () => {
  refuse(60, 'proxy_authentication_required', 'CONNECT');
  refuse(1, 'proxy_authentication_required', 'GET');
  refusals.flush();
  const sum = recorded.at(-1);
  expect(sum).toMatchObject({ type: 'sandbox.proxy.rejected', session_id: null, actor: null });
  expect(auditEventData.parse(sum?.data)).toEqual({
    'svc.proxy.source': 'transparent_connect_tls',
    'svc.proxy.mediation': 'refused',
    'svc.proxy.reason': 'proxy_authentication_required',
    'svc.proxy.count': 1,
  });
});

test('each minute starts again, and nothing is recorded twice', () => {
  refuse(61, 'proxy_authentication_required', 'CONNECT');
  vi.advanceTimersByTime(60_000);
  refuse(2, 'proxy_authentication_required', 'CONNECT');
  vi.advanceTimersByTime(120_000);
  refusals.flush();
  expect(counts().slice(60)).toEqual([
    ['proxy_authentication_required', 1],
    ['proxy_authentication_required', 'one'],
    ['proxy_authentication_required', 'one'],
  ]);
});
