import type { Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';

import type { ReplyHead } from '../../shared/net/http/http1_head.ts';
import { fieldValues } from '../../shared/net/http/http1_head.ts';
import { BrokenReply } from './reply_body.ts';
import type { ReplyBody } from './reply_body.ts';

/** Makes the decoder of one coding, given its first bytes. */
type DecoderFactory = (first: Uint8Array) => Transform;

/** RFC 9659: a zstd content coding has a window of 8 MiB at most; a larger one would let an upstream take memory from all. */
const ZSTD_WINDOW = { params: { [constants.ZSTD_d_windowLogMax]: 23 } };

const DECODERS: ReadonlyMap<string, DecoderFactory> = new Map<string, DecoderFactory>([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  ['br', () => createBrotliDecompress()],
  ['zstd', () => createZstdDecompress(ZSTD_WINDOW)],
  ['deflate', (first) => (isZlib(first) ? createInflate() : createInflateRaw())],
]);

const MOST_CODINGS = 3;
/** How much a body may grow when decoded, beyond an allowance for small ones. More is treated as a decompression bomb. */
const MOST_EXPANSION = 1100;
const EXPANSION_ALLOWANCE_BYTES = 16 * 1024 * 1024;

/** "deflate" is the zlib format (RFC 9110 section 8.4.1.2), but some servers send raw deflate. */
function isZlib(first: Uint8Array): boolean {
  const [cmf = 0, flags = 0] = first;
  return (cmf & 0x0f) === 8 && ((cmf << 8) | flags) % 31 === 0;
}

/** The decoders for a reply's content codings, in order; null if there are none, or if one cannot be decoded (also for a partial body). */
export function contentDecoders(head: ReplyHead): readonly DecoderFactory[] | null {
  if (head.status === 206) return null;
  const decoders: DecoderFactory[] = [];
  for (const coding of fieldValues(head.fields, 'content-encoding').flatMap((value) => value.split(','))) {
    const name = coding.trim().toLowerCase();
    if (name === '' || name === 'identity') continue;
    const decoder = DECODERS.get(name);
    if (decoder === undefined || decoders.length === MOST_CODINGS) return null;
    decoders.unshift(decoder);
  }
  return decoders.length === 0 ? null : decoders;
}

/**
 * The decoded payload of a body, piece by piece and with back pressure. It reads the body to its end, even if the coded data
 * ends earlier. Throws BrokenReply for a body that does not match its codings, or that expands too much.
 */
export function decodeBody(body: ReplyBody, decoders: readonly DecoderFactory[]): AsyncIterable<Uint8Array> {
  const counts = { received: 0 };
  let pieces = readPieces(body, counts);
  for (const decoder of decoders) pieces = limitExpansion(decodePieces(pieces, decoder), counts);
  return pieces;
}

async function* readPieces(body: ReplyBody, counts: { received: number }): AsyncGenerator<Uint8Array> {
  for (let piece = await body.nextPiece(); piece !== 'done'; piece = await body.nextPiece()) {
    for (const data of piece.data) {
      counts.received += data.length;
      yield data;
    }
  }
}

/** The limit applies to each coding, so that no intermediate result grows large either. */
async function* limitExpansion(
  pieces: AsyncIterable<Uint8Array>,
  counts: { readonly received: number },
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    if (bytes > counts.received * MOST_EXPANSION + EXPANSION_ALLOWANCE_BYTES) {
      throw new BrokenReply('it expands too much');
    }
    yield piece;
  }
}

/** Decodes one coding. */
async function* decodePieces(coded: AsyncGenerator<Uint8Array>, factory: DecoderFactory): AsyncGenerator<Uint8Array> {
  const first = await coded.next();
  if (first.done === true) return;
  const decoder = factory(first.value);
  // A decoder can fail after its last output was taken; an unhandled error event would end the process.
  decoder.on('error', () => undefined);
  const feeding = feed(first.value, coded, decoder);
  feeding.catch(() => undefined);
  try {
    yield* decoder as AsyncIterable<Uint8Array>;
    await feeding;
  } catch (error) {
    throw isCodingError(error) ? new BrokenReply('its content coding is broken') : error;
  } finally {
    decoder.destroy();
  }
}

/** Writes everything into the decoder; bytes after the end of the coded data are read and dropped. */
async function feed(first: Uint8Array, rest: AsyncIterable<Uint8Array>, decoder: Transform): Promise<void> {
  try {
    if (!decoder.write(first)) await roomIn(decoder);
    for await (const piece of rest) {
      if (decoder.errored !== null) return;
      if (!decoder.destroyed && !decoder.readableEnded && !decoder.write(piece)) await roomIn(decoder);
    }
    decoder.end();
  } catch (error) {
    decoder.destroy(error instanceof Error ? error : new BrokenReply('it could not be read'));
    throw error;
  }
}

/** The errors that the decoders of node:zlib throw, or are destroyed with. */
function isCodingError(error: unknown): boolean {
  return error instanceof Error && 'errno' in error;
}

/** Resolves when the decoder accepts more, or is gone. */
function roomIn(decoder: Transform): Promise<void> {
  if (decoder.destroyed || !decoder.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      decoder.off('drain', done);
      decoder.off('close', done);
      resolve();
    };
    decoder.once('drain', done);
    decoder.once('close', done);
  });
}
