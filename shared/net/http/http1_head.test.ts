import { Buffer } from 'node:buffer';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replyHeadText, requestHeadText } from '../../../tools/fuzz/http1_arbitraries.ts';
import {
  IllegalHeadTextError,
  connectionTokens,
  fieldValues,
  findHeadEnd,
  formatReplyHead,
  formatRequestHead,
  headerField,
  parseReplyHead,
  parseRequestHead,
  parseTrailers,
  skipEmptyLine,
} from './http1_head.ts';
import type { ReplyHead, RequestHead } from './http1_head.ts';
import type { Result } from '../../model/result.ts';
import type { Problem } from '../../model/problem.ts';
import type { HeadProblemReason } from './http1_head_problems.ts';

const LIMITS = { maxHeaders: 200 };
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

function requestHead(text: string): RequestHead {
  const result = parseRequestHead(text, LIMITS);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

function errorOf(result: Result<unknown, Problem<HeadProblemReason>>): Problem<HeadProblemReason> | null {
  return result.ok ? null : result.error;
}

describe('findHeadEnd', () => {
  it('finds the first CRLF CRLF like a plain search, from any start', () => {
    const text = fc
      .array(fc.constantFrom('\r', '\n', '\r\n', 'a', 'bcd'), { maxLength: 30 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, fc.nat({ max: 40 }), (input, from) => {
        const found = input.indexOf('\r\n\r\n', from);
        expect(findHeadEnd(bytes(input), from)).toBe(found === -1 ? -1 : found + 4);
      }),
      { numRuns: 2000 },
    );
  });

  it('finds the end when it continues three bytes before the old end, for any split of the input', () => {
    const input = bytes('GET / HTTP/1.1\r\nA: b\r\n\r\n');
    for (let split = 0; split < input.length; split += 1) {
      expect(findHeadEnd(input.subarray(0, split), 0)).toBe(-1);
      expect(findHeadEnd(input, Math.max(0, split - 3))).toBe(input.length);
    }
  });
});

describe('skipEmptyLine', () => {
  it('skips one CRLF and nothing else', () => {
    expect(skipEmptyLine(bytes('\r\n\r\nGET'), 0)).toBe(2);
    expect(skipEmptyLine(bytes('GET'), 0)).toBe(0);
    expect(skipEmptyLine(bytes('\r'), 0)).toBe(0);
    expect(skipEmptyLine(bytes('\nGET'), 0)).toBe(0);
  });
});

describe('a legal head', () => {
  it('of a request survives reading and writing byte for byte', () => {
    const property = fc.property(requestHeadText, (text) => {
      expect(formatRequestHead(requestHead(text))).toBe(text);
    });
    fc.assert(property);
  });

  it('of a reply survives reading and writing byte for byte', () => {
    const property = fc.property(replyHeadText, (text) => {
      const head = parseReplyHead(text, LIMITS);
      expect(head.ok && formatReplyHead(head.value)).toBe(text);
    });
    fc.assert(property);
  });

  it('returns its parts, with names in lower case and values trimmed', () => {
    const head = requestHead('Frob a/b?c HTTP/1.0\r\nX-ODD:\t v w \r\nhost:h\r\nEmpty: \r\n\r\n');
    expect(head).toEqual({
      method: 'Frob',
      target: 'a/b?c',
      version: '1.0',
      fields: [
        { name: 'x-odd', line: 'X-ODD:\t v w ', value: 'v w' },
        { name: 'host', line: 'host:h', value: 'h' },
        { name: 'empty', line: 'Empty: ', value: '' },
      ],
    });
  });

  it('of a reply keeps its status line unchanged', () => {
    for (const [startLine, status, reason] of [
      ['HTTP/1.1 200 OK', 200, 'OK'],
      ['HTTP/1.0 404 ', 404, ''],
      ['HTTP/1.1 599', 599, ''],
      ['HTTP/1.1 200  \tDone \xe9 ', 200, ' \tDone \xe9 '],
    ] as const) {
      const head = parseReplyHead(`${startLine}\r\n\r\n`, LIMITS);
      expect(head.ok && head.value).toMatchObject({ startLine, status, reason, fields: [] });
    }
  });
});

describe('a refused head', () => {
  const base = 'GET / HTTP/1.1\r\nHost: a.example\r\n';

  it('contains a control character or one beyond latin1', () => {
    const codes = [...Array(32).keys(), 0x7f, 0x100, 0x10a, 0x10d, 0x2028].filter((code) => code !== 9);
    const texts = codes
      .map((code) => String.fromCharCode(code))
      .flatMap((odd) => [`G${odd}T / HTTP/1.1\r\n\r\n`, `GET /${odd} HTTP/1.1\r\n\r\n`, `${base}A: b${odd}c\r\n\r\n`]);
    expect(texts.filter((text) => parseRequestHead(text, LIMITS).ok)).toEqual([]);
    const replies = codes.map((code) => `HTTP/1.1 200 a${String.fromCharCode(code)}\r\n\r\n`);
    expect(replies.filter((text) => parseReplyHead(text, LIMITS).ok)).toEqual([]);
  });

  it('contains a non-token character in a name', () => {
    const codes = [...Array(0x120).keys()];
    const accepted = codes
      .map((code) => String.fromCharCode(code))
      .filter((character) => parseRequestHead(`${base}A${character}B: c\r\n\r\n`, LIMITS).ok);
    expect(accepted.join('')).toBe("!#$%&'*+-.0123456789:ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~");
  });

  it('does not end with its only CRLF CRLF', () => {
    const texts = ['', '\r\n', 'GET / HTTP/1.1\r\n', base, `${base}\r`, `${base}\r\nA: b\r\n\r\n`, `${base}\r\n\r\n`];
    const reasons = texts.map((text) => errorOf(parseRequestHead(text, LIMITS))?.reason);
    expect(reasons).toEqual(texts.map(() => 'incomplete_head'));
    expect(errorOf(parseRequestHead('\r\n\r\n', LIMITS))?.reason).toBe('invalid_request_line');
    expect(errorOf(parseReplyHead('\r\n\r\n', LIMITS))?.reason).toBe('invalid_status_line');
    expect(errorOf(parseReplyHead('HTTP/1.1 200', LIMITS))?.reason).toBe('incomplete_head');
  });

  it('has more headers than the limit', () => {
    const text = `GET / HTTP/1.1\r\n${'A: b\r\n'.repeat(3)}\r\n`;
    expect(parseRequestHead(text, { maxHeaders: 3 }).ok).toBe(true);
    expect(errorOf(parseRequestHead(text, { maxHeaders: 2 }))?.reason).toBe('too_many_headers');
  });

  it('is explained by the line and the fix, without quoting the head', () => {
    const error = errorOf(parseRequestHead(`${base}Authorization : hunter2\r\n\r\n`, LIMITS));
    expect(error).toEqual({
      reason: 'invalid_header',
      message: 'header line 2 has whitespace in or after its name; send "Name: value"',
    });
    const texts = [
      `${base}A: hunter2\0\r\n\r\n`,
      `${base} hunter2\r\n\r\n`,
      'hunter2\r\n\r\n',
      `${base}hunter2\r\n\r\n`,
    ];
    for (const text of texts) expect(errorOf(parseRequestHead(text, LIMITS))?.message).not.toContain('hunter2');
  });
});

describe('a legal head that loses or gains one byte of structure', () => {
  it('is refused, or read as the bytes that it now is', () => {
    const put = fc.constantFrom('\r', '\n', '\0', '');
    const property = fc.property(requestHeadText, fc.nat(), put, (text, place, inserted) => {
      const at = place % text.length;
      const damaged = text.slice(0, at) + inserted + text.slice(at + 1);
      const result = parseRequestHead(damaged, LIMITS);
      expect(result.ok ? formatRequestHead(result.value) : damaged).toBe(damaged);
    });
    fc.assert(property, { numRuns: 1000 });
  });
});

describe('headerField', () => {
  it('spells the name as given and looks it up in lower case', () => {
    expect(headerField('X-Api-Key', 'k 1')).toEqual({ name: 'x-api-key', line: 'X-Api-Key: k 1', value: 'k 1' });
  });

  it('throws on characters that could break the head', () => {
    const illegal = [
      ['', 'v'],
      ['A B', 'v'],
      ['A:', 'v'],
      ['A', 'v\r\nB: c'],
      ['A', 'v\0'],
      ['A', 'v\u010a'],
    ] as const;
    for (const [name, value] of illegal) expect(() => headerField(name, value)).toThrow(IllegalHeadTextError);
  });

  it('never includes the value in the error', () => {
    expect(() => headerField('A', 'hunter2\n')).toThrow(/^(?!.*hunter2)/);
  });
});

describe('formatRequestHead', () => {
  const head: RequestHead = { method: 'GET', target: '/', version: '1.1', fields: [headerField('Host', 'a')] };

  it('writes our own head', () => {
    expect(formatRequestHead(head)).toBe('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  });

  it('throws on a method or a target that could break the request line', () => {
    for (const method of ['', 'G T', 'G\r\n'])
      expect(() => formatRequestHead({ ...head, method })).toThrow(IllegalHeadTextError);
    for (const target of ['', '/a b', '/\r\n', '/\u010a']) {
      expect(() => formatRequestHead({ ...head, target })).toThrow(IllegalHeadTextError);
    }
  });
});

describe('formatReplyHead', () => {
  it('writes our own head, which parses back', () => {
    const head: ReplyHead = {
      version: '1.1',
      status: 403,
      reason: 'Forbidden',
      startLine: 'HTTP/1.1 403 Forbidden',
      fields: [headerField('Content-Length', '0')],
    };
    expect(formatReplyHead(head)).toBe('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    expect(parseReplyHead(formatReplyHead(head), LIMITS)).toEqual({ ok: true, value: head });
  });

  it('throws on a status line that could break the head', () => {
    const startLine = 'HTTP/1.1 200 a\r\nSet-Cookie: b';
    const head: ReplyHead = { version: '1.1', status: 200, reason: '', startLine, fields: [] };
    expect(() => formatReplyHead(head)).toThrow(IllegalHeadTextError);
  });
});

describe('fieldValues and connectionTokens', () => {
  const { fields } = requestHead(
    'GET / HTTP/1.1\r\nConnection: Keep-Alive, X-Drop\r\nA: 1\r\na: 2\r\nconnection: , close ,\r\n\r\n',
  );

  it('return every value in order, and every option once, in lower case', () => {
    expect(fieldValues(fields, 'a')).toEqual(['1', '2']);
    expect(fieldValues(fields, 'b')).toEqual([]);
    expect([...connectionTokens(fields)]).toEqual(['keep-alive', 'x-drop', 'close']);
    expect(connectionTokens([]).size).toBe(0);
  });
});

describe('parseTrailers', () => {
  it('reads header lines without the empty line', () => {
    expect(parseTrailers('', LIMITS)).toEqual({ ok: true, value: [] });
    const trailers = parseTrailers('A: b\r\nC:\r\n', LIMITS);
    expect(trailers.ok && trailers.value.map((field) => field.line)).toEqual(['A: b', 'C:']);
  });

  it('refuses anything else', () => {
    const texts = ['A: b', 'A: b\r\n\r\n', 'A b\r\n', '\r\n', 'A: b\r\n\r\nGET / HTTP/1.1\r\n', 'A: b\n'];
    expect(texts.filter((text) => parseTrailers(text, LIMITS).ok)).toEqual([]);
  });
});
