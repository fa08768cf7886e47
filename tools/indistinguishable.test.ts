import { Buffer } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import type { Credential, MakeScrubber, ObservedScrubber } from './indistinguishable.ts';
import { makeScrubber, searchDifference } from './indistinguishable.ts';
import { masksWholeMatches, wholeSpellings } from './whole_matches.ts';

const SEED = 20_266_015;

/** A faulty scrubber in place of ours, which leaks something about a credential. */
type Fault = (own: ObservedScrubber, credential: Credential) => Partial<ObservedScrubber>;

const FAULTS: Readonly<Record<string, Fault>> = {
  'keeps a piece back while it ends with a prefix of the credential': (own, { secret }) => {
    let kept: Uint8Array[] = [];
    return {
      push: (bytes) => {
        if (endsWithPrefix(bytes, secret)) {
          kept.push(bytes);
          return [];
        }
        const writes = [...kept, bytes].flatMap((piece) => own.push(piece));
        kept = [];
        return writes;
      },
      flush: () => [...kept.flatMap((piece) => own.push(piece)), ...own.flush()],
    };
  },
  'lets a tail go early when it begins no credential': (own, { secret }) => ({
    push: (bytes) => [...own.push(bytes), ...(endsWithPrefix(bytes, secret) ? [] : own.flush())],
  }),
  'masks a prefix of the credential': (own, { secret }) => ({
    push: (bytes) => own.push(bytes).map((piece) => maskText(piece, secret.slice(0, 4))),
  }),
  'masks the byte after a credential': (own, { secret }) => ({
    push: (bytes) => own.push(bytes).map((piece) => maskText(piece, `${'*'.repeat(secret.length)}\\`)),
    flush: () => own.flush().map((piece) => maskText(piece, `${'*'.repeat(secret.length)}\\`)),
  }),
  'splits a write before the first letter of the credential': (own, { secret }) => ({
    push: (bytes) => own.push(bytes).flatMap((piece) => splitBefore(piece, secret.charCodeAt(0))),
  }),
  'counts a reply that holds only a part of the credential': (own, { secret }) => {
    let counts = false;
    return {
      push: (bytes) => {
        counts ||= Buffer.from(bytes).includes(secret.slice(0, -1), 'latin1');
        return own.push(bytes);
      },
      counts: () => own.counts() || counts,
    };
  },
  'does not count what it masks': () => ({ counts: () => false }),
};

function endsWithPrefix(bytes: Uint8Array, secret: string): boolean {
  const end = Buffer.from(bytes.subarray(-secret.length)).toString('latin1');
  return [2, 3, 4, 5, 6, 7].some((length) => end.endsWith(secret.slice(0, length)));
}

function maskText(piece: Uint8Array, text: string): Uint8Array {
  return Buffer.from(Buffer.from(piece).toString('latin1').replaceAll(text, '*'.repeat(text.length)), 'latin1');
}

function splitBefore(piece: Uint8Array, byte: number): Uint8Array[] {
  const at = piece.indexOf(byte);
  return at <= 0 ? [piece] : [piece.subarray(0, at), piece.subarray(at)];
}

function hidden(text: string): string {
  return '*'.repeat(text.length);
}

function withFault(fault: Fault): MakeScrubber {
  return (type, credential) => {
    const own = makeScrubber(type, credential);
    return type === 'WebSocket' ? own : { ...own, ...fault(own, credential) };
  };
}

/** A WebSocket scrubber that delays frames while a piece ends with a prefix of the credential. */
function makeWaiting(type: string, credential: Credential): ObservedScrubber {
  const own = makeScrubber(type, credential);
  if (type !== 'WebSocket') return own;
  let waiting: readonly Uint8Array[] = [];
  return {
    ...own,
    push: (bytes) => {
      const writes = [...waiting, ...own.push(bytes)];
      waiting = endsWithPrefix(bytes, credential.secret) ? writes : [];
      return waiting.length > 0 ? [] : writes;
    },
    flush: () => [...waiting, ...own.flush()],
  };
}

describe('searchDifference', () => {
  it('finds nothing that distinguishes two credentials except a whole one', () => {
    const { compared, masked, found } = searchDifference(3000, SEED);
    expect({ compared, found }).toEqual({ compared: 3000, found: null });
    expect(masked).toBeGreaterThan(30);
  });

  for (const [name, fault] of Object.entries(FAULTS)) {
    it(`finds a scrubber that ${name}`, () => {
      expect(searchDifference(20_000, SEED, withFault(fault)).found).not.toBeNull();
    });
  }

  it('finds a WebSocket scrubber that delays frames for a prefix of the credential', () => {
    expect(searchDifference(20_000, SEED, makeWaiting).found).not.toBeNull();
  });
});

describe('masksWholeMatches', () => {
  const secret = 'vx/0R-Ys_U7Uitt+t%teJeARt"bJjn&';
  const masks = (source: string, output: string): boolean =>
    masksWholeMatches(Buffer.from(source, 'latin1'), Buffer.from(output, 'latin1'), wholeSpellings(secret));

  it('accepts a whole credential in any spelling', () => {
    for (const text of [secret, Buffer.from(secret).toString('hex'), encodeURIComponent(secret)]) {
      expect(masks(`a ${text} b`, `a ${hidden(text)} b`)).toBe(true);
      expect(masks(`a ${text} b`, `a ${hidden(text).slice(1)}${text.slice(-1)} b`)).toBe(false);
    }
  });

  it('refuses a mask that is shorter, longer, or beside a whole credential', () => {
    const most = secret.slice(0, -1);
    expect(masks(`a ${most} b`, `a ${hidden(most)} b`)).toBe(false);
    expect(masks(`a ${secret}!b`, `a ${hidden(secret)}*b`)).toBe(false);
    expect(masks(`a ${secret}${most} b`, `a ${hidden(secret + most)} b`)).toBe(false);
    expect(masks(`a ${secret} b`, `a ${hidden(secret)}  b`)).toBe(false);
    expect(masks('a b', 'a c')).toBe(false);
    expect(masks(`a ${secret}\n`, `a ${hidden(secret)}*`)).toBe(false);
  });

  it('accepts a whole credential that its context would change', () => {
    // `&` ends the credential. Together with the following text it would start a character reference.
    const spelled = Array.from(secret.slice(0, -1), (character) => `&#${character.charCodeAt(0)};`).join('');
    expect(masks(`${spelled}&#38;#118;`, `${hidden(spelled)}*#38;#118;`)).toBe(true);
  });

  it('accepts a whole credential whose line breaks stay', () => {
    const spellings = wholeSpellings(String.raw`VI&VMcH\n`);
    expect(masksWholeMatches(Buffer.from('a VI&VMcH\n\nb'), Buffer.from('a *******\n\nb'), spellings)).toBe(true);
    expect(masksWholeMatches(Buffer.from('a VI&VMcH b'), Buffer.from('a ******* b'), spellings)).toBe(false);
  });

  it('accepts base64 characters that do not depend on their neighbours', () => {
    for (const before of ['', 'x', 'xy']) {
      const text = Buffer.from(`${before}${secret}z`).toString('base64');
      const [start, end] = [Math.ceil((before.length * 8) / 6), Math.floor(((before.length + secret.length) * 8) / 6)];
      expect(masks(text, text.slice(0, start) + '*'.repeat(end - start) + text.slice(end))).toBe(true);
      expect(masks(text, text.slice(0, start) + '*'.repeat(end - start - 1) + text.slice(end - 1))).toBe(false);
    }
  });
});
