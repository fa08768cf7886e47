import { describe, expect, test } from 'vitest';
import { paramHeaderProblem } from './param_headers.ts';

const SCHEMA = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    isDry: { type: 'boolean', 'x-mcp-header': 'Dry' },
    where: { type: 'object', properties: { tenant: { type: 'string', 'x-mcp-header': 'Tenant' } } },
    note: { type: 'string' },
  },
};

const problem = (args: unknown, headers: Record<string, string>, schema: unknown = SCHEMA) =>
  paramHeaderProblem(schema, args, new Headers(headers));

const inBase64 = (text: string) => `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;

describe('the headers that repeat arguments', () => {
  test.each([
    [
      'of each type',
      { region: 'eu', count: 42, isDry: false },
      { 'Mcp-Param-Region': 'eu', 'mcp-param-count': '42', 'MCP-PARAM-DRY': 'false' },
    ],
    ['of a property inside another', { where: { tenant: 'a' } }, { 'Mcp-Param-Tenant': 'a' }],
    ['of an argument that is left out or null', { region: null }, {}],
    ['of the largest integer', { count: 2 ** 53 - 1 }, { 'Mcp-Param-Count': '9007199254740991' }],
    ['of a number that is written in another way', { count: -42 }, { 'Mcp-Param-Count': '-42.0' }],
    ['of an empty text', { region: '' }, { 'Mcp-Param-Region': '' }],
    ['that are not declared', { note: 'x' }, { 'Mcp-Param-Note': 'y' }],
    ['of an argument in another form than its tool declares', { region: ['eu'] }, {}],
  ])('are accepted %s', (_, args, headers) => {
    expect(problem(args, headers)).toBeNull();
  });

  // The examples of the specification.
  test.each([
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['us-west1', 'us-west1'],
    ['\uFEFFmarked', inBase64('\uFEFFmarked')],
    ['', '=?base64??='],
    ['SGVsbG8=', 'SGVsbG8='],
    ['=?base64?SGVsbG8=', '=?base64?SGVsbG8='],
    ['=?BASE64?SGVsbG8=?=', '=?BASE64?SGVsbG8=?='],
  ])('are decoded: %j', (region, header) => {
    expect(problem({ region }, { 'Mcp-Param-Region': header })).toBeNull();
  });

  test.each([
    ['a missing header', { region: 'eu' }, {}, 'is missing'],
    ['another value', { region: 'eu' }, { 'Mcp-Param-Region': 'us' }, 'does not match'],
    ['another case', { region: 'eu' }, { 'Mcp-Param-Region': 'EU' }, 'does not match'],
    ['another value in base64', { region: 'eu' }, { 'Mcp-Param-Region': inBase64('us') }, 'does not match'],
    ['another number', { count: 42 }, { 'Mcp-Param-Count': '43' }, 'does not match'],
    ['a number in another notation', { count: 42 }, { 'Mcp-Param-Count': '0x2a' }, 'does not match'],
    ['no number', { count: 0 }, { 'Mcp-Param-Count': '' }, 'does not match'],
    ['an integer that no header can repeat exactly', { count: 2 ** 53 }, {}, 'pass a smaller one'],
    [
      'an integer that is rounded',
      JSON.parse('{"count":-9007199254740993}'),
      { 'Mcp-Param-Count': '-9007199254740993' },
      'pass a smaller one',
    ],
    ['a boolean in capitals', { isDry: true }, { 'Mcp-Param-Dry': 'True' }, 'does not match'],
    ['two values', { region: 'eu' }, { 'Mcp-Param-Region': 'eu, us' }, 'does not match'],
    ['another value inside', { where: { tenant: 'a' } }, { 'Mcp-Param-Tenant': 'b' }, 'does not match'],
    ['a header without an argument', {}, { 'Mcp-Param-Region': 'eu' }, 'must be left out'],
    ['a header of an argument that is null', { region: null }, { 'Mcp-Param-Region': 'null' }, 'must be left out'],
    ['a header without arguments', undefined, { 'Mcp-Param-Region': 'eu' }, 'must be left out'],
    ['base64 without its end', { region: 'Hello' }, { 'Mcp-Param-Region': '=?base64?SGVsbG8?=' }, 'valid base64'],
    [
      'other characters in base64',
      { region: 'Hello' },
      { 'Mcp-Param-Region': '=?base64?SGVs!!!bG8=?=' },
      'valid base64',
    ],
    ['base64 of no UTF-8', { region: '\uFFFD' }, { 'Mcp-Param-Region': '=?base64?/w==?=' }, 'valid base64'],
    ['bytes beyond ASCII', { region: 'é' }, { 'Mcp-Param-Region': 'é' }, 'plain ASCII'],
  ])('are refused with %s', (_, args, headers, message) => {
    expect(problem(args, headers)).toContain(message);
  });

  test('are refused with the name of the header and of the argument, and without a value', () => {
    expect(problem({ where: { tenant: 'secret-one' } }, { 'Mcp-Param-Tenant': 'secret-two' })).toBe(
      'Header mismatch: Mcp-Param-Tenant does not match the value in the body (argument "where.tenant")',
    );
  });

  test.each([
    ['an empty name', { properties: { a: { type: 'string', 'x-mcp-header': '' } } }],
    ['a name that is no token', { properties: { a: { type: 'string', 'x-mcp-header': 'A B' } } }],
    ['a name that is no text', { properties: { a: { type: 'string', 'x-mcp-header': 1 } } }],
    ['a number', { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } }],
    ['no type', { properties: { a: { 'x-mcp-header': 'A' } } }],
    ['the whole schema', { type: 'string', 'x-mcp-header': 'A' }],
    ['the items of a list', { properties: { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } } }],
    ['one of several forms', { anyOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] }],
    ['no schema', null],
  ])('are not expected by an invalid annotation of %s', (_, schema) => {
    expect(problem({ a: '1' }, {}, schema)).toBeNull();
  });

  test('are compared with own members of the arguments alone', () => {
    const schema = {
      properties: { constructor: { properties: { name: { type: 'string', 'x-mcp-header': 'Name' } } } },
    };
    expect(problem({}, {}, schema)).toBeNull();
    expect(problem(JSON.parse('{"__proto__":{"name":"x"}}'), {}, schema)).toBeNull();
  });
});
