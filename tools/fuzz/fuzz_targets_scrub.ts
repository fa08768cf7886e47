import { Buffer } from 'node:buffer';
import { encodingsOf } from '../../shared/inject/scrub/encodings.ts';
import { SAMPLE_SEARCH_KEY } from '../../shared/inject/testing/sample_requests.ts';
import { compileScrubPatterns, MIN_SCRUBBED_BYTES } from '../../shared/inject/scrub/patterns.ts';
import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { scrubText } from '../../shared/inject/scrub/scrub_text.ts';
import { StreamScrubber } from '../../shared/inject/scrub/stream_scrubber.ts';
import { WebSocketScrubber } from '../../shared/inject/scrub/web_socket_scrubber.ts';
import type { FuzzTarget } from './fuzz_engine.ts';
import { hashOf, piecesOf, SeededRandom } from './fuzz_random.ts';

/** Secrets that are hard to search for: periodic ones, and ones with characters that every encoding writes differently. */
const SECRETS: readonly [string, ...string[]] = [
  'aaaaaaaa',
  'abababababab',
  'sk_live_0123456789',
  'a/b+c=&"\'<>\\ d',
  'p\u00e4ssw\u00f6rd-\u20ac',
  'aaaaaaab',
  'abcabcabd-abcabcabc',
];
const COMPILED = new Map<string, { patterns: ScrubPatterns; encodings: readonly string[] }>();

function secretOf(input: string): { patterns: ScrubPatterns; encodings: readonly string[] } {
  const secret = SECRETS[input.charCodeAt(0) % SECRETS.length] ?? SECRETS[0];
  const known = COMPILED.get(secret);
  if (known !== undefined) return known;
  const encodings = spellingsOf(secret).filter((text) => text.length >= MIN_SCRUBBED_BYTES);
  const compiled = { patterns: compileScrubPatterns([secret], SAMPLE_SEARCH_KEY), encodings };
  COMPILED.set(secret, compiled);
  return compiled;
}

function spellingsOf(secret: string): string[] {
  const { dense, sparse } = encodingsOf(secret);
  return [...dense, ...sparse];
}

/** A character, and its position in the original text. */
interface ReadCharacter {
  readonly character: string;
  readonly start: number;
  readonly end: number;
}

const ESCAPES = new RegExp(
  [
    String.raw`\\u(?<unit>[0-9a-fA-F]{4})`,
    String.raw`\\u\{(?<braced>[0-9a-fA-F]{1,6})\}`,
    String.raw`\\U(?<long>[0-9a-fA-F]{8})`,
    String.raw`\\x(?<byte>[0-9a-fA-F]{2})`,
    '\\\\(?<sign>["\'/\\\\`bfnrt])',
    '%u(?<percentUnit>[0-9a-fA-F]{4})',
    '%(?<percentByte>[0-9a-fA-F]{2})',
    '&#(?<decimal>[0-9]{1,7});',
    '&#[xX](?<hex>[0-9a-fA-F]{1,7});',
    '&(?<name>amp|lt|gt|quot|apos|sol|plus);',
    String.raw`(?<=[A-Za-z0-9+/_-])[\r\n][\r\n\t ]{0,64}(?=[A-Za-z0-9+/_-])`,
  ].join('|'),
  'g',
);
const SIGNS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const NAMES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  sol: '/',
  plus: '+',
};

/** One level of escapes undone, by a regular expression; null if there is none. */
function slowlyUnescaped(read: readonly ReadCharacter[]): readonly ReadCharacter[] | null {
  const text = read.map(({ character }) => character).join('');
  const result: ReadCharacter[] = [];
  let at = 0;
  for (let found = ESCAPES.exec(text); found !== null; found = ESCAPES.exec(text)) {
    const stands = standsFor(found);
    if (stands === null) ESCAPES.lastIndex = found.index + 1;
    else {
      result.push(...read.slice(at, found.index));
      at = found.index + found[0].length;
      const [start, end] = [read[found.index]?.start ?? 0, read[at - 1]?.end ?? 0];
      for (const character of stands) result.push({ character, start, end });
    }
  }
  return at === 0 ? null : [...result, ...read.slice(at)];
}

function standsFor({ groups = {} }: RegExpExecArray): string | null {
  const { sign, name, byte = groups['percentByte'], decimal } = groups;
  if (sign !== undefined) return SIGNS[sign] ?? sign;
  if (name !== undefined) return NAMES[name] ?? null;
  if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16));
  const digits = groups['unit'] ?? groups['braced'] ?? groups['long'] ?? groups['percentUnit'] ?? groups['hex'];
  if (digits === undefined && decimal === undefined) return '';
  const point = decimal === undefined ? Number.parseInt(digits ?? '', 16) : Number(decimal);
  return point > 0x10ffff ? null : Buffer.from(String.fromCodePoint(point)).toString('latin1');
}

/** The text with a star for every character of each place where one of the encodings matches. */
function slowMasked(text: string, encodings: readonly string[]): string {
  const characters = text.split('');
  let read: readonly ReadCharacter[] | null = characters.map((character, start) => ({
    character,
    start,
    end: start + 1,
  }));
  for (let level = 0; level <= 4 && read !== null; level += 1) {
    const joined = read.map(({ character }) => character).join('');
    for (const encoding of encodings) {
      for (let at = joined.indexOf(encoding); at >= 0; at = joined.indexOf(encoding, at + 1)) {
        const [start, end] = [read[at]?.start ?? 0, read[at + encoding.length - 1]?.end ?? 0];
        for (let place = start; place < end; place += 1) {
          if (characters[place] !== '\r' && characters[place] !== '\n') characters[place] = '*';
        }
      }
    }
    read = slowlyUnescaped(read);
  }
  return characters.join('');
}

const WORDS: [string, ...string[]] = [
  '*',
  ...SECRETS.flatMap((secret) => spellingsOf(secret).flatMap((text) => [text, text.slice(0, 5), text.slice(-4)])),
  '\\\\',
  '\\u00',
  '%2',
  '&#',
  '&amp;',
  'x6',
  ';',
  '\n',
  '\\n',
  '\\u0061',
  '%61',
  '&#97;',
  '&#x61;',
  '%2561',
];

const texts: FuzzTarget = {
  name: 'scrubbed streams and texts',
  seeds: ['\x00aaaaaaaaaaaa', '\x01xabababababababy', '\x02key=sk_live_0123456789;', '\x06abcabcabcabcabd-abcabcabc'],
  words: WORDS,
  check(input) {
    const { patterns, encodings } = secretOf(input);
    const body = input.slice(1);
    const expected = slowMasked(body, encodings);
    if (scrubText(body, patterns) !== expected) return 'the text is masked differently';
    const scrubber = new StreamScrubber(patterns);
    const out = piecesOf(Buffer.from(body, 'latin1'), hashOf(input), 1 + (hashOf(input) % 40)).flatMap((piece) =>
      scrubber.push(piece),
    );
    const streamed = Buffer.concat([...out, ...scrubber.flush()]).toString('latin1');
    return isMasked(streamed, body, expected, patterns.tailBytes)
      ? null
      : `the stream became ${JSON.stringify(streamed)}, not ${JSON.stringify(expected)}`;
  },
};

/** A text longer than a tail is searched in parts, and an escape at their boundary can be read in two ways. */
function isMasked(streamed: string, body: string, expected: string, tailBytes: number): boolean {
  if (body.length <= tailBytes) return streamed === expected;
  const isFine = (character: string, at: number): boolean =>
    character === '*' || (character === body[at] && character === expected[at]);
  return streamed.length === body.length && streamed.split('').every(isFine);
}

interface Frame {
  readonly head: Buffer;
  readonly payload: string;
}

/** The text as a server's frames: messages of one or more fragments, with control frames in between. */
function framesOf(body: string, seed: number): Frame[] {
  const random = new SeededRandom(seed);
  const frames: Frame[] = [];
  let isFirst = true;
  for (let at = 0; at < body.length;) {
    const payload = body.slice(at, at + random.below(140));
    const isControl = random.below(6) === 0 && payload.length < 126;
    const isFinal = isControl || random.below(3) === 0;
    const opcode = isControl ? 9 + random.below(2) : isFirst ? 1 + random.below(2) : 0;
    const length = payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 0xff];
    frames.push({ head: Buffer.from([(isFinal ? 0x80 : 0) | opcode, ...length]), payload });
    if (!isControl) isFirst = isFinal;
    at += payload.length;
  }
  return frames;
}

/** What a client reads: the messages and the control frames, each in order. */
function readFrames(stream: Buffer): Record<'messages' | 'controls', string[]> {
  const read: Record<'messages' | 'controls', string[]> = { messages: [], controls: [] };
  let message = '';
  for (let at = 0; at < stream.length;) {
    const [first = 0, short = 0] = stream.subarray(at);
    const length = short === 126 ? stream.readUInt16BE(at + 2) : short;
    at += (short === 126 ? 4 : 2) + length;
    const payload = stream.toString('latin1', at - length, at);
    if ((first & 8) !== 0) read.controls.push(payload);
    else message += payload;
    if ((first & 0x88) !== 0x80) continue;
    read.messages.push(message);
    message = '';
  }
  return { ...read, messages: [...read.messages, message] };
}

const webSockets: FuzzTarget = {
  name: 'scrubbed WebSockets',
  seeds: ['\x00aaaaaaaaaaaaaaaa', '\x02hello sk_live_0123456789 and sk_live_01234', '\x03a/b+c=&"\'<>\\ d a%2Fb%2Bc'],
  words: WORDS,
  check(input) {
    const { patterns, encodings } = secretOf(input);
    const seed = hashOf(input);
    const sent = Buffer.concat(
      framesOf(input.slice(1), seed).flatMap(({ head, payload }) => [head, Buffer.from(payload, 'latin1')]),
    );
    const scrubber = new WebSocketScrubber(patterns);
    const out = piecesOf(sent, seed, 1 + (seed % 60)).flatMap((piece) => scrubber.push(piece));
    const got = readFrames(Buffer.concat([...out, ...scrubber.flush()]));
    const told = readFrames(sent);
    for (const kind of ['messages', 'controls'] as const) {
      const wrong = told[kind].find(
        (body, at) => !isMasked(got[kind][at] ?? '', body, slowMasked(body, encodings), patterns.tailBytes),
      );
      if (wrong !== undefined || got[kind].length !== told[kind].length) {
        return `${JSON.stringify(got[kind])} of ${JSON.stringify(told[kind])}`;
      }
    }
    return null;
  },
};

export const SCRUB_TARGETS: readonly FuzzTarget[] = [texts, webSockets];
