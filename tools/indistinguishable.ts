/**
 * Searches for a reply that distinguishes two credentials (design section 13, invariant 9): two runs that differ only in the
 * credential must write pieces of the same sizes at the same moments. The bytes are the reply's, except whole matches of the
 * run's own credential; a reply without a match gives the same bytes in both runs.
 * node tools/indistinguishable.ts [--cases N] [--seed S]
 */
import { Buffer } from 'node:buffer';
import { parseArgs } from 'node:util';
import { SEARCH_KEY_WORDS } from '../shared/inject/scrub/block_search.ts';
import { encodingsOf } from '../shared/inject/scrub/encodings.ts';
import { compileScrubPatterns } from '../shared/inject/scrub/patterns.ts';
import type { ScrubPatterns } from '../shared/inject/scrub/patterns.ts';
import { replyFormatOf } from '../shared/inject/scrub/reply_format.ts';
import { StreamScrubber } from '../shared/inject/scrub/stream_scrubber.ts';
import {
  formatFrame,
  frameHeaderLength,
  isControl,
  MOST_CONTROL_BYTES,
  readFrameHeader,
} from '../shared/inject/scrub/web_socket_frame.ts';
import { WebSocketScrubber } from '../shared/inject/scrub/web_socket_scrubber.ts';
import { piecesOf, SeededRandom } from './fuzz/fuzz_random.ts';
import { masksWholeMatches, wholeSpellings } from './whole_matches.ts';

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

/** Two credentials of equal length. */
interface Pair {
  /** The spellings of each. */
  readonly spellings: readonly string[];
  readonly credentials: readonly [Credential, Credential];
}

export interface Credential {
  readonly secret: string;
  readonly patterns: ScrubPatterns;
  readonly wholes: readonly Buffer[];
}

/** Masks a credential in the replies of one type. `counts`: whether it has masked something. */
export interface ObservedScrubber {
  readonly push: (bytes: Uint8Array) => readonly Uint8Array[];
  readonly flush: () => readonly Uint8Array[];
  readonly counts: () => boolean;
}

export type MakeScrubber = (type: string, credential: Credential) => ObservedScrubber;

/** The scrubbers of the sidecar. */
export function makeScrubber(type: string, { patterns }: Credential): ObservedScrubber {
  let counts = false;
  const scrubber =
    type === 'WebSocket'
      ? new WebSocketScrubber(patterns, () => (counts = true))
      : new StreamScrubber(patterns, replyFormatOf(type));
  return {
    push: (bytes) => scrubber.push(bytes),
    flush: () => scrubber.flush(),
    counts: () => (scrubber instanceof StreamScrubber ? scrubber.takeMasked() : counts),
  };
}

/** A reply as it arrives, in pieces. */
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
  return { spellings, credentials: [credentialOf(first, random), credentialOf(second, random)] };
}

function documentOf(seed: number, { spellings }: Pair): Document {
  const random = new SeededRandom(seed);
  const type = random.pick(TYPES);
  const parts = Array.from({ length: 1 + random.below(6) }, () => partOf(random, spellings));
  const text = Buffer.from(parts.join('').slice(0, 6000), 'latin1');
  const body = type === 'WebSocket' ? framesOf(text, random, spellings) : text;
  return { type, pieces: piecesOf(body, seed ^ 0x5bd1e995, random.pick([3, 60, 700, 1024, 5000])) };
}

/** What distinguishes the two, if anything does, and whether the whole of one was masked. */
function compare(document: Document, { credentials }: Pair, make: MakeScrubber): Omit<Comparison, 'compared'> {
  const [first, second] = credentials;
  const [one, other] = [observe(document, first, make), observe(document, second, make)];
  const masked = one.counts || other.counts ? 1 : 0;
  const apart = one.sizes.findIndex((size, index) => size !== other.sizes[index]);
  if (apart >= 0)
    return { masked, found: `sizes from write ${apart} on: ${one.sizes[apart]} and ${other.sizes[apart]}` };
  const source = Buffer.concat(document.pieces);
  return { masked, found: problemOf(document, source, one, first) ?? problemOf(document, source, other, second) };
}

/** What an agent observes of a reply. */
interface Observed {
  /** The size of each write; -1 marks the end of the writes for one input piece. */
  readonly sizes: readonly number[];
  readonly output: Buffer;
  /** Whether it counts as a masked reply: too many of them pause the binding. */
  readonly counts: boolean;
}

function observe({ type, pieces }: Document, credential: Credential, make: MakeScrubber): Observed {
  const scrubber = make(type, credential);
  const sizes: number[] = [];
  const output: Uint8Array[] = [];
  const note = (writes: readonly Uint8Array[]): void => {
    for (const bytes of writes) {
      sizes.push(bytes.length);
      output.push(bytes);
    }
    sizes.push(-1);
  };
  for (const piece of pieces) note(scrubber.push(piece));
  note(scrubber.flush());
  return { sizes, output: Buffer.concat(output), counts: scrubber.counts() };
}

/** A change to a reply other than masking whole matches; null if there is none. */
function problemOf({ type }: Document, source: Buffer, { output, counts }: Observed, own: Credential): string | null {
  const [sent, left] = [source, output].map((bytes) => (type === 'WebSocket' ? messagesIn(bytes) : [bytes]));
  if (sent === undefined || left === undefined || sent.length !== left.length) return 'messages';
  const none = Buffer.alloc(0);
  if (sent.some((message, index) => !masksWholeMatches(message, left[index] ?? none, own.wholes))) return 'bytes';
  const isMasked = sent.some((message, index) => !message.equals(left[index] ?? none));
  return isMasked === counts ? null : 'count';
}

/** The payloads of control frames, then those of messages, each preceded by its opcode. */
function messagesIn(frames: Buffer): Buffer[] {
  const controls: Buffer[] = [];
  const messages: Buffer[] = [];
  let open: Buffer[] = [];
  for (let at = 0; at < frames.length;) {
    const headerBytes = frameHeaderLength(frames[at + 1] ?? 0);
    const header = readFrameHeader([...frames.subarray(at, at + headerBytes)]);
    at += headerBytes;
    const payload = frames.subarray(at, at + header.payloadLength);
    at += header.payloadLength;
    if (isControl(header)) controls.push(Buffer.concat([Buffer.of(header.opcode), payload]));
    else open.push(...(open.length === 0 ? [Buffer.of(header.opcode)] : []), payload);
    if (isControl(header) || !header.final) continue;
    messages.push(Buffer.concat(open));
    open = [];
  }
  return [...controls, ...messages, Buffer.concat(open)];
}

function credentialOf(secret: string, random: SeededRandom): Credential {
  const key = Uint32Array.from({ length: SEARCH_KEY_WORDS }, () => random.below(2 ** 32));
  return { secret, patterns: compileScrubPatterns([secret], key), wholes: wholeSpellings(secret) };
}

function wordOf(random: SeededRandom, length: number): string {
  return Array.from({ length }, () => ALPHABET[random.below(ALPHABET.length)]).join('');
}

/** Filler, a format's syntax, or a part of a spelling of a secret: its start or its end, once or repeated; rarely all of it. */
function partOf(random: SeededRandom, spellings: readonly string[]): string {
  const kind = random.below(6);
  if (kind === 0) return random.pick(BREAKS);
  if (kind === 1) return wordOf(random, 1 + random.below(12)).repeat(1 + random.below(200));
  const spelled = escapeText(spellings[random.below(spellings.length)] ?? '', random);
  if (random.below(60) === 0) return spelled;
  const cut = random.below(spelled.length);
  const part = kind < 5 ? spelled.slice(0, cut) : spelled.slice(cut + 1);
  return random.below(3) === 0 ? part.repeat(1 + random.below(60)) : part;
}

function escapeText(text: string, random: SeededRandom): string {
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

/** The text as a server's messages, some in fragments, with control frames in between. */
function framesOf(text: Buffer, random: SeededRandom, spellings: readonly string[]): Buffer {
  let opcode = 1;
  const frames = piecesOf(text, random.below(2 ** 31), 1500).flatMap((payload) => {
    const final = random.below(3) === 0;
    const frame = formatFrame({ final, reserved: 0, opcode }, [payload]);
    opcode = final ? 1 : 0;
    return random.below(3) === 0 ? [...frame, ...controlFrame(random, spellings)] : frame;
  });
  return Buffer.concat(frames);
}

/** A close, a ping or a pong. */
function controlFrame(random: SeededRandom, spellings: readonly string[]): Uint8Array[] {
  const payload = Buffer.from(partOf(random, spellings).slice(0, random.below(MOST_CONTROL_BYTES + 1)), 'latin1');
  return formatFrame({ final: true, reserved: 0, opcode: 8 + random.below(3) }, [payload]);
}

/** Compiling a credential costs more than a document does. */
const DOCUMENTS_OF_A_PAIR = 32;

/** The result of a search. */
interface Comparison {
  readonly compared: number;
  /** The number of documents in which a whole credential was masked. */
  readonly masked: number;
  /** The first document that distinguishes its two credentials, and how. */
  readonly found: string | null;
}

/** Compares `cases` documents, or stops at the first one that distinguishes its two credentials. */
export function searchDifference(cases: number, seed: number, make: MakeScrubber = makeScrubber): Comparison {
  let [compared, masked] = [0, 0];
  for (let own = seed >>> 0; compared < cases; own = (own + 1) >>> 0) {
    const pair = pairOf(own);
    for (let index = 0; index < DOCUMENTS_OF_A_PAIR && compared < cases; index += 1) {
      compared += 1;
      const result = compare(documentOf(Math.imul(own, 65_599) + index, pair), pair, make);
      masked += result.masked;
      if (result.found !== null) return { compared, masked, found: `seed ${own}, document ${index}: ${result.found}` };
    }
  }
  return { compared, masked, found: null };
}

/** The number of documents between two lines of progress. */
const CASES_OF_A_LINE = 10_000 * DOCUMENTS_OF_A_PAIR;

function main(): void {
  const { values } = parseArgs({ options: { cases: { type: 'string' }, seed: { type: 'string' } } });
  const [cases, seed] = [Number(values.cases ?? 100_000), Number(values.seed ?? Date.now() >>> 0)];
  let [compared, masked] = [0, 0];
  let found: string | null = null;
  while (compared < cases && found === null) {
    const part = searchDifference(Math.min(CASES_OF_A_LINE, cases - compared), seed + compared / DOCUMENTS_OF_A_PAIR);
    [compared, masked, found] = [compared + part.compared, masked + part.masked, part.found];
    const result = found ?? 'none distinguished two credentials';
    process.stdout.write(
      `seed ${seed}: ${compared} replies compared, ${masked} of them contained a credential; ${result}\n`,
    );
  }
  process.exitCode = found === null ? 0 : 1;
}

if (process.argv[1] === import.meta.filename) main();
