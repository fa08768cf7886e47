import { Buffer } from 'node:buffer';
import { readClientHello } from '../../shared/net/client_hello.ts';
import type { RequestHead } from '../../shared/net/http/http1_head.ts';
import {
  isWebSocketConnect,
  parseReplyFields,
  parseRequestFields,
  replyFieldList,
  requestFieldList,
} from '../../shared/net/http/http2_head.ts';
import type { FuzzTarget } from './fuzz_engine.ts';

/** A hello that offers `h2` and `http/1.1` for `a.test`, in one record. */
const HELLO = Buffer.from(
  '16030100600100005c0303' +
    '00'.repeat(32) +
    '00' +
    '00021301' +
    '0100' +
    '0031' +
    '0000000b0009000006612e74657374' +
    '0010000e000c02683208687474702f312e31' +
    '002b0003020304' +
    '00170000' +
    'ff01000100',
  'hex',
).toString('latin1');

/** The same hello with its message in records of `most` bytes. */
function inRecords(text: string, most: number): string {
  const message = text.slice(5);
  let out = '';
  for (let at = 0; at < message.length; at += most) {
    const piece = message.slice(at, at + most);
    out += `\x16\x03\x01${String.fromCharCode(piece.length >> 8, piece.length & 0xff)}${piece}`;
  }
  return out;
}

const clientHello: FuzzTarget = {
  name: 'TLS hellos',
  seeds: [HELLO, inRecords(HELLO, 40), HELLO.slice(0, 60)],
  words: ['\x16\x03\x01', '\x00\x10', '\x00\x00', '\x02h2', '\x08http/1.1', '\x00', '\x01', '\xff', '\x00\x05'],
  check(input) {
    const bytes = Buffer.from(input, 'latin1');
    const whole = readClientHello(bytes);
    if (whole.kind === 'incomplete') {
      return whole.needs > bytes.length ? null : `it needs ${whole.needs} of ${bytes.length} bytes`;
    }
    // What is read once is read the same with anything after it, and was incomplete before.
    const more = readClientHello(Buffer.concat([bytes, Buffer.from('more')]));
    if (JSON.stringify(more) !== JSON.stringify(whole)) return `with more bytes: ${JSON.stringify(more)}`;
    for (let end = 0; end < bytes.length; end += 7) {
      const part = readClientHello(bytes.subarray(0, end));
      if (part.kind !== 'incomplete' && JSON.stringify(part) !== JSON.stringify(whole)) {
        return `with ${end} bytes: ${JSON.stringify(part)}`;
      }
    }
    if (whole.kind === 'unreadable') return null;
    const { serverName, protocols } = whole.hello;
    const missing = [serverName ?? '', ...protocols].find((name) => !inOneRecord(input).includes(name));
    return missing === undefined ? null : `it says ${JSON.stringify(missing)}, which is not in it`;
  },
};

/** The payload of all records, for a search. */
function inOneRecord(input: string): string {
  let out = '';
  for (let at = 0; at + 5 <= input.length;) {
    const length = (input.charCodeAt(at + 3) << 8) | input.charCodeAt(at + 4);
    out += input.slice(at + 5, at + 5 + length);
    at += 5 + length;
  }
  return out;
}

const LIMITS = { maxHeaders: 20, maxHeadBytes: 4096 };
/** What a field may be (RFC 9113 section 8.2.1), written a second time. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const TARGET = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/;
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FORBIDDEN = /^(?:connection|http2-settings|keep-alive|proxy-connection|transfer-encoding|upgrade)$/;

/** Names and values in turn, from lines of text. */
function listOf(input: string): string[] {
  const list = input.split('\n');
  return list.length % 2 === 0 ? list : [...list, ''];
}

const streamHeads: FuzzTarget = {
  name: 'heads of HTTP/2',
  seeds: [
    ':method\nGET\n:scheme\nhttps\n:authority\na.test\n:path\n/x?y=z\nx-a\n1\nx-a\n2',
    ':path\n*\n:method\nOPTIONS\n:scheme\nhttps\nhost\na.test\nte\ntrailers',
    ':method\nCONNECT\n:protocol\nwebsocket\n:scheme\nhttps\n:authority\na.test\n:path\n/ws\nsec-websocket-version\n13',
    ':method\nCONNECT\n:protocol\nwebsocket\n:scheme\nhttps\n:path\n/ws\nhost\na.test',
    ':status\n200\ncontent-length\n5\nx-b\n\xff',
  ],
  words: [':method', ':path', ':scheme', ':authority', ':status', ':protocol', 'https', 'http', '/', '*', 'CONNECT', 'websocket', 'connect-udp', ':protocol\nwebsocket', 'host', 'te', 'trailers', 'upgrade', 'content-length', '05', '+5', '\r', '\0', '\n', ' ', '\t', ':', 'X', '200', '099', '600'], // prettier-ignore
  check(input) {
    const list = listOf(input);
    const request = parseRequestFields(list, [], LIMITS);
    if (request.ok) {
      const { method, target, fields } = request.value;
      if (!METHOD.test(method) || !TARGET.test(target) || method === 'CONNECT') return `${method} ${target}`;
      const written = requestFieldList(request.value);
      const trimmed = list.map((part, at) => (at % 2 === 0 ? part : part.replaceAll(/^[ \t]+|[ \t]+$/g, '')));
      const expected = list.map((part, at) => ((list[at - 1] ?? '').startsWith(':') ? part : (trimmed[at] ?? '')));
      if (JSON.stringify(written) !== JSON.stringify(expected)) return `it is written as ${JSON.stringify(written)}`;
      const illegal = fields.find((field) => !field.line.startsWith(':') && !isLegal(field.name, field.value));
      if (illegal !== undefined) return `it has ${JSON.stringify(illegal)}`;
      const lengths = fields.filter(({ name }) => name === 'content-length').map(({ value }) => value);
      const isOne = lengths.length === 0 || (lengths.length === 1 && lengths[0] === String(Number(lengths[0])));
      if (!isOne) return `it has the lengths ${JSON.stringify(lengths)}`;
      return protocolDiffers(list, request.value);
    }
    const reply = parseReplyFields(list, [], LIMITS);
    if (!reply.ok) return null;
    const written = replyFieldList(reply.value);
    if (written.length !== list.length || written.some((part, at) => part !== (list[at] ?? '').trim() && at < 2)) {
      return `the reply is written as ${JSON.stringify(written)}`;
    }
    return reply.value.fields.every(({ name, value }) => isLegal(name, value))
      ? null
      : 'the reply has an illegal field';
  },
};

/** What opens a WebSocket (RFC 8441 section 4), written a second time: nothing else is decided as one, and it is decided as a GET. */
function protocolDiffers(list: readonly string[], head: RequestHead): string | null {
  const valueOf = (name: string): string | undefined =>
    list[list.findIndex((part, at) => at % 2 === 0 && part === name) + 1];
  const has = (name: string): boolean => list.some((part, at) => at % 2 === 0 && part === name);
  const asks = has(':protocol');
  if (isWebSocketConnect(head) !== asks || (has(':method') && valueOf(':method') === 'CONNECT') !== asks) {
    return 'it is decided as another kind of request';
  }
  if (!asks) return head.fields.some(({ name }) => name === 'upgrade') ? 'it has an upgrade' : null;
  const isRight = valueOf(':protocol') === 'websocket' && has(':authority') && !has('content-length');
  const upgrades = head.fields.filter(({ name }) => name === 'upgrade').map(({ value }) => value);
  return isRight && head.method === 'GET' && upgrades.join() === 'websocket' ? null : 'a wrong WebSocket is accepted';
}

function isLegal(name: string, value: string): boolean {
  return NAME.test(name) && VALUE.test(value) && !FORBIDDEN.test(name) && (name !== 'te' || value === 'trailers');
}

export const HTTP2_TARGETS: readonly FuzzTarget[] = [clientHello, streamHeads];
