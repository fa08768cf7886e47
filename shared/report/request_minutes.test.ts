import { describe, expect, test } from 'vitest';
import type { AuditEvent } from '../model/audit_event.ts';
import { countMinutes } from './request_minutes.ts';

const NOW = Date.parse('2026-03-04T12:00:30.000Z');
const MINUTE = Math.floor(NOW / 60_000);
type Counted = Pick<AuditEvent, 'type' | 'time' | 'data'>;
const event = (change: Partial<Counted> = {}): Counted => ({
  type: 'sandbox.proxy.passthrough',
  time: '2026-03-04T12:00:10.000Z',
  data: {},
  ...change,
});

test('requests are summed by minute and outcome', () => {
  const added = event({ type: 'sandbox.proxy.binding_injected', time: '2026-03-04T11:59:59.999Z' });
  expect(countMinutes([event(), added, event(), added, added], NOW)).toEqual([
    { minute: MINUTE, decision: 'passed', requests: 2 },
    { minute: MINUTE - 1, decision: 'added', requests: 3 },
  ]);
});

test('what is no request, and what svc answered itself, is not counted', () => {
  const stored = event({ type: 'control.secret.stored' });
  const answered = event({ type: 'connector.proxy.proxied', data: { 'svc.proxy.reason': 'answered_locally' } });
  expect(countMinutes([stored, answered], NOW)).toEqual([]);
});

test('a refusal counts for as many as it sums, another event for one', () => {
  const data = { 'svc.proxy.count': 40 };
  expect(countMinutes([event({ type: 'sandbox.proxy.rejected', data }), event({ data })], NOW)).toEqual([
    { minute: MINUTE, decision: 'refused', requests: 40 },
    { minute: MINUTE, decision: 'passed', requests: 1 },
  ]);
});

describe('a sidecar that lies', () => {
  test.each(['2026-03-03T11:59:59.000Z', '2026-03-04T12:02:00.000Z', 'never'])(
    'about the time adds nothing: %s',
    (time) => {
      expect(countMinutes([event({ time })], NOW)).toEqual([]);
    },
  );

  test('about a sum cannot overflow it', () => {
    const huge = event({ type: 'sandbox.proxy.rejected', data: { 'svc.proxy.count': Number.MAX_SAFE_INTEGER } });
    const [counted] = countMinutes([huge, huge], NOW);
    expect(counted?.requests).toBe(2_000_000);
  });
});
