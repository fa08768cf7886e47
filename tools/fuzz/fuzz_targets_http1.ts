import { Buffer } from 'node:buffer';
import {
  BodyReader,
  encodeChunk,
  encodeLastChunk,
  replyFraming,
  requestFraming,
} from '../../shared/net/http/http1_framing.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import {
  findHeadEnd,
  formatReplyHead,
  formatRequestHead,
  parseReplyHead,
  parseRequestHead,
} from '../../shared/net/http/http1_head.ts';
import { canStartRequest } from '../../shared/net/http/request_start.ts';
import type { HeaderField } from '../../shared/net/http/http1_head.ts';
import type { FuzzTarget } from './fuzz_engine.ts';
import { hashOf, piecesOf } from './fuzz_random.ts';

const LIMITS = { maxHeaders: 20 };
const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const TEXT = '[\\t\\x20-\\x7e\\x80-\\xff]*';
const FIELDS = `((?:${TOKEN}:${TEXT}\\r\\n)*)\\r\\n$`;
/** The grammar of a head, written a second time, as one expression (RFC 9112 sections 3 to 5). */
const REQUEST = new RegExp(`^(${TOKEN}) ([\\x21-\\x7e\\x80-\\xff]+) HTTP/(1\\.[01])\\r\\n${FIELDS}`);
const REPLY = new RegExp(`^HTTP/(1\\.[01]) ([1-9][0-9]{2})(?: (${TEXT}))?\\r\\n${FIELDS}`);

const WORDS = [
  '\r\n', '\r', '\n', '\r\n\r\n', ':', ' ', '\t', '\0', '\x7f', '\xa0', '\xff', ',', ';', '"', 'HTTP/1.1', 'HTTP/1.0',
  'Host: a', 'Content-Length: 5', 'Content-Length: 05', 'Transfer-Encoding: chunked', 'Transfer-Encoding:\tchunked',
  'chunked', 'Connection: close', '0\r\n\r\n', '5\r\nhello\r\n', 'a;b=c\r\n', 'ffffffffffffffff', 'X: 1\r\n', '100', '204',
] as const; // prettier-ignore

const linesOf = (fields: string): string[] => fields.split('\r\n').slice(0, -1);

/** The fields according to the slow parser: whole lines, names in lower case, values without surrounding spaces and tabs. */
function fieldsDiffer(fields: readonly HeaderField[], text: string): string | null {
  const expected = linesOf(text).map((line) => ({
    name: line.slice(0, line.indexOf(':')).toLowerCase(),
    line,
    value: line.slice(line.indexOf(':') + 1).replaceAll(/^[ \t]+|[ \t]+$/g, ''),
  }));
  return JSON.stringify(fields) === JSON.stringify(expected) ? null : `fields ${JSON.stringify(fields)}`;
}

const requestHead: FuzzTarget = {
  name: 'request heads',
  seeds: [
    'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n',
    'POST /a?b=c HTTP/1.0\r\nX-A:\t 1 \r\nx-a: \xff\r\nX-B:\r\n\r\n',
    'OPTIONS * HTTP/1.1\r\nA: b\r\n\r\nrest',
  ],
  words: WORDS,
  check(input) {
    const bytes = Buffer.from(input, 'latin1');
    const end = findHeadEnd(bytes, 0);
    const slowEnd = input.indexOf('\r\n\r\n');
    if (end !== (slowEnd < 0 ? -1 : slowEnd + 4)) return `the head ends at ${end}, not after ${slowEnd}`;
    const text = end < 0 ? input : input.slice(0, end);
    const read = parseRequestHead(text, LIMITS);
    const match = REQUEST.exec(text);
    const legal = match !== null && linesOf(match[4] ?? '').length <= LIMITS.maxHeaders;
    if (read.ok !== legal)
      return read.ok ? 'an illegal head is accepted' : `a legal head is refused: ${read.error.reason}`;
    if (!read.ok) return null;
    const { method, target, version, fields } = read.value;
    if (`${method} ${target} ${version}` !== match?.slice(1, 4).join(' ')) return 'the request line is read as another';
    const line = text.indexOf('\r\n') + 2;
    for (let part = 1; part <= line; part += 1) {
      if (!canStartRequest(bytes.subarray(0, part))) return `a legal head is refused after ${part} bytes`;
    }
    return formatRequestHead(read.value) === text ? fieldsDiffer(fields, match[4] ?? '') : 'is written as another head';
  },
};

const replyHead: FuzzTarget = {
  name: 'reply heads',
  seeds: [
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n',
    'HTTP/1.0 999 \r\nSet-Cookie: a\r\nset-cookie: \xe9\r\n\r\n',
    'HTTP/1.1 204\r\n\r\n',
  ],
  words: WORDS,
  check(text) {
    const read = parseReplyHead(text, LIMITS);
    const match = REPLY.exec(text);
    const legal = match !== null && linesOf(match[4] ?? '').length <= LIMITS.maxHeaders;
    if (read.ok !== legal)
      return read.ok ? 'an illegal head is accepted' : `a legal head is refused: ${read.error.reason}`;
    if (!read.ok) return null;
    const { version, status, reason, fields } = read.value;
    if (`${version} ${status} ${reason}` !== `${match?.[1]} ${match?.[2]} ${match?.[3] ?? ''}`)
      return 'the status line is another';
    return formatReplyHead(read.value) === text ? fieldsDiffer(fields, match?.[4] ?? '') : 'is written as another head';
  },
};

/** The framing that the header lines declare, derived from the lines themselves; 'refused' if ambiguous. */
function slowFraming(fields: readonly HeaderField[], version: string, isReply: boolean): BodyFraming | 'refused' {
  const valuesOf = (name: string): string[] =>
    fields.map((field) => field.line).filter((line) => line.toLowerCase().startsWith(`${name}:`));
  const [lengths, codings] = [valuesOf('content-length'), valuesOf('transfer-encoding')];
  if (lengths.length + codings.length > 1) return 'refused';
  const [length] = lengths;
  const [coding] = codings;
  if (coding !== undefined)
    return version === '1.1' && /^[^:]*: *chunked *$/i.test(coding) ? { kind: 'chunked' } : 'refused';
  if (length === undefined) return isReply ? { kind: 'until-close' } : { kind: 'none' };
  const digits = /^[^:]*: *([0-9]+) *$/.exec(length)?.[1] ?? 'none';
  const plain = isReply ? digits.replace(/^0+(?=[0-9])/, '') : digits;
  const value = Number(plain);
  return String(value) === plain && Number.isSafeInteger(value) && digits.length < 40
    ? { kind: 'length', length: value }
    : 'refused';
}

const framings: FuzzTarget = {
  name: 'framings',
  seeds: [
    'POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n',
    'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 005\r\n\r\n',
    'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nX: 1\r\n\r\n',
  ],
  words: WORDS,
  check(text) {
    const request = parseRequestHead(text, LIMITS);
    const reply = parseReplyHead(text, LIMITS);
    if (!request.ok && !reply.ok) return null;
    const fast = request.ok ? requestFraming(request.value) : reply.ok ? replyFraming(reply.value, 'GET') : null;
    const head = request.ok ? request.value : reply.ok ? reply.value : null;
    if (fast === null || head === null) return null;
    const bodiless = reply.ok && (reply.value.status < 200 || [204, 304].includes(reply.value.status));
    const slow = bodiless ? { kind: 'none' } : slowFraming(head.fields, head.version, reply.ok);
    const said = fast.ok ? fast.value : 'refused';
    return JSON.stringify(said) === JSON.stringify(slow)
      ? null
      : `${JSON.stringify(said)}, not ${JSON.stringify(slow)}`;
  },
};

interface Dechunked {
  readonly used: number;
  readonly data: string;
  readonly trailers: string;
}

/** A whole chunked body at the start of the text, read chunk by chunk; null if there is none. */
function slowDechunked(text: string): Dechunked | null {
  let data = '';
  for (let at = 0; ;) {
    const line = /^([0-9A-Fa-f]{1,16})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n/.exec(text.slice(at));
    if (line === null) return null;
    at += line[0].length;
    const size = Number.parseInt(line[1] ?? '', 16);
    if (size === 0) return slowTrailers(text, at, data);
    if (!Number.isSafeInteger(size) || text.slice(at + size, at + size + 2) !== '\r\n') return null;
    data += text.slice(at, at + size);
    at += size + 2;
  }
}

function slowTrailers(text: string, at: number, data: string): Dechunked | null {
  const section = new RegExp(`^((?:${TOKEN}:${TEXT}\\r\\n)*)\\r\\n`).exec(text.slice(at));
  if (section === null || /^(content-length|transfer-encoding):/im.test(section[1] ?? '')) return null;
  return { used: at + section[0].length, data, trailers: section[1] ?? '' };
}

function fastDechunked(pieces: readonly Uint8Array[]): Dechunked | null {
  const reader = new BodyReader({ kind: 'chunked' }, { collectTrailers: true });
  const data: Uint8Array[] = [];
  let used = 0;
  for (const piece of pieces) {
    const fed = reader.feed(piece);
    if (!fed.ok) return null;
    used += fed.value.used;
    data.push(...fed.value.data);
    if (reader.done) return { used, data: Buffer.concat(data).toString('latin1'), trailers: reader.trailers };
  }
  return null;
}

const chunkedBodies: FuzzTarget = {
  name: 'chunked bodies',
  seeds: [
    '5\r\nhello\r\n0\r\n\r\n',
    'a;x="y"\r\n0123456789\r\n01\r\n!\r\n0;z\r\nX-A: 1\r\nx-b:\r\n\r\nGET / HTTP/1.1\r\n\r\n',
    '0\r\n\r\n',
  ],
  words: WORDS,
  check(input) {
    const bytes = Buffer.from(input, 'latin1');
    const whole = fastDechunked([bytes]);
    const inPieces = fastDechunked(piecesOf(bytes, hashOf(input), 7));
    const slow = slowDechunked(input);
    if (JSON.stringify(whole) !== JSON.stringify(inPieces)) return 'is read differently in pieces';
    if (JSON.stringify(whole) !== JSON.stringify(slow)) return `${JSON.stringify(whole)}, not ${JSON.stringify(slow)}`;
    return whole === null ? null : findRewriteProblem(whole);
  },
};

/** Our writer's output must parse back to the same. */
function findRewriteProblem({ data, trailers }: Dechunked): string | null {
  const body = [...encodeChunk([Buffer.from(data, 'latin1')]), encodeLastChunk(trailers)];
  const again = slowDechunked(Buffer.concat(body).toString('latin1'));
  return again?.data === data && again.trailers === trailers ? null : 'is written as another body';
}

const bodies: FuzzTarget = {
  name: 'bodies with a length, and to the end',
  seeds: ['\x05hello and more', '\x00', '\xffnot so long'],
  words: ['\x00', '\x01', '\xff', 'abc'],
  check(input) {
    const length = input.charCodeAt(0);
    if (Number.isNaN(length)) return null;
    const rest = Buffer.from(input.slice(1), 'latin1');
    for (const framing of [{ kind: 'length', length } as const, { kind: 'until-close' } as const]) {
      const reader = new BodyReader(framing);
      const data: Uint8Array[] = [];
      for (const piece of piecesOf(rest, hashOf(input), 5)) {
        const fed = reader.feed(piece);
        if (!fed.ok) return `refused: ${fed.error.reason}`;
        data.push(...fed.value.data);
      }
      const expected = framing.kind === 'length' ? rest.subarray(0, length) : rest;
      if (!Buffer.concat(data).equals(expected)) return `${framing.kind}: other bytes than were sent`;
      const whole = framing.kind === 'until-close' || rest.length >= length;
      if (reader.end().ok !== whole)
        return `${framing.kind}: ${whole ? 'a whole body is not' : 'a part of a body is'} whole`;
    }
    return null;
  },
};

export const HTTP1_TARGETS: readonly FuzzTarget[] = [requestHead, replyHead, framings, chunkedBodies, bodies];
