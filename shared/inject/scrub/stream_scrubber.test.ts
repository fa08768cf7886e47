import { Buffer } from 'node:buffer';
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { latin1Bytes, latin1Text, percentEncode } from '../byte_text.ts';
import { SAMPLE_SEARCH_KEY } from '../testing/sample_requests.ts';
import { joinBytes } from '../join_bytes.ts';
import { compileScrubPatterns } from './patterns.ts';
import { StreamScrubber } from './stream_scrubber.ts';

/** Spellings of a secret, made without the code under test. `before` and `after` surround it. */
const SPELLINGS: Readonly<Record<string, (secret: string, before: string, after: string) => string>> = {
  raw: (secret) => utf8(secret),
  base64: (secret, before, after) => Buffer.from(before + secret + after).toString('base64'),
  'base64 for URLs': (secret, before, after) => Buffer.from(before + secret + after).toString('base64url'),
  'base64 in JSON with slashes escaped': (secret, before, after) =>
    Buffer.from(before + secret + after)
      .toString('base64')
      .replaceAll('/', String.raw`\/`),
  'base64, percent-encoded': (secret, before, after) =>
    encodeURIComponent(Buffer.from(before + secret + after).toString('base64')),
  'base64 wrapped at 64 columns': (secret, before, after) => wrapBase64(60, before + secret + after, 64, '\n'),
  'base64 wrapped at 76 columns, with CRLF': (secret, before, after) =>
    wrapBase64(70, before + secret + after, 76, '\r\n'),
  'base64 wrapped and indented': (secret, before, after) => wrapBase64(60, before + secret + after, 64, '\n      '),
  'base64 wrapped, in a JSON string': (secret, before, after) =>
    wrapBase64(60, before + secret + after, 64, String.raw`\n`),
  percent: (secret) => encodeURIComponent(secret),
  'percent, lower-case hex': (secret) => percentEncode(secret).replaceAll(/%../g, (escape) => escape.toLowerCase()),
  'percent, every byte': (secret) => Buffer.from(secret).toString('hex').replaceAll(/../g, '%$&'),
  'percent, twice': (secret) => encodeURIComponent(Buffer.from(secret).toString('hex').replaceAll(/../g, '%$&')),
  'percent, some bytes': (secret) =>
    Buffer.from(secret)
      .toString('hex')
      .replaceAll(/(..)(..)?/g, (_pair, first: string, second = '') => `%${first}${hexText(second)}`),
  form: (secret) => new URLSearchParams({ a: secret }).toString().slice(2),
  JSON: (secret) => utf8(JSON.stringify(secret).slice(1, -1)),
  'JSON in JSON': (secret) => utf8(JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)),
  'JSON with slashes escaped': (secret) =>
    utf8(
      JSON.stringify(secret)
        .slice(1, -1)
        .replaceAll('/', String.raw`\/`),
    ),
  'JSON, ASCII only': (secret) =>
    JSON.stringify(secret)
      .slice(1, -1)
      .replaceAll(/[^ -~]/g, unit),
  'JSON, every unit escaped': (secret) => secret.replaceAll(/[^]/g, unit),
  'JSON, every unit escaped, in JSON': (secret) => secret.replaceAll(/[^]/g, unit).replaceAll('\\', '\\\\'),
  'JavaScript, code points in braces': (secret) =>
    Array.from(secret, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`).join(''),
  'C and Python, hex bytes': (secret) =>
    Buffer.from(secret)
      .toString('hex')
      .replaceAll(/../g, String.raw`\x$&`),
  hex: (secret) => Buffer.from(secret).toString('hex'),
  'hex in capitals': (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  HTML: (secret) =>
    utf8(secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')),
  'HTML, decimal references': (secret) =>
    Array.from(secret, (character) => `&#${character.codePointAt(0) ?? 0};`).join(''),
  'HTML, hex references': (secret) =>
    Array.from(secret, (character) => `&#X${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()};`).join(''),
  'UTF-16, little-endian': (secret) => Buffer.from(secret, 'utf16le').toString('latin1'),
  'UTF-16, big-endian': (secret) => Buffer.from(secret, 'utf16le').swap16().toString('latin1'),
};

/** Base64 of the secret behind `filler` characters, broken into lines. */
function wrapBase64(filler: number, text: string, columns: number, lineEnd: string): string {
  const encoded = Buffer.from('.'.repeat(filler / 2) + text + '.'.repeat(filler)).toString('base64');
  return encoded.replaceAll(new RegExp(`.{${columns}}(?!$)`, 'g'), `$&${lineEnd}`);
}

function hexText(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1');
}

function utf8(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function unit(character: string): string {
  return String.raw`\u` + character.charCodeAt(0).toString(16).padStart(4, '0');
}

/** The output for `text` (latin1) with a split at each of `cuts`. */
function scrubText(secrets: readonly string[], text: string, cuts: readonly number[]): string {
  const scrubber = new StreamScrubber(compileScrubPatterns(secrets, SAMPLE_SEARCH_KEY));
  return latin1Text(joinBytes([...pieces(text, cuts).flatMap((piece) => scrubber.push(piece)), ...scrubber.flush()]));
}

function pieces(text: string, cuts: readonly number[]): Uint8Array[] {
  const bytes = latin1Bytes(text);
  const ends = cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.slice(index === 0 ? 0 : ends[index - 1], end));
}

const anySecret = fc.oneof(
  fc.string({ minLength: 8, maxLength: 40, unit: fc.constantFrom(...'abcXYZ0189-_.'.split('')) }),
  // Escapes within a secret are undone with the writer's own; eight bytes must remain.
  fc.string({ minLength: 16, maxLength: 30, unit: fc.constantFrom(...'aB3+/"\\<&>\' %='.split('')) }),
  fc.string({ minLength: 8, maxLength: 20, unit: 'grapheme' }),
);
const anyCuts = fc.array(fc.nat(400), { maxLength: 6 });
const anyText = fc.string({ maxLength: 60, unit: fc.constantFrom(...'abcXYZ019 "{}:,\n%\\u'.split('')) });

describe('StreamScrubber', () => {
  for (const [name, spell] of Object.entries(SPELLINGS)) {
    it(`masks a secret spelled as ${name}, wherever the stream is split`, () => {
      fc.assert(
        fc.property(anySecret, anyText, anyText, anyCuts, fc.nat(2), (secret, before, after, cuts, shift) => {
          const planted = spell(secret, 'xyz'.slice(0, shift), 'q');
          // No other escape may precede the secret, because it could change the secret's meaning.
          const text = `${before}.${planted}.${after}`;
          const result = scrubText([secret], text, cuts);
          expect(result.length).toBe(text.length);
          const region = result.slice(before.length + 1, before.length + 1 + planted.length);
          const unmasked = region.replaceAll(/[*\r\n]/g, '').length;
          // Characters at the ends of base64 also have bits of their neighbours; they may stay, like the filler.
          const filling = name.startsWith('base64 wrapped')
            ? wrapBase64(name.includes('76') ? 70 : 60, '', 999, '').length
            : 0;
          const blanks = filling === 0 ? 0 : 40;
          expect(unmasked).toBeLessThanOrEqual(name.startsWith('base64') ? 4 + 8 + filling + blanks : 0);
          expect(scrubText([secret], result, [])).toBe(result);
        }),
        { numRuns: 100 },
      );
    });
  }

  it('masks exactly the secret and leaves every other byte', () => {
    const secret = 'S3CR3T-TOKEN';
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.uint8Array({ maxLength: 80 }), anyCuts, (head, tail, cuts) => {
        const [before, after] = [latin1Text(head), latin1Text(tail)];
        expect(scrubText([secret], before + secret + after, cuts)).toBe(before + '*'.repeat(secret.length) + after);
      }),
    );
  });

  it('returns a stream without the secret byte for byte', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), anyCuts, (bytes, cuts) => {
        expect(scrubText(['S3CR3T-TOKEN'], latin1Text(bytes), cuts)).toBe(latin1Text(bytes));
      }),
    );
  });

  it('masks every byte of overlapping matches', () => {
    const secrets = ['abcdefgh', 'efghijklmn', 'defghijk'];
    for (let cut = 0; cut <= 18; cut += 1) {
      expect(scrubText(secrets, '..abcdefghijklmn..', [cut])).toBe('..**************..');
      expect(scrubText(secrets, '..defghijklm..', [cut])).toBe('..********lm..');
    }
  });

  it('waits for the earliest of several started patterns', () => {
    for (let cut = 0; cut <= 16; cut += 1) {
      expect(scrubText(['abcdefghijklmnop', 'cdefghijkQRSTU', '01234567'], 'abcdefghijklmnop', [cut])).toBe(
        '*'.repeat(16),
      );
    }
  });

  it('knows the forms and the escapes of text writers', () => {
    expect(scrubText(["it's *a~b"], 'a=it%27s+*a%7Eb&c', [])).toBe(`a=${'*'.repeat(13)}&c`);
  });

  it('masks a secret within a longer unfinished one, and nothing else', () => {
    for (let cut = 0; cut <= 12; cut += 1) {
      expect(scrubText(['wxabcdefghyz12', 'abcdefgh'], 'wxabcdefgh!!', [cut])).toBe('wx********!!');
    }
  });

  it('masks a secret at the end of the stream that is also the beginning of a longer one', () => {
    for (let cut = 0; cut <= 10; cut += 1) {
      expect(scrubText(['wxabcdefghyz12', 'abcdefgh', 'wxabcdef'], 'wxabcdefgh', [cut])).toBe('*'.repeat(10));
    }
    expect(scrubText(['abcdefg\\\\'], '{"a":"abcdefg\\\\', [])).toBe('{"a":"*********');
  });

  it('agrees with a search of the whole text, for any split', () => {
    const secrets = ['aaaaaaab', 'abaababa', 'babababab', 'abaababaabab', 'aaaaaaabbbabab'];
    fc.assert(
      fc.property(fc.string({ maxLength: 80, unit: fc.constantFrom('a', 'b') }), anyCuts, (text, cuts) => {
        expect(scrubText(secrets, text, cuts)).toBe(maskByHand(secrets, text));
      }),
      { numRuns: 500 },
    );
  });

  it('passes a large chunk without a match on uncopied, except its tail', () => {
    const scrubber = new StreamScrubber(compileScrubPatterns(['S3CR3T-TOKEN'], SAMPLE_SEARCH_KEY));
    const chunk = latin1Bytes('data '.repeat(1000));
    const [output] = scrubber.push(chunk);
    expect(output?.buffer).toBe(chunk.buffer);
    expect(output?.length).toBe(chunk.length - 1024);
    expect(joinBytes(scrubber.flush()).length).toBe(1024);
  });

  it('holds back a tail of constant size for any content, and never masks an incomplete match', () => {
    for (const last of ['S3CR3T-TOKE', 'nothing-like', 'S3CR3T-TOKEN']) {
      const scrubber = new StreamScrubber(compileScrubPatterns(['S3CR3T-TOKEN'], SAMPLE_SEARCH_KEY));
      const text = 'x'.repeat(2000) + last;
      expect(joinBytes(scrubber.push(latin1Bytes(text))).length).toBe(text.length - 1024);
      expect(scrubber.push(latin1Bytes('more')).length).toBe(0);
      const rest = latin1Text(joinBytes(scrubber.flush()));
      expect(rest.endsWith(`${last === 'S3CR3T-TOKEN' ? '*'.repeat(12) : last}more`)).toBe(true);
    }
  });

  it('holds back more for longer secrets, by their length alone', () => {
    const secrets = ['12345678', 'x'.repeat(128), 'x'.repeat(129), '/'.repeat(129)];
    expect(secrets.map((secret) => compileScrubPatterns([secret], SAMPLE_SEARCH_KEY).tailBytes)).toEqual([
      1024, 1024, 2048, 2048,
    ]);
  });

  it('does not write into the chunk it was given', () => {
    const scrubber = new StreamScrubber(compileScrubPatterns(['S3CR3T-TOKEN'], SAMPLE_SEARCH_KEY));
    const chunk = latin1Bytes('<S3CR3T-TOKEN>');
    scrubber.push(chunk);
    expect(latin1Text(chunk)).toBe('<S3CR3T-TOKEN>');
  });

  it('does not search for secrets under eight bytes', () => {
    expect(compileScrubPatterns(['1234567'], SAMPLE_SEARCH_KEY).isEmpty).toBe(true);
    expect(scrubText(['1234567'], 'id=1234567', [])).toBe('id=1234567');
    expect(scrubText(['12345678'], 'id=12345678', [])).toBe('id=********');
  });

  it('finds secrets longer than the largest step of the search', () => {
    const secret = Array.from({ length: 700 }, (_, index) => String.fromCharCode(48 + ((index * 7) % 60))).join('');
    for (const cut of [0, 1, 255, 256, 699, 701]) {
      expect(scrubText([secret], `<${secret}>`, [cut])).toBe(`<${'*'.repeat(700)}>`);
    }
  });
});

describe('ScrubPatterns', () => {
  it('prints none of its content', () => {
    const patterns = compileScrubPatterns(['S3CR3T-TOKEN'], SAMPLE_SEARCH_KEY);
    expect(JSON.stringify({ patterns })).not.toContain('S3CR3T');
    expect(inspect(patterns, { depth: 9, showHidden: true })).not.toContain('S3CR3T');
    expect(Object.values(patterns).some((value) => typeof value === 'object')).toBe(false);
  });
});

describe('the work of a StreamScrubber', () => {
  it.each([1, 2, 7, 100, 1023, 1024, 1025, 65_536])('is bounded per byte, in pieces of %d', (size) => {
    const patterns = compileScrubPatterns(['S3CR3T-TOKEN'], SAMPLE_SEARCH_KEY);
    const find = vi.spyOn(patterns, 'find');
    const scrubber = new StreamScrubber(patterns);
    const total = 400_000;
    let left = 0;
    for (let at = 0; at < total; at += size) {
      const piece = new Uint8Array(Math.min(size, total - at));
      left += scrubber.push(piece).reduce((sum, { length }) => sum + length, 0);
    }
    expect(left).toBeGreaterThan(total - 3 * patterns.tailBytes);
    const searched = find.mock.calls.reduce((sum, [bytes]) => sum + bytes.length, 0);
    expect(searched).toBeLessThan(4 * total);
  });
});

function maskByHand(secrets: readonly string[], text: string): string {
  const characters = text.split('');
  for (const secret of secrets) {
    for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1))
      characters.fill('*', at, at + secret.length);
  }
  return characters.join('');
}

describe('Node buffers', () => {
  it('are masked like other bytes, and never modified', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[A-Za-z0-9_-]{16,40}$/),
        fc.integer({ min: 0, max: 80 }),
        fc.integer({ min: 0, max: 80 }),
        (secret, first, second) => {
          const pair = Buffer.from(`user:${secret}`).toString('base64').replace(/=+$/, '');
          const scrubber = new StreamScrubber(compileScrubPatterns([secret, pair], SAMPLE_SEARCH_KEY));
          const text = `a ${pair} b ${secret} c`;
          const cuts = [
            0,
            ...[first, second].map((at) => Math.min(at, text.length)).toSorted((a, b) => a - b),
            text.length,
          ];
          const chunks = cuts.slice(1).map((end, index) => Buffer.from(text.slice(cuts[index], end)));
          const before = chunks.map((chunk) => chunk.toString());
          const output = [...chunks.flatMap((chunk) => scrubber.push(chunk)), ...scrubber.flush()];
          expect(Buffer.concat(output).toString()).toBe(
            `a ${'*'.repeat(pair.length)} b ${'*'.repeat(secret.length)} c`,
          );
          expect(chunks.map((chunk) => chunk.toString())).toEqual(before);
        },
      ),
    );
  });
});
