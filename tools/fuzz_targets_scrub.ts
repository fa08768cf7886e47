import { Buffer } from 'node:buffer';
import { encodingsOf } from '../shared/inject/scrub/encodings.ts';
import { compileScrubPatterns, MIN_SCRUBBED_BYTES } from '../shared/inject/scrub/patterns.ts';
import type { ScrubPatterns } from '../shared/inject/scrub/patterns.ts';
import { scrubText } from '../shared/inject/scrub/scrub_text.ts';
import { StreamScrubber } from '../shared/inject/scrub/stream_scrubber.ts';
import { WebSocketScrubber } from '../shared/inject/scrub/web_socket_scrubber.ts';
import type { FuzzTarget } from './fuzz_engine.ts';
import { hashOf, piecesOf, SeededRandom } from './fuzz_random.ts';

/** Secrets that are awkward to search for: periodic ones, ones with signs that every encoding writes differently. */
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
  const encodings = encodingsOf(secret).filter((text) => text.length >= MIN_SCRUBBED_BYTES);
  const compiled = { patterns: compileScrubPatterns([secret]), encodings };
  COMPILED.set(secret, compiled);
  return compiled;
}

/** The text with a star for every character of every place where one of the encodings stands. */
function slowMasked(text: string, encodings: readonly string[]): string {
  const characters = text.split('');
  for (const encoding of encodings) {
    for (let at = text.indexOf(encoding); at >= 0; at = text.indexOf(encoding, at + 1)) {
      characters.fill('*', at, at + encoding.length);
    }
  }
  return characters.join('');
}

const WORDS: [string, ...string[]] = [
  '*',
  ...SECRETS.flatMap((secret) => encodingsOf(secret).flatMap((text) => [text, text.slice(0, 5), text.slice(-4)])),
];

const texts: FuzzTarget = {
  name: 'scrubbed streams and texts',
  seeds: ['\x00aaaaaaaaaaaa', '\x01xabababababababy', '\x02key=sk_live_0123456789;', '\x06abcabcabcabcabd-abcabcabc'],
  words: WORDS,
  check(input) {
    const { patterns, encodings } = secretOf(input);
    const body = input.slice(1);
    const expected = slowMasked(body, encodings);
    if (scrubText(body, patterns) !== expected) return 'the text is masked in another way';
    const scrubber = new StreamScrubber(patterns);
    const out = piecesOf(Buffer.from(body, 'latin1'), hashOf(input), 1 + (hashOf(input) % 40)).flatMap((piece) =>
      scrubber.push(piece),
    );
    const streamed = Buffer.concat([...out, ...scrubber.flush()]).toString('latin1');
    return streamed === expected
      ? null
      : `the stream became ${JSON.stringify(streamed)}, not ${JSON.stringify(expected)}`;
  },
};

interface Frame {
  readonly head: Buffer;
  readonly payload: string;
  readonly isControl: boolean;
  /** The message the payload belongs to. */
  readonly message: number;
}

/** The text as the frames of a server: messages of one or more fragments, with control frames between them. */
function framesOf(body: string, seed: number): Frame[] {
  const random = new SeededRandom(seed);
  const frames: Frame[] = [];
  let message = 0;
  let isFirst = true;
  for (let at = 0; at < body.length;) {
    const payload = body.slice(at, at + random.below(140));
    const isControl = random.below(6) === 0 && payload.length < 126;
    const isFinal = isControl || random.below(3) === 0;
    const opcode = isControl ? 9 + random.below(2) : isFirst ? 1 + random.below(2) : 0;
    const length = payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 0xff];
    frames.push({ head: Buffer.from([(isFinal ? 0x80 : 0) | opcode, ...length]), payload, isControl, message });
    if (!isControl) isFirst = isFinal;
    if (!isControl && isFinal) message += 1;
    at += payload.length;
  }
  return frames;
}

/** Each message masked as a whole, in its frames again; control frames as they are. */
function slowFrames(frames: readonly Frame[], encodings: readonly string[]): Buffer {
  const masked = new Map<number, string>();
  for (const { message, payload, isControl } of frames)
    if (!isControl) masked.set(message, (masked.get(message) ?? '') + payload);
  for (const [message, payload] of masked) masked.set(message, slowMasked(payload, encodings));
  const out = frames.map(({ head, payload, isControl, message }) => {
    if (isControl) return Buffer.concat([head, Buffer.from(payload, 'latin1')]);
    const rest = masked.get(message) ?? '';
    masked.set(message, rest.slice(payload.length));
    return Buffer.concat([head, Buffer.from(rest.slice(0, payload.length), 'latin1')]);
  });
  return Buffer.concat(out);
}

const webSockets: FuzzTarget = {
  name: 'scrubbed WebSockets',
  seeds: ['\x00aaaaaaaaaaaaaaaa', '\x02hello sk_live_0123456789 and sk_live_01234', '\x03a/b+c=&"\'<>\\ d a%2Fb%2Bc'],
  words: WORDS,
  check(input) {
    const { patterns, encodings } = secretOf(input);
    const seed = hashOf(input);
    const frames = framesOf(input.slice(1), seed);
    const sent = Buffer.concat(frames.flatMap(({ head, payload }) => [head, Buffer.from(payload, 'latin1')]));
    const scrubber = new WebSocketScrubber(patterns);
    const out = piecesOf(sent, seed, 1 + (seed % 60)).flatMap((piece) => scrubber.push(piece));
    const got = Buffer.concat([...out, ...scrubber.flush()]);
    const expected = slowFrames(frames, encodings);
    return got.equals(expected)
      ? null
      : `${JSON.stringify(got.toString('latin1'))}, not ${JSON.stringify(expected.toString('latin1'))}`;
  },
};

export const SCRUB_TARGETS: readonly FuzzTarget[] = [texts, webSockets];
