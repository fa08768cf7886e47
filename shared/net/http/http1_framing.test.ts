import { Buffer } from 'node:buffer';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkedBody, damagedText } from '../../../tools/fuzz/http1_arbitraries.ts';
import { MAX_SIZE_LINE_BYTES, MAX_TRAILER_BYTES } from './http1_chunked.ts';
import { BodyReader, encodeChunk, encodeLastChunk, replyFraming, requestFraming } from './http1_framing.ts';
import { IllegalHeadTextError, parseReplyHead, parseRequestHead } from './http1_head.ts';
import type { BodyFraming } from './http1_framing.ts';

const LIMITS = { maxHeaders: 200 };
const CHUNKED: BodyFraming = { kind: 'chunked' };
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

function requestFramingOf(lines: readonly string[], version = '1.1'): unknown {
  const head = parseRequestHead([`POST / HTTP/${version}`, ...lines, '', ''].join('\r\n'), LIMITS);
  if (!head.ok) throw new Error(head.error.message);
  const framing = requestFraming(head.value);
  return framing.ok ? framing.value : framing.error.reason;
}

function replyFramingOf(status: number, lines: readonly string[], method = 'GET'): unknown {
  const head = parseReplyHead([`HTTP/1.1 ${status} x`, ...lines, '', ''].join('\r\n'), LIMITS);
  if (!head.ok) throw new Error(head.error.message);
  const framing = replyFraming(head.value, method);
  return framing.ok ? framing.value : framing.error.reason;
}

describe('requestFraming', () => {
  it('reads none, a length and chunked', () => {
    expect(requestFramingOf([])).toEqual({ kind: 'none' });
    expect(requestFramingOf(['content-length:0'])).toEqual({ kind: 'length', length: 0 });
    expect(requestFramingOf([`Content-Length: ${Number.MAX_SAFE_INTEGER}`])).toEqual({
      kind: 'length',
      length: Number.MAX_SAFE_INTEGER,
    });
    expect(requestFramingOf(['Transfer-Encoding: Chunked'])).toEqual(CHUNKED);
    expect(requestFramingOf(['Content-Length: 5'], '1.0')).toEqual({ kind: 'length', length: 5 });
  });

  it('refuses a length with a coding, in any order and however malformed', () => {
    for (const length of ['5', '', 'x', '+5']) {
      const both = [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'];
      expect(requestFramingOf(both)).toBe('content_length_and_transfer_encoding');
      expect(requestFramingOf(both.toReversed())).toBe('content_length_and_transfer_encoding');
    }
  });

  it('refuses every length except plain digits that a number represents exactly', () => {
    const property = fc.property(
      fc.string({ unit: fc.constantFrom(...'0159 +-,.;x"\t'.split('')), maxLength: 20 }),
      (value) => {
        const trimmed = value.replace(/^ +| +$/g, '');
        const isPlain = /^(?:0|[1-9]\d*)$/.test(trimmed) && Number.isSafeInteger(Number(trimmed));
        const expected = isPlain ? { kind: 'length', length: Number(trimmed) } : 'invalid_content_length';
        expect(requestFramingOf([`Content-Length: ${value}`])).toEqual(expected);
      },
    );
    fc.assert(property, { numRuns: 500 });
  });

  it('refuses a second Content-Length even if it is the same', () => {
    expect(requestFramingOf(['Content-Length: 5', 'CONTENT-LENGTH: 5'])).toBe('invalid_content_length');
  });

  it('refuses every coding except one plain chunked, and any in HTTP/1.0', () => {
    const values = ['', 'gzip, chunked', 'chunked, chunked', 'identity', 'chunked;a', '\tchunked', 'chunked\xa0'];
    const verdicts = values.map((value) => requestFramingOf([`Transfer-Encoding: ${value}`]));
    expect(new Set(verdicts)).toEqual(new Set(['unsupported_transfer_encoding']));
    const chunked = 'Transfer-Encoding: chunked';
    expect(requestFramingOf([chunked, chunked])).toBe('unsupported_transfer_encoding');
    expect(requestFramingOf([chunked], '1.0')).toBe('unsupported_transfer_encoding');
  });
});

describe('replyFraming', () => {
  it('has no body for HEAD, 1xx, 204 and 304, regardless of headers', () => {
    const lines = ['Content-Length: 5', 'Transfer-Encoding: chunked'];
    for (const status of [100, 101, 103, 199, 204, 304])
      expect(replyFramingOf(status, lines)).toEqual({ kind: 'none' });
    expect(replyFramingOf(200, lines, 'HEAD')).toEqual({ kind: 'none' });
    expect(replyFramingOf(200, lines, 'head')).toBe('content_length_and_transfer_encoding');
  });

  it('reads until the close if nothing is declared', () => {
    expect(replyFramingOf(200, [])).toEqual({ kind: 'until-close' });
    expect(replyFramingOf(404, [], 'CONNECT')).toEqual({ kind: 'until-close' });
  });

  it('accepts a length with leading zeros, but no other form', () => {
    expect(replyFramingOf(200, ['Content-Length: 0000000012'])).toEqual({ kind: 'length', length: 12 });
    const values = ['', '+1', '1, 1', '1 1', '9007199254740992', `${'0'.repeat(60)}1`];
    const verdicts = values.map((value) => replyFramingOf(200, [`Content-Length: ${value}`]));
    expect(new Set(verdicts)).toEqual(new Set(['invalid_content_length']));
  });

  it('refuses two framings, two lengths, other codings and a tunnel', () => {
    expect(replyFramingOf(200, ['Content-Length: 5', 'Transfer-Encoding: chunked'])).toBe(
      'content_length_and_transfer_encoding',
    );
    expect(replyFramingOf(200, ['Content-Length: 5', 'Content-Length: 5'])).toBe('invalid_content_length');
    expect(replyFramingOf(200, ['Transfer-Encoding: gzip'])).toBe('unsupported_transfer_encoding');
    expect(replyFramingOf(200, [], 'CONNECT')).toBe('connect_reply_unsupported');
  });
});

interface ReadBody {
  readonly data: string;
  readonly used: number;
  readonly done: boolean;
  readonly trailers: string;
  readonly error: string | null;
}

/** Feeds `input` in pieces that end at `cuts`; stops at the first refusal. */
function read(framing: BodyFraming, input: Buffer, cuts: readonly number[] = []): ReadBody {
  const reader = new BodyReader(framing, { collectTrailers: true });
  const ends = [...new Set(cuts.map((cut) => cut % (input.length + 1)))].toSorted((a, b) => a - b).concat(input.length);
  let [from, used, data, error] = [0, 0, '', null as string | null];
  for (const end of ends) {
    const piece = reader.feed(input.subarray(from, end));
    if (!piece.ok) {
      error = piece.error.message;
      break;
    }
    used += piece.value.used;
    data += Buffer.concat(piece.value.data).toString('latin1');
    from = end;
  }
  return {
    data: error === null ? data : '',
    used: error === null ? used : 0,
    done: reader.done,
    trailers: reader.trailers,
    error,
  };
}

/** A chunked body with a chunk extension of `length` bytes, and one with a trailer section of `length` bytes. */
const withExtension = (length: number): Buffer => bytes(`1;${'x'.repeat(length)}\r\na\r\n0\r\n\r\n`);
const withTrailers = (length: number): Buffer => bytes(`0\r\nA:${'x'.repeat(length - 4)}\r\n\r\n`);

describe('BodyReader', () => {
  const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 12 });

  it('reads a legal chunked body the same for any split, and stops at its end', () => {
    const property = fc.property(chunkedBody, cuts, (text, places) => {
      const whole = read(CHUNKED, bytes(`${text}NEXT`));
      expect(whole).toMatchObject({ done: true, used: text.length, error: null });
      expect(read(CHUNKED, bytes(`${text}NEXT`), places)).toEqual(whole);
    });
    fc.assert(property, { numRuns: 300 });
  });

  it('judges a damaged chunked body the same for any split', () => {
    const property = fc.property(damagedText(chunkedBody), cuts, (text, places) => {
      expect(read(CHUNKED, bytes(text), places)).toEqual(read(CHUNKED, bytes(text)));
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it('reads the same byte by byte', () => {
    const body = bytes('3;a="b"\r\nabc\r\n0A\r\n0123456789\r\n0;z\r\nT: u\r\n\r\n');
    const everywhere = Array.from({ length: body.length }, (_, at) => at);
    const expected = { data: 'abc0123456789', used: body.length, done: true, trailers: 'T: u\r\n', error: null };
    expect(read(CHUNKED, body, everywhere)).toEqual(expected);
  });

  it('reads a length and leaves the following bytes', () => {
    expect(read({ kind: 'length', length: 3 }, bytes('abcNEXT'), [1, 2])).toMatchObject({
      data: 'abc',
      used: 3,
      done: true,
    });
    expect(read({ kind: 'length', length: 3 }, bytes('ab'))).toMatchObject({ data: 'ab', used: 2, done: false });
  });

  it('is done at once without a body', () => {
    for (const framing of [{ kind: 'none' }, { kind: 'length', length: 0 }] as const) {
      expect(new BodyReader(framing).done).toBe(true);
      expect(read(framing, bytes('NEXT'))).toMatchObject({ data: '', used: 0, done: true });
    }
  });

  it('returns subarrays, not copies', () => {
    const input = bytes('3\r\nabc\r\n0\r\n\r\n');
    const piece = new BodyReader(CHUNKED).feed(input);
    expect(piece.ok && piece.value.data.every((part) => part.buffer === input.buffer)).toBe(true);
  });

  it('reads until the close, and only then is done', () => {
    const reader = new BodyReader({ kind: 'until-close' });
    expect(reader.feed(bytes('abc'))).toMatchObject({ ok: true, value: { used: 3 } });
    expect(reader.done).toBe(false);
    expect(reader.end().ok).toBe(true);
    expect(reader.done).toBe(true);
    expect(reader.feed(bytes('late'))).toMatchObject({ ok: true, value: { used: 0, data: [] } });
  });

  it('refuses a close before the end as truncated_body', () => {
    const length = new BodyReader({ kind: 'length', length: 3 });
    length.feed(bytes('ab'));
    expect(length.end()).toMatchObject({ ok: false, error: { reason: 'truncated_body' } });
    const chunked = new BodyReader(CHUNKED);
    chunked.feed(bytes('1\r\na\r\n0\r\n'));
    expect(chunked.end()).toMatchObject({ ok: false, error: { reason: 'truncated_body' } });
    chunked.feed(bytes('\r\n'));
    expect(chunked.end().ok).toBe(true);
  });

  it('keeps refusing after a bad chunk', () => {
    const reader = new BodyReader(CHUNKED);
    for (const text of ['x', '0\r\n\r\n', '']) {
      expect(reader.feed(bytes(text))).toMatchObject({ ok: false, error: { reason: 'invalid_chunk' } });
    }
    expect(reader.done).toBe(false);
    expect(reader.end()).toMatchObject({ ok: false, error: { reason: 'invalid_chunk' } });
  });

  it('bounds a chunk extension and a trailer section', () => {
    expect(read(CHUNKED, withExtension(MAX_SIZE_LINE_BYTES)).done).toBe(true);
    expect(read(CHUNKED, withExtension(MAX_SIZE_LINE_BYTES + 1)).error).toContain('too long');
    expect(read(CHUNKED, withTrailers(MAX_TRAILER_BYTES)).done).toBe(true);
    expect(read(CHUNKED, withTrailers(MAX_TRAILER_BYTES + 1)).error).toContain('too long');
  });

  it('keeps no trailers unless asked to', () => {
    const reader = new BodyReader(CHUNKED);
    reader.feed(bytes('0\r\nA: b\r\n\r\n'));
    expect([reader.done, reader.trailers]).toEqual([true, '']);
  });
});

describe('chunk and encodeLastChunk', () => {
  it('write a body that the reader reads back', () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });
    const property = fc.property(pieces, fc.constantFrom('', 'A: b\r\n', 'A: b\r\nC:\r\n'), (parts, trailers) => {
      const written = Buffer.concat([
        ...parts.flatMap((part) => encodeChunk([part, part.subarray(0, 3)])),
        encodeLastChunk(trailers),
      ]);
      const data = Buffer.concat(parts.flatMap((part) => [part, part.subarray(0, 3)])).toString('latin1');
      expect(read(CHUNKED, written)).toEqual({ data, used: written.length, done: true, trailers, error: null });
    });
    fc.assert(property);
  });

  it('return nothing for empty data, which would end the body', () => {
    expect(encodeChunk([])).toEqual([]);
    expect(encodeChunk([new Uint8Array(), new Uint8Array()])).toEqual([]);
  });

  it('throw on trailers that are not header lines', () => {
    for (const text of ['A: b', 'A b\r\n', '\r\n', 'A: b\r\n\r\nGET / HTTP/1.1\r\n']) {
      expect(() => encodeLastChunk(text)).toThrow(IllegalHeadTextError);
    }
  });
});
