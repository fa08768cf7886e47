import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { readClientHello } from './client_hello.ts';

interface HelloParts {
  readonly serverName?: string | null;
  readonly protocols?: readonly string[] | null;
  /** Extensions before them, by type. */
  readonly before?: readonly (readonly [number, Uint8Array])[];
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** A vector with a length of `width` bytes. */
function vector(width: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const data = join(...parts);
  const length = Array.from({ length: width }, (_, at) => Math.floor(data.length / 256 ** (width - 1 - at)) % 256);
  return join(Uint8Array.from(length), data);
}

function extension(type: number, data: Uint8Array): Uint8Array {
  return join(Uint8Array.of(type >> 8, type & 0xff), vector(2, data));
}

/** The handshake message of a hello. */
function message({ serverName = null, protocols = null, before = [] }: HelloParts): Uint8Array {
  const extensions = before.map(([type, data]) => extension(type, data));
  if (serverName !== null) {
    extensions.push(extension(0, vector(2, Uint8Array.of(0), vector(2, bytesOf(serverName)))));
  }
  if (protocols !== null)
    extensions.push(extension(16, vector(2, ...protocols.map((name) => vector(1, bytesOf(name))))));
  const start = join(Uint8Array.of(3, 3), new Uint8Array(32), vector(1, new Uint8Array(32)));
  const rest = join(vector(2, Uint8Array.of(0x13, 1, 0x13, 2)), vector(1, Uint8Array.of(0)), vector(2, ...extensions));
  return join(Uint8Array.of(1), vector(3, start, rest));
}

/** The message in records of at most `most` bytes. */
function records(whole: Uint8Array, most = 16_384): Uint8Array {
  const out: Uint8Array[] = [];
  for (let at = 0; at < whole.length; at += most) {
    out.push(Uint8Array.of(22, 3, 1), vector(2, whole.subarray(at, at + most)));
  }
  return join(...out);
}

const HELLO = { serverName: 'api.example.test', protocols: ['h2', 'http/1.1'] };

describe('a ClientHello', () => {
  test('with two server names is unreadable, whichever way they are given', () => {
    const name = (text: string) => join(Uint8Array.of(0), vector(2, bytesOf(text)));
    const twice = records(message({ ...HELLO, before: [[0, vector(2, name('other.example.test'))]] }));
    const inOne = records(message({ before: [[0, vector(2, name('other.example.test'), name('api.example.test'))]] }));
    for (const bytes of [twice, inOne]) expect(readClientHello(bytes)).toEqual({ kind: 'unreadable' });
  });

  test.each([
    [HELLO, HELLO],
    [{ protocols: ['http/1.1'] }, { serverName: null, protocols: ['http/1.1'] }],
    [{ serverName: 'a' }, { serverName: 'a', protocols: [] }],
    [{}, { serverName: null, protocols: [] }],
    [{ ...HELLO, before: [[0x0a0a, new Uint8Array(0)] as const, [0x7a7a, Uint8Array.of(0)] as const] }, HELLO],
  ])('%j is read', (parts, hello) => {
    expect(readClientHello(records(message(parts)))).toEqual({ kind: 'hello', hello });
  });

  test('without extensions is read', () => {
    const whole = join(Uint8Array.of(3, 3), new Uint8Array(32), Uint8Array.of(0, 0, 2, 0, 47, 1, 0));
    const bytes = records(join(Uint8Array.of(1), vector(3, whole)));
    expect(readClientHello(bytes)).toEqual({ kind: 'hello', hello: { serverName: null, protocols: [] } });
  });

  test('is read the same in records of any size, followed by anything', () => {
    fc.assert(
      fc.property(fc.integer({ min: 5, max: 300 }), fc.uint8Array({ maxLength: 20 }), (most, after) => {
        expect(readClientHello(join(records(message(HELLO), most), after))).toEqual({ kind: 'hello', hello: HELLO });
      }),
    );
  });

  test.each([50, 16_384])(
    'is incomplete in each of its parts, in records of %i bytes, and says what it needs',
    (most) => {
      const bytes = records(message(HELLO), most);
      let looks = 0;
      let needs = 1;
      for (let end = 0; end < bytes.length; end += 1) {
        const reading = readClientHello(bytes.subarray(0, end));
        expect(reading.kind).toBe('incomplete');
        if (end < needs || reading.kind !== 'incomplete') continue;
        expect(reading.needs).toBeGreaterThan(end);
        expect(reading.needs).toBeLessThanOrEqual(bytes.length);
        needs = reading.needs;
        looks += 1;
      }
      expect(looks).toBeLessThan(20);
    },
  );

  test.each([
    ['a request in the clear', bytesOf('GET / HTTP/1.1\r\n\r\n')],
    ['an alert', Uint8Array.of(21, 3, 1, 0, 2, 1, 0)],
    ['SSL 2', Uint8Array.of(0x80, 46, 1, 3, 1, 0, 21, 0, 0, 0, 16)],
    ['another handshake message', records(join(Uint8Array.of(2), vector(3, new Uint8Array(40))))],
    ['an empty record', Uint8Array.of(22, 3, 1, 0, 0)],
    ['a record that is too long', Uint8Array.of(22, 3, 1, 0x40, 1)],
    ['a message that is too long', Uint8Array.of(22, 3, 1, 0, 10, 1, 1, 0, 0, 0)],
    ['a length beyond its vector', records(join(Uint8Array.of(1), vector(3, new Uint8Array(34), Uint8Array.of(200))))],
    [
      'bytes after the extensions',
      records(join(Uint8Array.of(1), vector(3, message(HELLO).subarray(4), Uint8Array.of(0)))),
    ],
  ])('%s is unreadable', (_what, bytes) => {
    expect(readClientHello(bytes)).toEqual({ kind: 'unreadable' });
  });

  test('is not read from more than 64 records', () => {
    const endless = records(join(Uint8Array.of(1, 0, 0x70, 0), new Uint8Array(100)), 1);
    expect(readClientHello(endless.subarray(0, 6 * 63))).toMatchObject({ kind: 'incomplete' });
    expect(readClientHello(endless.subarray(0, 6 * 64))).toEqual({ kind: 'unreadable' });
  });

  test('of any bytes is read, incomplete or unreadable, without an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(), fc.nat(255), (noise, at, byte) => {
        const changed = records(message(HELLO));
        changed[at % changed.length] = byte;
        for (const bytes of [noise, changed]) {
          expect(['hello', 'incomplete', 'unreadable']).toContain(readClientHello(bytes).kind);
        }
      }),
    );
  });
});
