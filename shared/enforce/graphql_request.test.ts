import { describe, expect, test } from 'vitest';
import { enforceGraphqlRequest } from './graphql_request.ts';
import type { InspectedRequest } from './inspected_head.ts';

const JSON_TYPE = { name: 'content-type', value: 'application/json' };
const POST: InspectedRequest = { method: 'POST', query: null, fields: [JSON_TYPE], hasBody: true };
const GET: InspectedRequest = { method: 'GET', query: 'query={viewer}', fields: [], hasBody: false };

const requestOfTypes = (...values: readonly string[]): InspectedRequest => ({
  ...POST,
  fields: values.map((value) => ({ name: 'content-type', value })),
});
const withField = (request: InspectedRequest, name: string, value = 'x'): InspectedRequest => ({
  ...request,
  fields: [...request.fields, { name, value }],
});

describe('a request to a GraphQL endpoint', () => {
  test.each([
    POST,
    GET,
    requestOfTypes('application/json; charset=utf-8'),
    requestOfTypes('Application/JSON;charset="UTF-8"'),
    withField(POST, 'accept', 'application/graphql-response+json'),
  ])('may have its body read: %j', (request) => {
    expect(enforceGraphqlRequest(request).ok).toBe(true);
  });

  test.each([
    ['no Content-Type', requestOfTypes()],
    ['two', requestOfTypes('application/json', 'application/json')],
    ['application/graphql', requestOfTypes('application/graphql')],
    ['a form', requestOfTypes('application/x-www-form-urlencoded')],
    ['text', requestOfTypes('text/plain')],
    ['parts', requestOfTypes('multipart/form-data; boundary=x')],
    ['UTF-16', requestOfTypes('application/json; charset=utf-16')],
    ['another parameter', requestOfTypes('application/json; boundary=x')],
    ['two charsets', requestOfTypes('application/json; charset=utf-8; charset=utf-7')],
    ['a list of types', requestOfTypes('application/json, text/plain')],
    ['a type that only ends like it', requestOfTypes('application/graphql+json')],
    ['a Content-Encoding', withField(POST, 'content-encoding', 'gzip')],
    ['a Content-Encoding without effect', withField(POST, 'content-encoding', 'identity')],
    ['a document in its query', { ...POST, query: 'query=mutation{merge}' }],
    ['an empty query', { ...POST, query: '' }],
    ['another method in a header', withField(POST, 'x-http-method-override', 'GET')],
    ['an upgrade', withField(GET, 'upgrade', 'websocket')],
    ['a body of a GET', { ...GET, hasBody: true }],
  ] as const)('is refused with %s', (_what, request) => {
    expect(enforceGraphqlRequest(request)).toMatchObject({ ok: false, error: { reason: 'graphql_unreadable' } });
  });
});
