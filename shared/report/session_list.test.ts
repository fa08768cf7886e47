import { describe, expect, test } from 'vitest';
import type { AuditEventData, AuditEventType } from '../model/audit_event.ts';
import { listPlanSteps, listSessionsOf } from './session_list.ts';

const at = (second: number) => `2026-11-20T10:00:${String(second).padStart(2, '0')}.000Z`;
const event = (type: AuditEventType, second: number, data: AuditEventData = {}, session: string | null = 'ses_a') => {
  return { type, time: at(second), data, session_id: session, sidecar_id: 'sdc_1' };
};
const reach = (step: string, second: number, others: AuditEventData = {}) =>
  event('flightplan.launch.reach', second, {
    'svc.step.id': step,
    'svc.reach.effect': 'read',
    'svc.reach.hosts': ['api.test'],
    'svc.reach.enforced': true,
    'svc.reach.egress': 'sealed',
    ...others,
  });
const request = (type: AuditEventType, second: number, step: string, host = 'api.test') =>
  event(type, second, { 'svc.step.id': step, 'svc.proxy.upstream.host': host });

describe('sessions', () => {
  test('are listed by their newest event, with what was decided', () => {
    const events = [
      event('sandbox.proxy.passthrough', 9, {}, 'ses_b'),
      event('sandbox.proxy.trust_denied', 8, { 'svc.proxy.count': 3 }),
      event('sandbox.proxy.tunnelled', 7),
      event('connector.proxy.proxied', 6),
      event('control.secret.stored', 5, {}, null),
      event('sandbox.proxy.binding_injected', 4),
    ];
    expect(listSessionsOf(events)).toEqual([
      {
        id: 'ses_b',
        sidecar: 'sdc_1',
        firstAt: at(9),
        lastAt: at(9),
        counts: { added: 0, passed: 1, refused: 0 },
        isPlan: false,
      },
      {
        id: 'ses_a',
        sidecar: 'sdc_1',
        firstAt: at(4),
        lastAt: at(8),
        counts: { added: 2, passed: 1, refused: 3 },
        isPlan: false,
      },
    ]);
  });

  test('of several machines are of none', () => {
    const events = [
      event('sandbox.proxy.passthrough', 2),
      { ...event('sandbox.proxy.passthrough', 1), sidecar_id: 'sdc_2' },
    ];
    expect(listSessionsOf(events)[0]?.sidecar).toBeNull();
  });

  test('that ran a plan are told apart', () => {
    expect(listSessionsOf([event('sandbox.proxy.passthrough', 2), reach('fetch', 1)])[0]?.isPlan).toBe(true);
  });
});

describe('the steps of a plan', () => {
  test('have their requests, whatever the order of the events', () => {
    const events = [
      request('sandbox.proxy.trust_denied', 5, 'publish', 'evil.test'),
      request('sandbox.proxy.trust_denied', 6, 'publish', 'evil.test'),
      reach('publish', 4, { 'svc.reach.enforced': false, 'svc.reach.egress': 'open' }),
      request('sandbox.proxy.binding_injected', 2, 'fetch'),
      reach('fetch', 1),
    ];
    expect(listPlanSteps(events)).toMatchObject([
      {
        id: 'fetch',
        state: 'started',
        isEnforced: true,
        isOpen: false,
        counts: { added: 1, refused: 0 },
        refusedHosts: [],
      },
      { id: 'publish', isEnforced: false, isOpen: true, counts: { added: 0, refused: 2 }, refusedHosts: ['evil.test'] },
    ]);
  });

  test.each([
    ['step_not_started', 'not_started'],
    ['step_start_unknown', 'unknown'],
  ] as const)('say that %s', (reason, state) => {
    expect(listPlanSteps([reach('fetch', 1, { 'svc.proxy.reason': reason })])).toMatchObject([{ state }]);
  });

  test('have the later of two states that are told in one millisecond', () => {
    const events = [reach('fetch', 1, { 'svc.proxy.reason': 'step_not_started' }), reach('fetch', 1)];
    expect(listPlanSteps(events)).toMatchObject([{ state: 'not_started' }]);
  });

  test('are none of a session without a plan', () => {
    expect(listPlanSteps([request('sandbox.proxy.passthrough', 1, 'fetch')])).toEqual([]);
  });
});
