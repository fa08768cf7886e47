import { describe, expect, test } from 'vitest';
import { AUDIT_EVENT_TYPES, type AuditEventData } from '../../../shared/model/audit_event.ts';
import { REFUSALS } from '../../../shared/model/refusal.ts';
import { decisionSentences, eventOutcome, eventSubject, eventWords } from './audit_words.ts';

const INJECTED: AuditEventData = {
  'svc.proxy.method': 'GET',
  'svc.proxy.upstream.host': 'api.github.com',
  'svc.proxy.upstream.path': '/user',
  'svc.proxy.upstream.status': 200,
  'svc.proxy.binding.host': '*.github.com',
  'svc.proxy.binding.scheme': 'bearer',
  'svc.proxy.emit': 'inject',
};

describe('an event in words', () => {
  test.each(AUDIT_EVENT_TYPES)('%s has words', (type) => {
    expect(eventWords({ type, data: {} }).word).toMatch(/^[A-Z]/);
  });

  test('say what, how it ended and why, in the order of the decisions', () => {
    const event = { type: 'sandbox.proxy.binding_injected', data: INJECTED } as const;
    expect(eventSubject(event)).toBe('GET api.github.com/user');
    expect(eventOutcome(event)).toBe('200');
    expect(decisionSentences(event)).toEqual([
      'It matched the binding for *.github.com.',
      'The credential was added outside the sandbox, with the scheme bearer; the agent never saw it.',
      'The upstream answered with 200.',
    ]);
  });

  test('of a request that svc answered itself say neither that a credential was added nor that an upstream answered', () => {
    const data = {
      'svc.connector.fqn': 'login/claude',
      'svc.connector.operation': 'token',
      'svc.proxy.reason': 'answered_locally',
      'svc.proxy.upstream.status': 200,
    };
    expect(decisionSentences({ type: 'connector.proxy.proxied', data }).slice(1)).toEqual([
      'No credential was used.',
      'The sidecar answered with placeholders. Nothing was sent upstream.',
    ]);
  });

  test('of a login say that its tokens were stored and that the program has placeholders', () => {
    const data = { 'svc.proxy.reason': 'login_captured', 'svc.proxy.upstream.status': 200 };
    expect(decisionSentences({ type: 'sandbox.proxy.passthrough', data })).toEqual([
      'It asked for the tokens of the login that the session was started for.',
      'The tokens in the reply are stored in the control plane, and the program got placeholders.',
      'The upstream answered with 200.',
    ]);
  });

  test('of a request with a client certificate name it, and say that a connection had it only if one was answered', () => {
    const certified = { 'svc.proxy.client_certificate.ref': 'vault://user/client' };
    const answered = { ...certified, 'svc.proxy.upstream.status': 200 };
    expect(decisionSentences({ type: 'sandbox.proxy.passthrough', data: answered })).toContain(
      'The upstream connection had the client certificate vault://user/client.',
    );
    const refused = { ...certified, 'svc.proxy.reason': 'credential_unavailable' };
    expect(decisionSentences({ type: 'sandbox.proxy.rejected', data: refused })).toContain(
      'The client certificate of the host is vault://user/client.',
    );
  });

  test('of a connection that was carried unread say so, and how much was carried', () => {
    const host = { 'svc.proxy.upstream.host': 'pinned.example.com' };
    const opened = { ...host, 'svc.proxy.reason': 'tunnel_opened' };
    const closed = {
      ...host,
      'svc.proxy.reason': 'tunnel_closed',
      'svc.proxy.bytes.sent': 517,
      'svc.proxy.bytes.received': 4096,
    };
    const why = 'The host is on the list of hosts that are not intercepted, so its bytes were carried unread.';
    const type = 'sandbox.proxy.tunnelled';
    expect(decisionSentences({ type, data: opened })).toEqual([why, 'The tunnel was opened.']);
    const ended = 'The tunnel ended. The client sent 517 bytes and received 4096.';
    expect(decisionSentences({ type, data: closed })).toEqual([why, ended]);
  });

  test('of a client that refused the certificate name the command that would carry its host unread', () => {
    const data = {
      'svc.proxy.upstream.host': 'pinned.example.com',
      'svc.proxy.reason': 'client_refused_certificate',
    };
    const sentences = decisionSentences({ type: 'sandbox.proxy.rejected', data }).join(' ');
    expect(sentences).toMatch(/did not accept the certificate of svc.*svc tunnel add pinned\.example\.com/);
  });

  test('of a change to the list of hosts that are not intercepted name the host', () => {
    const data = { 'svc.control.host': '*.example.com', 'svc.control.resource': 'tnl_1' };
    expect(eventSubject({ data })).toBe('*.example.com');
  });

  test('of the question whose login it is say what the program got', () => {
    const data = { 'svc.proxy.reason': 'login_account_asked', 'svc.proxy.upstream.status': 200 };
    expect(decisionSentences({ type: 'sandbox.proxy.passthrough', data })).toEqual([
      'It asked whose the login is that the session was started for.',
      'The sidecar asked with the new token. The program got only the name of the account.',
      'The upstream answered with 200.',
    ]);
  });

  test('say what a reply gave the agent, and what was withheld', () => {
    const data = {
      'svc.proxy.reply.withheld': ['set-cookie', 'alt-svc'],
      'svc.proxy.reply.kept': ['www-authenticate'],
      'svc.proxy.reply.may_hold': 'OAuth tokens',
    };
    expect(decisionSentences({ type: 'sandbox.proxy.passthrough', data }).slice(2)).toEqual([
      'Withheld from the agent: the headers set-cookie, alt-svc.',
      'Kept for the agent by the binding: the headers www-authenticate.',
      'The reply may have given the agent OAuth tokens of its own.',
    ]);
  });

  test.each(Object.keys(REFUSALS))('give the reason %s as a sentence', (reason) => {
    const [sentence] = decisionSentences({ type: 'sandbox.proxy.rejected', data: { 'svc.proxy.reason': reason } });
    expect(sentence).toMatch(/^[A-Z].{20,}\.$/);
    expect(sentence).not.toContain('_');
  });

  test('name a reason without a sentence', () => {
    const event = { type: 'sandbox.proxy.disabled', data: { 'svc.proxy.reason': 'user_opt_out' } } as const;
    expect(decisionSentences(event)).toEqual(['The reason is user_opt_out.']);
  });

  test.each([
    ['approve', 'good', 'Request approved'],
    ['deny', 'bad', 'Request denied'],
  ] as const)('say that somebody decided to %s', (decision, kind, word) => {
    const data = { 'svc.approval.decision': decision };
    expect(eventWords({ type: 'connector.approval.decided', data })).toEqual({ kind, word });
  });
});
