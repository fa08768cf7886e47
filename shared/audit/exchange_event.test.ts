import { describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../connect/testing/sample_connector.ts';
import { schemeBinding } from '../inject/testing/sample_requests.ts';
import { auditEventData } from '../wire/audit_events.ts';
import { exchangeEvent, type ExchangeFacts, type ExchangeResult } from './exchange_event.ts';

const operation = sampleOperation({
  audit: [
    { name: 'item', source: 'path.id', redact: false },
    { name: 'searched', source: 'query.q', redact: true },
    { name: 'status', source: 'status', redact: false },
  ],
});
const FACTS: ExchangeFacts = {
  source: 'generated_connector_shim',
  sessionId: 'ses_1',
  host: 'api.example.com',
  method: 'GET',
  path: '/items/7',
  binding: null,
  operation: {
    match: { connector: sampleConnector([operation]), operation },
    givenInputs: new Set(['query.q']),
    approvalId: 'apr_1',
  },
};
const REPLIED: ExchangeResult = { kind: 'replied', mediation: 'connector', status: 200 };

describe('the event of a request that passes through', () => {
  const { operation: _operation, ...facts } = FACTS;
  const passed: ExchangeResult = { kind: 'replied', mediation: 'passthrough', status: 401 };

  test('says whose placeholder went to a host without a binding', () => {
    const event = exchangeEvent(
      { ...facts, stray: { ...schemeBinding({ scheme: 'bearer' }), host: 'api.github.com' } },
      passed,
    );
    expect(event?.data).toMatchObject({
      'svc.proxy.reason': 'placeholder_unbound',
      'svc.proxy.binding.host': 'api.github.com',
      'svc.proxy.upstream.host': 'api.example.com',
    });
    expect(auditEventData.safeParse(event?.data).success).toBe(true);
  });

  test('has no reason otherwise', () => {
    expect(exchangeEvent(facts, passed)?.data).not.toHaveProperty('svc.proxy.reason');
  });
});

describe('the event of a connector request', () => {
  test('has the operation, its credential reference and its typed fields', () => {
    const event = exchangeEvent(FACTS, REPLIED);
    expect(event).toMatchObject({ type: 'connector.proxy.proxied', session_id: 'ses_1', actor: 'session' });
    expect(event?.data).toEqual({
      'svc.proxy.source': 'generated_connector_shim',
      'svc.proxy.mediation': 'connector',
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.host': 'api.example.com',
      'svc.proxy.upstream.path': '/items/7',
      'svc.proxy.upstream.status': 200,
      'svc.connector.fqn': 'acme/items',
      'svc.connector.version': '1.0.0',
      'svc.connector.operation': 'get-item',
      'svc.connector.credential_ref': 'vault://connectors/acme/items',
      'svc.connector.fields': { item: '7', searched: true, status: 200 },
      'svc.approval.id': 'apr_1',
    });
    expect(auditEventData.safeParse(event?.data).success).toBe(true);
  });

  test.each([
    'approval_required',
    'effect_not_allowed',
    'upstream_unreachable',
    'authority_mismatch',
    'invalid_args',
    'upstream_response_too_large',
  ] as const)('%s is a refusal of the connector', (reason) => {
    const event = exchangeEvent(FACTS, { kind: 'refused', reason });
    expect([event?.type, event?.data['svc.proxy.reason'], event?.data['svc.proxy.mediation']]).toEqual([
      'connector.proxy.rejected',
      reason,
      'refused',
    ]);
  });

  test('a redacted path input is not in the path either', () => {
    const secretive = sampleOperation({ audit: [{ name: 'item', source: 'path.id', redact: true }] });
    const match = { connector: sampleConnector(), operation: secretive };
    const event = exchangeEvent(
      { ...FACTS, operation: { match, givenInputs: new Set<string>(), approvalId: null } },
      REPLIED,
    );
    expect(event?.data).toMatchObject({
      'svc.proxy.upstream.path': '/items/{id}',
      'svc.connector.fields': { item: true },
    });
  });

  test('a request without an answer is recorded as rejected; one refused by the full audit log is only counted', () => {
    expect(exchangeEvent(FACTS, { kind: 'unanswered', reason: 'client_gone' })?.type).toBe('connector.proxy.rejected');
    expect(exchangeEvent(FACTS, { kind: 'refused', reason: 'audit_unavailable' })).toBeNull();
  });

  test('other requests are not a connector’s', () => {
    const { operation: _, ...plain } = FACTS;
    expect(exchangeEvent(plain, { kind: 'refused', reason: 'ambiguous_target' })?.type).toBe('sandbox.proxy.rejected');
    expect(exchangeEvent(plain, { kind: 'refused', reason: 'effect_not_allowed' })?.type).toBe(
      'sandbox.proxy.trust_denied',
    );
  });
});
