import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exchangeEvent, type ExchangeFacts, type ExchangeResult } from '../../shared/audit/exchange_event.ts';
import { buildOperationRequest } from '../../shared/connect/operation_request.ts';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { auditEventData } from '../../shared/wire/audit_events.ts';
import { parseIncoming } from './incoming.ts';

/** The control plane must accept the event of any request; otherwise an agent could act without a record. */

const HOST = 'api.example.test';
/** Far below the size of a sidecar's batch, for any request. */
const MOST_BYTES = 16 * 1024;

const RESULTS: readonly ExchangeResult[] = [
  { kind: 'replied', mediation: 'passthrough', status: 200 },
  { kind: 'replied', mediation: 'connector', status: 599 },
  { kind: 'refused', reason: 'invalid_request' },
  { kind: 'unanswered', reason: 'client_gone' },
];

function expectTaken(facts: ExchangeFacts): void {
  for (const result of RESULTS) {
    const event = exchangeEvent(facts, result);
    if (event === null) continue;
    const text = JSON.stringify(event.data);
    expect(Buffer.byteLength(text)).toBeLessThan(MOST_BYTES);
    // One line of the spool is one event.
    expect(text).not.toMatch(/[\n\r]/);
    expect(auditEventData.safeParse(JSON.parse(text)).error).toBeUndefined();
  }
}

const bytes = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
  fc.constantFrom(
    '/a\0b',
    '/%00%0a%ed%a0%80',
    '/\u202e',
    '/a?b',
    '//x/../%2e',
    '*',
    `/${'a'.repeat(9_000)}`,
    '/a\tb',
    '/\x7f\x85',
  ),
);

const input = (name: string, place: 'path' | 'query') =>
  ({ name, in: place, type: 'string', required: place === 'path', description: '' }) as const;

describe('the audit event of a request', () => {
  test('is accepted by the control plane for any request head', () => {
    const heads = fc.record({
      method: fc.oneof(fc.constantFrom('GET', 'POST', "X'!#$%&*+-.^_`|~9", 'M'.repeat(500)), bytes),
      target: fc.oneof(
        bytes,
        bytes.map((text) => `/${text}`),
        bytes.map((text) => `https://${HOST}/${text}`),
      ),
      lines: fc.array(fc.tuple(bytes, bytes), { maxLength: 3 }),
    });
    let read = 0;
    fc.assert(
      fc.property(heads, ({ method, target, lines }) => {
        const fields = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
        const raw = Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: ${HOST}\r\n${fields}\r\n`, 'latin1');
        const incoming = parseIncoming(raw, HOST, 200);
        if (!incoming.ok) return;
        read += 1;
        const { head, target: parsed } = incoming.value;
        const facts = { sessionId: 'ses_test', host: HOST, method: head.method, path: parsed.path, binding: null };
        expectTaken(facts);
        expectTaken({ ...facts, stepId: 'fetch' });
      }),
      { numRuns: 3_000, seed: 14 },
    );
    expect(read).toBeGreaterThan(100);
  });

  test('is accepted for any args of an operation, even text that only an escape can express', () => {
    const operation = sampleOperation({
      inputs: [input('id', 'path'), input('q', 'query')],
      audit: [
        { name: 'item', source: 'path.id', redact: false },
        { name: 'hidden', source: 'query.q', redact: true },
      ],
    });
    const connector = sampleConnector([operation], { hosts: [HOST] });
    let built = 0;
    fc.assert(
      fc.property(fc.oneof(bytes, fc.string({ unit: 'binary' })), bytes, (id, q) => {
        const request = buildOperationRequest(connector, operation, { id, q }, undefined);
        if (!request.ok) return;
        built += 1;
        const { method, host, path } = request.value;
        const facts = { match: { connector, operation }, givenInputs: new Set(['query.q']), approvalId: null };
        expectTaken({ sessionId: null, host, method, path, binding: null, operation: facts });
      }),
      { numRuns: 2_000, seed: 14 },
    );
    expect(built).toBeGreaterThan(100);
  });
});
