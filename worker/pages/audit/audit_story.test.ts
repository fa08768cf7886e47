import { describe, expect, test } from 'vitest';
import { AUDIT_EVENT_TYPES, type AuditEventType } from '../../../shared/model/audit_event.ts';
import { storySentences } from './audit_story.ts';
import { decisionSentences } from './audit_words.ts';

const story = (type: AuditEventType) => storySentences({ type, data: {}, actor: null }).join(' ');
const nameOf = (id: string | null | undefined) => (id === 'usr_1' ? 'Ada' : null);

describe('the explanation of an event', () => {
  test.each(AUDIT_EVENT_TYPES)('%s is described in sentences', (type) => {
    const data = { 'svc.proxy.reason': 'effect_not_allowed', 'svc.proxy.upstream.status': 200 } as const;
    const sentences = [...storySentences({ type, data, actor: 'usr_1' }), ...decisionSentences({ type, data })];
    expect(sentences.length).toBeGreaterThan(0);
    for (const sentence of sentences) expect(sentence).toMatch(/^[A-Zu].+\.$/);
  });

  test.each(['tool_not_allowed', 'too_many_calls', 'consent_needed', 'exited'])(
    'the gateway’s %s is a sentence',
    (reason) => {
      const told = storySentences({ type: 'mcp.tool.denied', data: { 'svc.mcp.reason': reason }, actor: null });
      expect(told.at(-1)).not.toContain('_');
    },
  );

  test.each([
    [{ 'svc.reach.enforced': true, 'svc.reach.hosts': ['a.test'] }, /under a scope/, 1],
    [{ 'svc.reach.enforced': true, 'svc.reach.hosts': ['a.test'], 'svc.reach.egress': 'open' }, /bypass the proxy/, 2],
    [{ 'svc.reach.enforced': false, 'svc.reach.hosts': ['a.test'] }, /without an open scope/, 1],
    [{ 'svc.reach.enforced': false, 'svc.reach.hosts': [], 'svc.reach.egress': 'sealed' }, /has no hosts/, 1],
    [{ 'svc.reach.enforced': false, 'svc.proxy.reason': 'step_not_started' }, /never ran/, 1],
    [{ 'svc.reach.enforced': false, 'svc.proxy.reason': 'step_start_unknown' }, /start was not reported/, 1],
  ] as const)('describes a step by what is recorded: %j', (data, expected, sentences) => {
    const told = storySentences({ type: 'flightplan.launch.reach', data, actor: 'session' });
    expect(told).toHaveLength(sentences);
    expect(told.join(' ')).toMatch(expected);
  });

  test('an approval expires after an hour, or unused; it may be of a tool', () => {
    expect(story('connector.approval.expired')).toMatch(/within an hour, it was approved and no identical request/);
    expect(story('connector.approval.requested')).toMatch(/operation or tool.+rules of the MCP server/);
  });

  test('names who decided, and the effect', () => {
    const data = { 'svc.approval.decision': 'deny' } as const;
    const [sentence] = storySentences({ type: 'connector.approval.decided', data, actor: 'usr_1' });
    expect(sentence).toBe('usr_1 denied it: identical requests are refused for fifteen minutes.');
  });

  test('calls the person by name, where the reader may see it', () => {
    const decided = { type: 'connector.approval.decided', data: { 'svc.approval.decision': 'approve' } } as const;
    expect(storySentences({ ...decided, actor: 'usr_1' }, nameOf)[0]).toMatch(/^Ada approved it/);
    const changed = { type: 'control.binding.created', data: {} } as const;
    expect(storySentences({ ...changed, actor: 'usr_1' }, nameOf)).toEqual(['Ada did this.']);
    expect(storySentences({ ...changed, actor: 'usr_2' }, nameOf)).toEqual(['usr_2 did this.']);
  });

  test('says that the control plane acts by itself', () => {
    const told = storySentences({ type: 'control.session.revoked', data: {}, actor: null });
    expect(told).toEqual(['The control plane did this by itself.']);
  });
});
