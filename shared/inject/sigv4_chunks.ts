import { refusal } from '../model/refusal.ts';
import type { Refusal } from '../model/refusal.ts';
import { err, ok } from '../model/result.ts';
import { latin1Bytes } from './byte_text.ts';
import type { BodyTransform, BodyTransformStep } from './outgoing_request.ts';
import type { ChunkSignedForm } from './payload_form.ts';
import { SIGV4, SIGV4A, type Signer, type SigningAlgorithm } from './sigv4_signer.ts';

/** A chunk's signature precedes its data, so a chunk is held until it is complete; clients send 64 to 128 KiB per chunk. */
export const MAX_SIGNED_CHUNK_BYTES = 1024 * 1024;
const FIRST_BLOCK_BYTES = 4 * 1024;
const NOTHING = new Uint8Array(0);

const CHUNK_LINE = /^([0-9a-f]{1,8});chunk-signature=([0-9a-f]+\**)\r\n$/i;
const TRAILER_LINE = /^[^\r\n:]+:[^\r\n]*$/;
const TRAILER_SIGNATURE = /^(x-amz-trailer-signature:[ \t]*)([0-9a-f]+\**)$/i;
/** Of a signature in a body, which has one length; one of version 4a is shorter and is filled up with asterisks. */
const SIGNATURE_CHARACTERS: Readonly<Record<SigningAlgorithm, number>> = { [SIGV4]: 64, [SIGV4A]: 144 };

type State = 'line' | 'data' | 'data_end' | 'trailer' | 'done';

/** What ends the text of a state, and its maximum length. */
const TEXTS = {
  line: { end: '\r\n', maxBytes: 256 },
  data_end: { end: '\r\n', maxBytes: 2 },
  trailer: { end: '\r\n\r\n', maxBytes: 16 * 1024 },
} as const satisfies Partial<Record<State, { end: string; maxBytes: number }>>;

/**
 * Re-signs the chunks of an `aws-chunked` body in transit. Chunk sizes and all lengths stay, so that Content-Length remains
 * correct; at most one chunk is held. Call `push` again only after the last call has resolved.
 */
export class ChunkResigner implements BodyTransform {
  readonly #signer: Signer;
  readonly #hasTrailer: boolean;
  #previousSignature: string;
  #state: State = 'line';
  /** The incomplete line or trailer. */
  #text = '';
  /** The current chunk: its size as the client spelled it, and its data. */
  #size = '';
  #block = NOTHING;
  #held = 0;
  #dataLeft = 0;

  constructor(signer: Signer, seedSignature: string, form: ChunkSignedForm) {
    this.#signer = signer;
    this.#previousSignature = seedSignature;
    this.#hasTrailer = form.endsWith('-TRAILER');
  }

  async push(data: Uint8Array): Promise<BodyTransformStep> {
    const output: Uint8Array[] = [];
    for (let at = 0; at < data.length;) {
      if (this.#state === 'done') return err(refuseMalformed('bytes after its last chunk'));
      at = this.#state === 'data' ? this.#takeData(data, at) : this.#takeText(this.#state, data, at);
      const refused = await this.#advance(output);
      if (refused !== null) return err(refused);
    }
    return ok(output);
  }

  async end(): Promise<BodyTransformStep> {
    return this.#state === 'done' ? ok([]) : err(refuseMalformed('no last chunk'));
  }

  /**
   * Copies, because the caller may reuse its buffer before the chunk is complete; into one block, because otherwise a chunk
   * that arrives byte by byte would occupy many times its size.
   */
  #takeData(data: Uint8Array, from: number): number {
    const piece = data.subarray(from, from + this.#dataLeft);
    const needed = this.#held + piece.length;
    if (needed > this.#block.length) {
      const grown = Math.max(needed, 2 * this.#block.length, FIRST_BLOCK_BYTES);
      const block = new Uint8Array(Math.min(grown, this.#held + this.#dataLeft));
      block.set(this.#block.subarray(0, this.#held));
      this.#block = block;
    }
    this.#block.set(piece, this.#held);
    this.#held = needed;
    this.#dataLeft -= piece.length;
    return from + piece.length;
  }

  #takeText(state: keyof typeof TEXTS, data: Uint8Array, from: number): number {
    const { end, maxBytes } = TEXTS[state];
    let at = from;
    while (at < data.length && this.#text.length < maxBytes && !this.#text.endsWith(end)) {
      this.#text += String.fromCharCode(data[at] ?? 0);
      at += 1;
    }
    return at;
  }

  /** Continues with the next state when all bytes of this one have arrived. */
  async #advance(output: Uint8Array[]): Promise<Refusal | null> {
    if (this.#state === 'done') return null;
    if (this.#state === 'data') {
      if (this.#dataLeft === 0) await this.#emitChunk('data_end', output);
      return null;
    }
    const { end, maxBytes } = TEXTS[this.#state];
    if (!this.#text.endsWith(end))
      return this.#text.length < maxBytes ? null : refuseMalformed('a line that is too long');
    const text = this.#text;
    this.#text = '';
    if (this.#state === 'line') return this.#beginChunk(text, output);
    if (this.#state === 'trailer') return this.#emitTrailer(text, output);
    output.push(latin1Bytes(text));
    this.#state = this.#isLastChunk() ? 'done' : 'line';
    return null;
  }

  async #beginChunk(line: string, output: Uint8Array[]): Promise<Refusal | null> {
    const [, size, signature] = CHUNK_LINE.exec(line) ?? [];
    if (size === undefined || !this.#isSignature(signature))
      return refuseMalformed('a chunk without a chunk-signature');
    this.#size = size;
    this.#dataLeft = Number.parseInt(size, 16);
    if (this.#dataLeft > MAX_SIGNED_CHUNK_BYTES) return CHUNK_TOO_LARGE;
    this.#state = 'data';
    if (this.#isLastChunk()) await this.#emitChunk(this.#hasTrailer ? 'trailer' : 'data_end', output);
    return null;
  }

  #isLastChunk(): boolean {
    return Number.parseInt(this.#size, 16) === 0;
  }

  async #emitChunk(next: State, output: Uint8Array[]): Promise<void> {
    const data = this.#held === 0 ? [] : [this.#block.subarray(0, this.#held)];
    const hashes = [await this.#signer.digestOf([]), await this.#signer.digestOf(data)];
    const signature = await this.#sign('PAYLOAD', hashes);
    output.push(latin1Bytes(`${this.#size};chunk-signature=${signature}\r\n`), ...data);
    this.#block = NOTHING;
    this.#held = 0;
    this.#state = next;
  }

  /** Trailers are signed as `name:value` lines that end with LF, without the signature's own. */
  async #emitTrailer(text: string, output: Uint8Array[]): Promise<Refusal | null> {
    const lines = text.slice(0, -4).split('\r\n');
    const [, spelled, clientSignature] = TRAILER_SIGNATURE.exec(lines.pop() ?? '') ?? [];
    if (spelled === undefined || !this.#isSignature(clientSignature) || !lines.every((line) => TRAILER_LINE.test(line)))
      return refuseMalformed('a trailer without its signature');
    const canonical = lines.map((line) => `${canonicalTrailer(line)}\n`).join('');
    const hash = await this.#signer.digestOf([latin1Bytes(canonical)]);
    const signature = await this.#sign('TRAILER', [hash]);
    output.push(latin1Bytes([...lines, `${spelled}${signature}`, '', ''].join('\r\n')));
    this.#state = 'done';
    return null;
  }

  async #sign(part: 'PAYLOAD' | 'TRAILER', hashes: readonly string[]): Promise<string> {
    const { algorithm, longDate, scope } = this.#signer;
    const text = [`${algorithm}-${part}`, longDate, scope, this.#previousSignature, ...hashes].join('\n');
    this.#previousSignature = await this.#signer.signText(text);
    return this.#previousSignature.padEnd(SIGNATURE_CHARACTERS[algorithm], '*');
  }

  /** Whether the client's has the length that ours will have. */
  #isSignature(text: string | undefined): boolean {
    return text?.length === SIGNATURE_CHARACTERS[this.#signer.algorithm];
  }
}

function canonicalTrailer(line: string): string {
  const colon = line.indexOf(':');
  return `${line.slice(0, colon).trim().toLowerCase()}:${line.slice(colon + 1).trim()}`;
}

function refuseMalformed(what: string): Refusal {
  return refusal('invalid_request', `The body is not the aws-chunked stream that its headers declare: it has ${what}.`);
}

const CHUNK_TOO_LARGE = refusal(
  'body_too_large',
  `A signed chunk of the body is larger than ${MAX_SIGNED_CHUNK_BYTES} bytes: configure the client for smaller chunks.`,
);
