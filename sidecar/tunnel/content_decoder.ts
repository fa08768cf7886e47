import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib';

import type { ReplyHead } from '../../shared/net/http1_head.ts';
import { fieldValues } from '../../shared/net/http1_head.ts';
import { BrokenReply } from './reply_body.ts';
import type { ReplyBody } from './reply_body.ts';

/** Makes the decoder for a body, given its first bytes. */
type DecoderFactory = (first: Uint8Array) => Transform;

const DECODERS: ReadonlyMap<string, DecoderFactory> = new Map<string, DecoderFactory>([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  ['br', () => createBrotliDecompress()],
  ['zstd', () => createZstdDecompress()],
  ['deflate', (first) => (isZlib(first) ? createInflate() : createInflateRaw())],
]);

/** A body may grow this much when it is decoded, beyond an allowance for small ones: more is a bomb. */
const MOST_EXPANSION = 1100;
const EXPANSION_ALLOWANCE_BYTES = 16 * 1024 * 1024;

/** "deflate" is the zlib format (RFC 9110 section 8.4.1.2), but some servers send the raw one. */
function isZlib(first: Uint8Array): boolean {
  const [cmf = 0, flags = 0] = first;
  return (cmf & 0x0f) === 8 && ((cmf << 8) | flags) % 31 === 0;
}

/** The decoder for a reply's content coding; null when it has none, or one that can't be read (a part of a body too). */
export function contentDecoder(head: ReplyHead): DecoderFactory | null {
  if (head.status === 206) return null;
  const codings = fieldValues(head.fields, 'content-encoding')
    .flatMap((value) => value.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  const [only] = codings;
  return codings.length === 1 && only !== undefined ? (DECODERS.get(only) ?? null) : null;
}

/**
 * Decodes a body piece by piece, with back pressure through the decoder. Throws BrokenReply for a body that is not what
 * its coding says, or that grows beyond measure.
 */
export async function decode(
  body: ReplyBody,
  factory: DecoderFactory,
  write: (piece: Uint8Array) => true | Promise<void>,
): Promise<void> {
  const first = await nextData(body);
  if (first === 'done') return;
  const decoder = factory(first[0] ?? new Uint8Array(0));
  const counts = { in: 0, out: 0 };
  const feeding = feed(body, first, decoder, counts);
  try {
    for await (const piece of decoder as AsyncIterable<Uint8Array>) {
      counts.out += piece.length;
      if (counts.out > counts.in * MOST_EXPANSION + EXPANSION_ALLOWANCE_BYTES)
        throw new BrokenReply('it grows beyond measure');
      const roomy = write(piece);
      if (roomy !== true) await roomy;
    }
    await feeding;
  } catch (error) {
    decoder.destroy();
    await feeding.catch(() => undefined);
    throw error instanceof Error && 'errno' in error ? new BrokenReply('its content coding is broken') : error;
  }
}

async function nextData(body: ReplyBody): Promise<readonly Uint8Array[] | 'done'> {
  for (;;) {
    const piece = await body.next();
    if (piece === 'done') return 'done';
    if (piece.data.length > 0) return piece.data;
  }
}

async function feed(
  body: ReplyBody,
  first: readonly Uint8Array[],
  decoder: Transform,
  counts: { in: number },
): Promise<void> {
  try {
    for (let data: readonly Uint8Array[] | 'done' = first; data !== 'done'; data = await nextData(body)) {
      for (const piece of data) {
        counts.in += piece.length;
        if (!decoder.write(piece)) await roomIn(decoder);
      }
      if (decoder.destroyed) return;
    }
    decoder.end();
  } catch (error) {
    decoder.destroy(error instanceof Error ? error : new Error('the reply could not be read'));
  }
}

/** Resolves when the decoder takes more, or is gone. */
function roomIn(decoder: Transform): Promise<void> {
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
