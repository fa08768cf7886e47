import { describe, expect, test } from 'vitest';
import { auditFields } from './audit_fields.ts';
import { requestFingerprint, requestScope, type FingerprintedRequest } from './request_fingerprint.ts';
import { requestSummary } from './request_summary.ts';
import { isWithheldHeader } from './sanitised_reply.ts';
import { sampleConnector, sampleOperation } from './testing/sample_connector.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('the audit fields of a run', () => {
  const operation = sampleOperation({
    audit: [
      { name: 'item', source: 'path.id', redact: false },
      { name: 'hidden', source: 'path.id', redact: true },
      { name: 'searched', source: 'query.q', redact: true },
      { name: 'status', source: 'status', redact: false },
    ],
  });

  test('have path inputs and status, and of a query input only that it was present', () => {
    const request = { path: '/items/a%20b', givenInputs: new Set(['query.q']), status: 201 };
    expect(auditFields(operation, request)).toEqual({ item: 'a b', hidden: true, searched: true, status: 201 });
  });

  test.each([['/items/a%00b'], [`/items/${'a'.repeat(199)}%F0%9F%98%80`], ['/items/%1b%5b2J']])(
    'contain nothing that the audit log refuses or that controls a terminal: %s',
    (path) => {
      const { item } = auditFields(operation, { path, givenInputs: new Set(), status: null });
      expect(String(item)).toContain('\ufffd');
      expect(String(item)).not.toMatch(/[\p{Cc}\p{Cs}]/u);
    },
  );

  test('never contain the value of a query input, even if the spec asks for it', () => {
    const leaky = sampleOperation({ audit: [{ name: 'q', source: 'query.q', redact: false }] });
    expect(auditFields(leaky, { path: '/items/1', givenInputs: new Set(), status: null })).toEqual({ q: false });
  });
});

describe('the fingerprint of a request', () => {
  const request: FingerprintedRequest = {
    fqn: 'acme/items',
    operation: 'create-item',
    method: 'POST',
    host: 'api.example.com',
    target: '/items?dry=1',
    contentType: 'application/json',
    body: [bytes('{"a":1}')],
  };

  test('is the same for the same request, for any chunking of its body', async () => {
    const cut = { ...request, body: [bytes('{"a'), bytes(''), bytes('":1}')] };
    expect(await requestFingerprint(cut)).toBe(await requestFingerprint(request));
    expect(await requestFingerprint(request)).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each([
    { fqn: 'acme/item', operation: 'screate-item' },
    { operation: 'delete-item' },
    { method: 'PUT' },
    { host: 'eu.example.com' },
    { target: '/items?dry=0' },
    { contentType: 'text/plain' },
    { body: [bytes('{"a":2}')] },
    { contentType: 'application/json{', body: [bytes('"a":1}')] },
  ])('differs with %o', async (change) => {
    expect(await requestFingerprint({ ...request, ...change })).not.toBe(await requestFingerprint(request));
  });
});

describe('what a grant covers', () => {
  const request = { fqn: 'acme/items', operation: 'delete-item', method: 'DELETE', host: 'api.example.com' };

  test('is one operation at one host with one path', async () => {
    const scope = await requestScope(request, '/items/7', false);
    expect(scope).toMatch(/^[0-9a-f]{64}$/);
    expect(await requestScope(request, '/items/8', false)).not.toBe(scope);
    expect(await requestScope({ ...request, host: 'eu.example.com' }, '/items/7', false)).not.toBe(scope);
    expect(await requestScope({ ...request, operation: 'purge-item' }, '/items/7', false)).not.toBe(scope);
  });

  test('is nothing for a GraphQL document', async () => {
    expect(await requestScope(request, '/graphql', true)).toBeNull();
  });
});

describe('the approval summary', () => {
  const asked = { host: 'api.example.com', path: '/items/a%20b', query: null, bodyBytes: 12 };

  test('names the operation, the host and the path inputs', () => {
    expect(requestSummary(sampleConnector(), sampleOperation(), asked)).toBe(
      'Items: Get an item (GET api.example.com, with a body of 12 bytes: id "a b")',
    );
  });

  test('says that there is a query, without its values', () => {
    expect(requestSummary(sampleConnector(), sampleOperation(), { ...asked, query: 'force=true', bodyBytes: 0 })).toBe(
      'Items: Get an item (GET api.example.com, with a query: id "a b")',
    );
  });

  test('marks a truncated value and a truncated line, which still says that there are a query and a body', () => {
    const path = `/items/${'a'.repeat(80)}`;
    expect(requestSummary(sampleConnector(), sampleOperation(), { ...asked, path })).toMatch(/id "a{80}"\)$/);
    expect(requestSummary(sampleConnector(), sampleOperation(), { ...asked, path: `${path}b` })).toMatch(
      /id "a{80}"…\)$/,
    );
    const names = Array.from({ length: 9 }, (_, index) => `{input${index}}`);
    const long = { ...asked, path: `/${names.map(() => '%F0%9F%98%80'.repeat(40)).join('/')}`, query: 'a' };
    const line = requestSummary(sampleConnector(), sampleOperation({ path: `/${names.join('/')}` }), long);
    expect(line).toMatch(
      /^Items: Get an item \(GET api\.example\.com, with a query, with a body of 12 bytes: .* … \d+ more characters$/u,
    );
    expect([line.length <= 500, line.isWellFormed()]).toEqual([true, true]);
  });

  test('contains nothing that controls a terminal or reverses the line', () => {
    const request = { ...asked, path: '/items/%1b%5B2J%0a%E2%80%AEx' };
    expect(requestSummary(sampleConnector(), sampleOperation({ summary: 'a\u001b[1mb' }), request)).not.toMatch(
      /[\p{Cc}\p{Cf}]/u,
    );
  });
});

test('sessions, challenges and alternative services are withheld', () => {
  expect(['set-cookie', 'www-authenticate', 'alt-svc'].every((name) => isWithheldHeader(name))).toBe(true);
  expect(['content-type', 'link', 'location', 'x-ratelimit-remaining'].some((name) => isWithheldHeader(name))).toBe(
    false,
  );
});
