import { describe, expect, test } from 'vitest';
import type { AuditEventData, AuditEventType } from '../model/audit_event.ts';
import { summariseSession } from './session_summary.ts';

let made = 0;
function event(type: AuditEventType, data: AuditEventData, second = made) {
  made += 1;
  return { id: `evt_${made}`, type, time: `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`, data };
}
const to = (host: string, path = '/') => ({
  'svc.proxy.method': 'GET',
  'svc.proxy.upstream.host': host,
  'svc.proxy.upstream.path': path,
});
const added = (host: string, ref: string, path?: string) =>
  event('sandbox.proxy.binding_injected', { ...to(host, path), 'svc.proxy.credential_ref': ref });

describe('the summary of a session', () => {
  test('counts decisions, also those that one event sums up', () => {
    const summed = event('sandbox.proxy.rejected', { 'svc.proxy.reason': 'head_too_large', 'svc.proxy.count': 7 });
    const passed = event('sandbox.proxy.passthrough', to('pypi.example'));
    expect(summariseSession([added('a.example', 'vault://k'), summed, passed]).counts).toEqual({
      added: 1,
      passed: 1,
      refused: 7,
    });
  });

  test('lists the credentials that were sent with their hosts, most used first', () => {
    const events = [
      added('a.example', 'vault://one'),
      added('b.example', 'vault://two'),
      added('c.example', 'vault://two'),
    ];
    expect(summariseSession(events).credentials).toMatchObject([
      { name: 'vault://two', on: ['b.example', 'c.example'], count: 2 },
      { name: 'vault://one', on: ['a.example'], count: 1 },
    ]);
  });

  test('lists no credential of a request that was refused', () => {
    const refused = event('sandbox.proxy.trust_denied', {
      ...to('a.example'),
      'svc.proxy.credential_ref': 'vault://one',
      'svc.proxy.reason': 'effect_not_allowed',
    });
    expect(summariseSession([refused]).credentials).toEqual([]);
  });

  test('lists a credential that a program received in plaintext', () => {
    const unsealed = event('sandbox.proxy.credential_unsealed', { 'svc.proxy.credential_ref': 'vault://one' });
    expect(summariseSession([unsealed]).credentials).toMatchObject([{ name: 'vault://one', on: [] }]);
  });

  test('names the binding if the event has no reference', () => {
    const bound = event('sandbox.proxy.binding_injected', {
      ...to('a.example'),
      'svc.proxy.binding.host': '*.example',
    });
    expect(summariseSession([bound]).credentials).toMatchObject([{ name: 'binding of *.example', on: ['a.example'] }]);
  });

  test('has its steps in order, and those that repeat at once as one', () => {
    const [first, second, third] = [
      added('a.example', 'k', '/x'),
      added('a.example', 'k', '/x'),
      added('a.example', 'k', '/y'),
    ];
    const { steps } = summariseSession([third, second, first].filter((each) => each !== undefined));
    expect(steps.map(({ first: { id }, count }) => [id, count])).toEqual([
      [first?.id, 2],
      [third?.id, 1],
    ]);
  });

  test('does not merge what differs in its status', () => {
    const ok = event('sandbox.proxy.passthrough', { ...to('a.example'), 'svc.proxy.upstream.status': 200 });
    const failed = event('sandbox.proxy.passthrough', { ...to('a.example'), 'svc.proxy.upstream.status': 500 });
    expect(summariseSession([ok, failed]).steps).toHaveLength(2);
  });
});
