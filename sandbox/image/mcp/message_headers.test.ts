import { describe, expect, it } from 'vitest';
import { type Message, readMessage } from './message.ts';
import { messageHeaders, sessionHeaders } from './message_headers.ts';

const SESSION = { id: 's1', version: '2025-06-18' };
const OWN = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };

function message(method: string, params: object = {}, id: number | null = 1): Message {
  const read = readMessage(JSON.stringify({ jsonrpc: '2.0', ...(id !== null && { id }), method, params }));
  if (typeof read === 'number') throw new Error('no message');
  return read;
}

describe('the headers of a message', () => {
  it('contain its session and the negotiated revision', () => {
    const headers = { 'mcp-protocol-version': '2025-06-18', 'mcp-session-id': 's1' };
    expect(messageHeaders(message('tools/call', { name: 'x' }), SESSION)).toEqual(headers);
    expect(messageHeaders(message('notifications/x', {}, null), SESSION)).toEqual(headers);
    expect(sessionHeaders({ ...SESSION, id: null })).toEqual({ 'mcp-protocol-version': '2025-06-18' });
  });

  it('are absent before there is a session and for a new initialisation', () => {
    expect(messageHeaders(message('tools/list'), null)).toEqual({});
    expect(messageHeaders(message('initialize'), SESSION)).toEqual({});
  });

  it.each([
    ['tools/call', { name: 'a__b' }, 'a__b'],
    ['prompts/get', { name: 'p' }, 'p'],
    ['resources/read', { uri: 'file:///x' }, 'file:///x'],
    ['tools/list', { name: 'x' }, undefined],
    ['tools/call', { name: 7 }, undefined],
    ['constructor', { name: 'x' }, undefined],
  ])('of %s %j repeat its own fields, without a session', (method, params, name) => {
    expect(messageHeaders(message(method, { ...params, ...OWN }), SESSION)).toEqual({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
    });
  });

  it.each(['naïve', ' x', 'x ', '', 'a\r\nsvc: 1', '=?base64?eA==?=', '日本'])('encode %j in Base64', (name) => {
    const header = messageHeaders(message('tools/call', { name, ...OWN }), null)['mcp-name'];
    const encoded = /^=\?base64\?([A-Za-z0-9+/=]*)\?=$/.exec(header ?? '')?.[1];
    expect(Buffer.from(encoded ?? 'none', 'base64').toString('utf8')).toBe(name);
  });
});
