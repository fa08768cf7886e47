import { describe, expect, it } from 'vitest';
import { errorText, INVALID_REQUEST, PARSE_ERROR, readMessage } from './message.ts';

describe('a message', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"ping"}', { kind: 'request', id: 1, method: 'ping', params: {} }],
    ['{"jsonrpc":"2.0","id":"a","method":"x","params":{"n":1}}', { kind: 'request', id: 'a', params: { n: 1 } }],
    ['{"jsonrpc":"2.0","method":"notifications/x"}', { kind: 'notification', method: 'notifications/x' }],
    ['{"jsonrpc":"2.0","id":1,"result":{"a":1}}', { kind: 'response', id: 1, result: { a: 1 } }],
    ['{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}', { kind: 'response', id: null, result: {} }],
  ])('%s is read', (text, message) => {
    expect(readMessage(text)).toMatchObject({ ...message, text });
  });

  it.each(['{', '', 'hello', '{"jsonrpc":"2.0"}x'])('%j is not JSON', (text) => {
    expect(readMessage(text)).toBe(PARSE_ERROR);
  });

  it.each([
    '[]',
    'null',
    '7',
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    '{"id":1,"method":"ping"}',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":{},"method":"x"}',
    '{"jsonrpc":"2.0","id":null,"method":"x"}',
    '{"jsonrpc":"2.0","id":{},"result":{}}',
  ])('%s is not a message', (text) => {
    expect(readMessage(text)).toBe(INVALID_REQUEST);
  });

  it('keeps its exact text, on one line', () => {
    const exact = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":12345678901234567890}}';
    expect(readMessage(exact)).toMatchObject({ text: exact });
    expect(readMessage('{"jsonrpc":"2.0",\n"id":1,"method":"x"}')).toMatchObject({
      text: '{"jsonrpc":"2.0","id":1,"method":"x"}',
    });
  });

  it('of an error has id and code', () => {
    expect(JSON.parse(errorText(7, -1, 'm', { a: 1 }))).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: { code: -1, message: 'm', data: { a: 1 } },
    });
  });
});
