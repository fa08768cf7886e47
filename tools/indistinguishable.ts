/**
 * Looks for a reply that tells two credentials apart which it does not hold (design section 13, invariant 9): two runs that
 * differ in the credential alone have to give the same bytes in the same pieces.
 *   node tools/indistinguishable.ts [--cases N] [--seed S]
 */
import { Buffer } from 'node:buffer';
import { parseArgs } from 'node:util';
import { encodingsOf } from '../shared/inject/scrub/encodings.ts';
import { compileScrubPatterns } from '../shared/inject/scrub/patterns.ts';
import type { ScrubPatterns } from '../shared/inject/scrub/patterns.ts';
import { replyFormatOf } from '../shared/inject/scrub/reply_format.ts';
import { StreamScrubber } from '../shared/inject/scrub/stream_scrubber.ts';
import { formatFrame } from '../shared/inject/scrub/web_socket_frame.ts';
import { WebSocketScrubber } from '../shared/inject/scrub/web_socket_scrubber.ts';
import { piecesOf, SeededRandom } from './fuzz_random.ts';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/+%&\\"';
const TYPES: [string, ...string[]] = [
  '',
  'text/event-stream',
  'application/json',
  'text/html',
  'application/octet-stream',
  'application/grpc-web',
  'application/vnd.amazon.eventstream',
  'text/plain',
  'WebSocket',
];
const BREAKS: [string, ...string[]] = [
  '\n\n',
  '\r\n\r\n',
  '\n',
  'data: ',
  '\0\0\0\0\x10',
  '\\',
  '%',
  '&',
  '\\u00',
  ' ',
];

/** Two credentials of one length. */
interface Pair {
  /** How either may be spelled. */
  readonly spellings: readonly string[];
  readonly patterns: readonly [ScrubPatterns, ScrubPatterns];
}

/** A reply as it comes, in pieces. */
interface Document {
  readonly type: string;
  readonly pieces: readonly Uint8Array[];
}

function pairOf(seed: number): Pair {
  const random = new SeededRandom(seed);
  const length = 8 + random.below(random.below(8) === 0 ? 400 : 60);
  const first = wordOf(random, length);
  const shared = random.below(2) === 0 ? 0 : random.below(length - 1);
  const second = `${first.slice(0, shared)}${first[shared] === 'x' ? 'y' : 'x'}${wordOf(random, length - shared - 1)}`;
  const encodings = [first, second].map(encodingsOf);
  const spellings = encodings.flatMap(({ dense, sparse }) => [...dense, ...sparse]);
  return { spellings, patterns: [patternsOf(first, random), patternsOf(second, random)] };
}

/** The document of a seed; null when the one that the seed makes holds one of the two after all. */
function documentOf(seed: number, { spellings, patterns }: Pair): Document | null {
  const random = new SeededRandom(seed);
  const type = random.pick(TYPES);
  const parts = Array.from({ length: 1 + random.below(6) }, () => partOf(random, spellings));
  const text = Buffer.from(parts.join('').slice(0, 6000), 'latin1');
  if (patterns.some((each) => each.find(text).length > 0)) return null;
  const body = type === 'WebSocket' ? framesOf(text, random) : text;
  return { type, pieces: piecesOf(body, seed ^ 0x5bd1e995, random.pick([3, 60, 700, 1024, 5000])) };
}

/** What tells the two apart, or null. */
function differenceOf(document: Document, { patterns: [first, second] }: Pair): string | null {
  const [one, other] = [writesOf(document, first), writesOf(document, second)];
  if (sizesOf(one) !== sizesOf(other)) return `sizes: ${sizesOf(one)} and ${sizesOf(other)}`;
  const source = Buffer.concat(document.pieces);
  // A document in pieces may be read in more ways than as a whole: what is masked then is a whole match all the same.
  const isFine = (writes: Uint8Array[][], patterns: ScrubPatterns): boolean =>
    masksWholeMatches(source, Buffer.concat(writes.flat()), patterns);
  return document.type === 'WebSocket' || (isFine(one, first) && isFine(other, second)) ? null : 'bytes';
}

/** Whether each stretch that differs from the source holds a whole match. */
function masksWholeMatches(source: Buffer, output: Buffer, patterns: ScrubPatterns): boolean {
  for (let at = 0; at < source.length; at += 1) {
    if (source[at] === output[at]) continue;
    let end = at + 1;
    while (end < source.length && (output[end] === MASK || isLineBreak(output[end]))) end += 1;
    let start = at;
    while (start > 0 && output[start - 1] === MASK) start -= 1;
    if (patterns.find(source.subarray(start, end)).length === 0) return false;
    at = end;
  }
  return source.length === output.length;
}

const MASK = 0x2a;

function isLineBreak(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x0d;
}

/** What leaves for each piece that comes, and at the end. */
function writesOf({ type, pieces }: Document, patterns: ScrubPatterns): Uint8Array[][] {
  const scrubber =
    type === 'WebSocket' ? new WebSocketScrubber(patterns) : new StreamScrubber(patterns, replyFormatOf(type));
  return [...pieces.map((piece) => scrubber.push(piece)), scrubber.flush()];
}

function sizesOf(writes: readonly Uint8Array[][]): string {
  return JSON.stringify(writes.map((all) => all.map((each) => each.length)));
}

function patternsOf(secret: string, random: SeededRandom): ScrubPatterns {
  return compileScrubPatterns(
    [secret],
    Uint32Array.from({ length: 5 }, () => random.below(2 ** 32)),
  );
}

function wordOf(random: SeededRandom, length: number): string {
  return Array.from({ length }, () => ALPHABET[random.below(ALPHABET.length)]).join('');
}

/** Filling, a format's signs, or a part of a spelling of a secret: its beginning or its end, once or many times. */
function partOf(random: SeededRandom, spellings: readonly string[]): string {
  const kind = random.below(6);
  if (kind === 0) return random.pick(BREAKS);
  if (kind === 1) return wordOf(random, 1 + random.below(12)).repeat(1 + random.below(200));
  const spelled = escaped(spellings[random.below(spellings.length)] ?? '', random);
  const cut = random.below(spelled.length);
  const part = kind < 5 ? spelled.slice(0, cut) : spelled.slice(cut + 1);
  return random.below(3) === 0 ? part.repeat(1 + random.below(60)) : part;
}

function escaped(text: string, random: SeededRandom): string {
  const style = random.below(8);
  const styles: readonly ((character: string) => string)[] = [
    (character) => `\\u${hexOf(character, 4)}`,
    (character) => `%${hexOf(character, 2)}`,
    (character) => `&#${character.charCodeAt(0)};`,
    (character) => `%25${hexOf(character, 2)}`,
  ];
  const spell = styles[style];
  return spell === undefined ? text : Array.from(text, spell).join('');
}

function hexOf(character: string, width: number): string {
  return character.charCodeAt(0).toString(16).padStart(width, '0');
}

/** The text in messages of a server, some of them in fragments. */
function framesOf(text: Buffer, random: SeededRandom): Buffer {
  let opcode = 1;
  const frames = piecesOf(text, random.below(2 ** 31), 1500).flatMap((payload) => {
    const final = random.below(3) === 0;
    const frame = formatFrame({ final, reserved: 0, opcode }, [payload]);
    opcode = final ? 1 : 0;
    return frame;
  });
  return Buffer.concat(frames);
}

/** Compiling a credential costs more than a document does. */
const DOCUMENTS_OF_A_PAIR = 32;

/** How many documents were compared, and what the first one was that tells its two credentials apart. */
export function searchDifference(cases: number, seed: number): { compared: number; found: string | null } {
  let compared = 0;
  for (let own = seed >>> 0; compared < cases; own = (own + 1) >>> 0) {
    const pair = pairOf(own);
    for (let index = 0; index < DOCUMENTS_OF_A_PAIR && compared < cases; index += 1) {
      const document = documentOf(Math.imul(own, 65_599) + index, pair);
      if (document === null) continue;
      compared += 1;
      const difference = differenceOf(document, pair);
      if (difference !== null) return { compared, found: `seed ${own}, document ${index}: ${difference}` };
    }
  }
  return { compared, found: null };
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({ options: { cases: { type: 'string' }, seed: { type: 'string' } } });
  const seed = Number(values.seed ?? Date.now() >>> 0);
  const { compared, found } = searchDifference(Number(values.cases ?? 100_000), seed);
  process.stdout.write(`seed ${seed}: ${compared} replies compared, ${found ?? 'none tells two credentials apart'}\n`);
  process.exitCode = found === null ? 0 : 1;
}
