import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { exchangeEvent, type UnstampedEvent } from '../../shared/audit/exchange_event.ts';
import type { RefusalReason } from '../../shared/model/refusal.ts';
import { auditEventData } from '../../shared/wire/audit_events.ts';
import { SessionRefusals } from './session_refusals.ts';

let recorded: UnstampedEvent[];
let refusals: SessionRefusals;

beforeEach(() => {
  vi.useFakeTimers();
  recorded = [];
  refusals = new SessionRefusals({ record: (event) => `evt_${recorded.push(event)}` });
});
afterEach(() => void vi.useRealTimers());

interface Attempt {
  readonly sessionId?: string;
  readonly stepId?: string;
  readonly host?: string | null;
  readonly reason?: RefusalReason;
}

function refuse(count: number, attempt: Attempt = {}): void {
  const { sessionId = 'ses_1', stepId, host = 'a.test', reason = 'egress_host_not_allowed' } = attempt;
  const facts = { sessionId, stepId, host, method: 'CONNECT', path: null, binding: null };
  const event = exchangeEvent(facts, { kind: 'refused', reason });
  if (event === null) throw new Error('the refusal has no event');
  for (let number = 0; number < count; number += 1) refusals.record(sessionId, event);
}

const told = () =>
  recorded.map(({ session_id, data }) => [
    session_id,
    data['svc.proxy.reason'],
    data['svc.proxy.upstream.host'],
    data['svc.proxy.count'],
  ]);

test('the first refusal of a host is recorded at once, the others of the minute as one event with their count', () => {
  refuse(50_000);
  expect(recorded).toHaveLength(1);
  expect(recorded[0]?.data).toMatchObject({ 'svc.proxy.method': 'CONNECT', 'svc.proxy.upstream.host': 'a.test' });
  vi.advanceTimersByTime(60_000);
  expect(recorded).toHaveLength(2);
  expect(recorded[1]).toMatchObject({ type: 'sandbox.proxy.trust_denied', session_id: 'ses_1', actor: 'session' });
  expect(auditEventData.parse(recorded[1]?.data)).toEqual({
    'svc.proxy.source': 'transparent_connect_tls',
    'svc.proxy.mediation': 'refused',
    'svc.proxy.reason': 'egress_host_not_allowed',
    'svc.proxy.upstream.host': 'a.test',
    'svc.proxy.count': 49_999,
  });
});

test('what happened once has one event', () => {
  refuse(1);
  vi.advanceTimersByTime(120_000);
  expect(recorded).toHaveLength(1);
});

test('sessions, steps, hosts and reasons are counted apart', () => {
  refuse(2);
  refuse(3, { sessionId: 'ses_2' });
  refuse(4, { host: 'b.test' });
  refuse(5, { reason: 'too_many_tunnels' });
  refuse(6, { stepId: 'fetch', reason: 'step_scope_host_denied' });
  refuse(7, { stepId: 'build', reason: 'step_scope_host_denied' });
  expect(recorded).toHaveLength(6);
  refusals.flush();
  expect(recorded.slice(6).map(({ data }) => [data['svc.step.id'], data['svc.proxy.count']])).toEqual([
    [undefined, 1],
    [undefined, 3],
    [undefined, 4],
    ['fetch', 5],
    ['build', 6],
    [undefined, 2],
  ]);
});

test('an agent that tries many hosts uses a bounded number of events, and every attempt is counted', () => {
  for (let number = 0; number < 10_000; number += 1) refuse(1, { host: `h${number}.test` });
  refuse(3, { host: 'h0.test' });
  refuse(5, { host: 'last.test', reason: 'too_many_tunnels' });
  refuse(1, { sessionId: 'ses_2', host: 'other.test' });
  expect(recorded).toHaveLength(101);
  vi.advanceTimersByTime(60_000);
  expect(told().slice(101)).toEqual([
    ['ses_1', 'egress_host_not_allowed', 'h0.test', 3],
    ['ses_1', 'egress_host_not_allowed', undefined, 9_900],
    ['ses_1', 'too_many_tunnels', undefined, 5],
  ]);
});

test('the summaries of a session that ends are recorded at its end, and only its own', () => {
  refuse(3);
  refuse(3, { sessionId: 'ses_2' });
  refusals.flushSession('ses_1');
  expect(told().slice(2)).toEqual([['ses_1', 'egress_host_not_allowed', 'a.test', 2]]);
  refusals.flushSession('ses_1');
  refusals.flush();
  expect(told().slice(3)).toEqual([['ses_2', 'egress_host_not_allowed', 'a.test', 2]]);
});

test('each minute starts again, and nothing is recorded twice', () => {
  refuse(2);
  vi.advanceTimersByTime(60_000);
  refuse(2);
  vi.advanceTimersByTime(180_000);
  expect(recorded.map(({ data }) => data['svc.proxy.count'] ?? 'one')).toEqual(['one', 1, 'one', 1]);
});
