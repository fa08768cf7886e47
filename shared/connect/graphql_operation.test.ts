import { describe, expect, test } from 'vitest';
import type { Operation } from '../model/connector.ts';
import { compileConnectors, type ConnectorOperation } from './connector_index.ts';
import { recogniseGraphql } from './graphql_operation.ts';
import { confirmOperation } from './confirm_operation.ts';
import { sampleConnector, sampleOperation } from './testing/sample_connector.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const POST = { method: 'POST', query: null };

function graphql(name: string, changes: Partial<Operation>): Operation {
  const inputs = [{ name: 'query', in: 'body', type: 'string', required: true, description: '' } as const];
  return sampleOperation({ name, method: 'POST', path: '/graphql', inputs, ...changes });
}

const READ = graphql('read', { graphql: { type: 'query' } });
const COMMENT = graphql('comment', { graphql: { type: 'mutation', fields: ['addComment', 'addReaction'] } });
const MERGE = graphql('merge', { graphql: { type: 'mutation', fields: ['merge'] }, approval: 'required' });
const OTHER = graphql('other', { graphql: { type: 'mutation' }, approval: 'required' });
const ALL = [READ, COMMENT, MERGE, OTHER];

function candidates(operations: readonly Operation[], changes: object = {}): readonly ConnectorOperation[] {
  const connector = sampleConnector(operations, changes);
  return operations.map((operation) => ({ connector, operation }));
}

function recognise(
  body: string,
  among = candidates(ALL),
  request: typeof POST | { method: string; query: string } = POST,
): string {
  const found = recogniseGraphql(among, request, [bytes(body)]);
  return found.ok ? found.value.operation.name : found.error.reason;
}

const of = (query: string, more: object = {}): string => JSON.stringify({ query, ...more });

describe('the operation of a document', () => {
  test.each([
    ['{ viewer { login } }', 'read'],
    ['mutation { addComment { id } }', 'comment'],
    ['mutation { addReaction { id } addComment { id } }', 'comment'],
    ['mutation { merge { id } }', 'merge'],
    ['mutation { addComment: merge { id } }', 'merge'],
    ['mutation { deleteRepository { id } }', 'other'],
    ['mutation { __typename merge }', 'merge'],
    ['mutation { __typename }', 'other'],
  ])('is the one that lists its fields, otherwise the catch-all: %s', (query, name) => {
    expect(recognise(of(query))).toBe(name);
  });

  test.each([
    ['a guarded field beside one that is not', 'mutation { addComment { id } merge { id } }'],
    ['one that only the catch-all matches', 'mutation { addComment { id } deleteRepository { id } }'],
    ['one in a fragment', 'mutation { addComment { id } ...F } fragment F on Mutation { merge { id } }'],
    ['one that is skipped', 'mutation { addComment { id } merge @skip(if: true) { id } }'],
    ['one of another operation of the document', 'mutation A { addComment { id } } mutation B { merge { id } }'],
  ])('is not found if it also contains %s', (_what, query) => {
    expect(recognise(of(query, query.includes(' A ') ? { operationName: 'A' } : {}))).toBe(
      'graphql_operation_not_allowed',
    );
  });

  test('is none if no operation has the field or the type', () => {
    expect(recognise(of('mutation { drop }'), candidates([READ, MERGE]))).toBe('graphql_operation_not_allowed');
    expect(recognise(of('mutation { merge drop }'), candidates([READ, MERGE]))).toBe('graphql_operation_not_allowed');
    expect(recognise(of('subscription { issueUpdated { id } }'))).toBe('graphql_operation_not_allowed');
    expect(recognise(of('mutation { __typename }'), candidates([READ, MERGE]))).toBe('graphql_operation_not_allowed');
    expect(recognise(of('{ viewer }'), [])).toBe('graphql_operation_not_allowed');
  });

  test('is none if two connectors match, even if only by path', () => {
    const other = { id: 'con_2', fqn: 'other/items' };
    const both = [...candidates(ALL), ...candidates([graphql('mine', { graphql: { type: 'mutation' } })], other)];
    expect(recognise(of('mutation { addComment { id } }'), both)).toBe('graphql_operation_not_allowed');
    expect(recognise(of('{ viewer }'), both)).toBe('read');
    const plain = [...candidates(ALL), ...candidates([graphql('plain', {})], other)];
    expect(recognise(of('{ viewer }'), plain)).toBe('graphql_operation_not_allowed');
  });

  test('keeps its document for the approval and the audit log', () => {
    const found = recogniseGraphql(candidates(ALL), POST, [bytes(of('mutation { a: merge b: merge }'))]);
    expect(found).toMatchObject({ value: { document: { type: 'mutation', fields: new Map([['merge', 2]]) } } });
  });
});

const codes = (text: string): number[] => Array.from(text, (character) => character.charCodeAt(0));
/** Each character with so many empty bytes behind it. */
const widen = (text: string, empty: number): number[] =>
  codes(text).flatMap((code) => [code, ...Array.from({ length: empty }, () => 0)]);
const QUERY = '{ viewer { login } }';

describe('the body of a request', () => {
  test.each([
    of(QUERY),
    of(QUERY, { variables: null, operationName: null, extensions: null }),
    of(QUERY, { variables: { query: 'mutation { merge }' }, extensions: {} }),
    of(`query Q ${QUERY}`, { operationName: 'Q', extensions: { clientLibrary: { name: 'x', version: '1' } } }),
    `  ${of(QUERY)}\n`,
    '{"qu\\u0065ry": "{viewer}"}',
  ])('is one JSON object with a document: %s', (body) => {
    expect(recognise(body)).toBe('read');
  });

  test.each([
    ['nothing', ''],
    ['no JSON', 'query { viewer }'],
    ['a form', `query=${encodeURIComponent(QUERY)}`],
    ['two JSON texts', `${of(QUERY)}${of('mutation { merge }')}`],
    ['a byte order mark', `\ufeff${of(QUERY)}`],
    ['a batch', `[${of(QUERY)}]`],
    ['an empty batch', '[]'],
    ['a text', JSON.stringify(QUERY)],
    ['null', 'null'],
    ['no document', '{}'],
    ['a document that is not a string', '{"query": {"viewer": true}}'],
    ['a document that is null', '{"query": null, "id": "x"}'],
    ['a document that is a list', JSON.stringify({ query: [QUERY] })],
    ['a key twice', `{"query": ${JSON.stringify(QUERY)}, "query": "mutation { merge }"}`],
    ['a key twice, once with escapes', `{"query": ${JSON.stringify(QUERY)}, "qu\\u0065ry": "mutation { merge }"}`],
    ['a key twice further down', `{"query": ${JSON.stringify(QUERY)}, "variables": {"a": [{"b": 1, "b": 2}]}}`],
    ['a key in another letter case', of(QUERY, { Query: 'mutation { merge }' })],
    ['a list under another name', of(QUERY, { _json: [{ query: 'mutation { merge }' }] })],
    ['a persisted query', of(QUERY, { extensions: { persistedQuery: { version: 1, sha256Hash: '0' } } })],
    ['a persisted query alone', '{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0"}}}'],
    ['the id of a stored document', of(QUERY, { documentId: '1' })],
    ['the id of a stored document, by another name', of(QUERY, { doc_id: '1' })],
    ['__proto__', `{"query": ${JSON.stringify(QUERY)}, "__proto__": {"query": "mutation { merge }"}}`],
    ['variables that are a string', of(QUERY, { variables: '{}' })],
    ['variables that are a list', of(QUERY, { variables: [] })],
    ['an operationName that is a list', of(QUERY, { operationName: ['Q'] })],
    ['extensions that are a string', of(QUERY, { extensions: 'x' })],
    ['values nested too deep', `{"query": ${JSON.stringify(QUERY)}, "variables": ${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`], // prettier-ignore
  ])('is refused with %s', (_what, body) => {
    expect(recognise(body)).toBe('graphql_unreadable');
  });

  test.each([
    ['UTF-16', widen(of(QUERY), 1)],
    ['UTF-16 with its mark', [0xff, 0xfe, ...widen(of(QUERY), 1)]],
    ['UTF-32', widen(of(QUERY), 3)],
    ['no UTF-8', codes(of(QUERY).replace('login', 'log\xff'))],
    ['an overlong encoding of a character', codes('{"query": "\xc1\xbbviewer}"}')],
    ['half a character at its end', [...codes(of(QUERY)), 0xe2, 0x82]],
  ])('is refused in %s', (_what, body) => {
    const found = recogniseGraphql(candidates(ALL), POST, [Uint8Array.from(body)]);
    expect(found).toMatchObject({ ok: false, error: { reason: 'graphql_unreadable' } });
  });

  test('is read the same for any chunking', () => {
    const body = bytes(of('{ viewer(name: "ü€😀") { login } }'));
    const pieces = Array.from(body, (_, at) => body.subarray(at, at + 1));
    expect(recogniseGraphql(candidates(ALL), POST, pieces).ok).toBe(true);
  });
});

describe('the query of a GET', () => {
  const READ_BY_GET = candidates([graphql('read', { method: 'GET', graphql: { type: 'query' } })]);
  const get = (query: string): string => recognise('', READ_BY_GET, { method: 'GET', query });

  test.each([
    'query=%7Bviewer%7D',
    'query={viewer}',
    'query=query+Q+{viewer+{login}}&operationName=Q&variables=%7B%7D',
    '&query={viewer}&',
  ])('has a document: %s', (query) => {
    expect(get(query)).toBe('read');
  });

  test.each([
    ['nothing', ''],
    ['a parameter twice', 'query={viewer}&query=mutation{merge}'],
    ['a parameter twice, once with escapes', 'query={viewer}&qu%65ry=mutation{merge}'],
    ['a list', 'query[]={viewer}'],
    ['another name', 'query={viewer}&documentId=1'],
    ['__proto__', 'query={viewer}&__proto__=1'],
    ['a method', 'query={viewer}&_method=POST'],
    ['a persisted query', 'query={viewer}&extensions={"persistedQuery":{"sha256Hash":"0"}}'],
    ['a hash alone', 'extensions={"persistedQuery":{"sha256Hash":"0"}}'],
    ['a semicolon, which some servers take for "&"', 'query={viewer%23;query=mutation{merge}%0A}'],
    ['a broken escape', 'query={viewer}%'],
    ['no UTF-8', 'query={viewer}%23%ff'],
    ['variables with a key twice', 'query={viewer}&variables={"a":1,"a":2}'],
  ])('is refused with %s', (_what, query) => {
    expect(get(query)).toBe('graphql_unreadable');
  });

  test('is never a mutation', () => {
    expect(get('query=mutation{merge}')).toBe('graphql_operation_not_allowed');
  });
});

describe('a run by name', () => {
  const connector = sampleConnector(ALL);
  const index = compileConnectors([connector]);
  const run = (operation: Operation, args: object): boolean => {
    const made = { method: 'POST', host: 'api.example.com', path: '/graphql', query: null, body: JSON.stringify(args) };
    return confirmOperation(index, { connector, operation }, made).ok;
  };

  test('sends the documents of its own operation, and of no other', () => {
    expect(run(READ, { query: '{ viewer }' })).toBe(true);
    expect(run(MERGE, { query: 'mutation { merge }' })).toBe(true);
    expect(run(READ, { query: 'mutation { merge }' })).toBe(false);
    expect(run(COMMENT, { query: 'mutation { addComment merge }' })).toBe(false);
    expect(run(READ, { query: '{ viewer' })).toBe(false);
  });
});
