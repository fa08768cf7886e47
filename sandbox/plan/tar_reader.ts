/** The kind of an entry of an archive. `other`: devices, pipes and unknown types, with the type flag of the archive. */
type TarKind = 'file' | 'folder' | 'symlink' | 'hardlink' | 'other';

export interface TarEntry {
  readonly name: string;
  readonly kind: TarKind;
  /** The type flag, for messages. */
  readonly type: string;
  readonly mode: number;
  readonly uid: number;
  readonly size: number;
  /** The target of a link. */
  readonly target: string;
}

/** Receives the entries in order. If `file` or `link` rejects, reading ends with that error. */
export interface TarSink {
  entry(entry: TarEntry): Promise<void>;
  /** The next bytes of the file that `entry` announced last. */
  data(chunk: Uint8Array): Promise<void>;
  /** The file is complete. */
  endOfFile(): Promise<void>;
}

const BLOCK = 512;
/** The limit of a header that describes the next entry: a longer one than any name needs is an attack. */
const MAX_EXTENSION_BYTES = 64 * 1024;
const KINDS: Readonly<Record<string, TarKind>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hardlink',
  '2': 'symlink',
  '5': 'folder',
};

/** The archive is malformed, or contains something that no engine writes. */
export class TarError extends Error {
  override readonly name = 'TarError';
}

/**
 * Reads an archive as engines write it (POSIX.1-2001 pax, ustar, GNU long names) and passes its entries to a sink. It checks
 * only checksums and sizes; the sink decides which names may be written.
 *
 * tar-stream (3.2.2) is not used, because it hides extension headers from its caller and accepts what is refused here:
 * damaged extended headers, sizes such as `3x`, headers of up to 4 MiB, and a global header that names every entry.
 */
export async function readTar(chunks: AsyncIterable<Uint8Array>, sink: TarSink): Promise<void> {
  const reader = new BlockReader(chunks);
  let extended: Extended = {};
  for (;;) {
    const block = await reader.block();
    if (block === null) return;
    if (isZero(block)) return reader.discardRest();
    const header = parseHeader(block);
    if (header.type === 'x' || header.type === 'L' || header.type === 'K') {
      extended = { ...extended, ...(await readExtension(reader, header)) };
    } else if (header.type === 'g') {
      await readText(reader, header.size);
    } else {
      await passOn(reader, sink, withExtended(header, extended));
      extended = {};
    }
  }
}

interface Extended {
  readonly path?: string;
  readonly linkpath?: string;
  readonly size?: number;
  readonly uid?: number;
}

async function passOn(reader: BlockReader, sink: TarSink, entry: TarEntry): Promise<void> {
  await sink.entry(entry);
  if (entry.kind !== 'file') {
    // Links and folders have no content, for any size in the header (POSIX.1-2001, pax, ustar Interchange Format).
    return;
  }
  await reader.bytes(entry.size, (chunk) => sink.data(chunk));
  await sink.endOfFile();
}

async function readExtension(reader: BlockReader, header: TarEntry): Promise<Extended> {
  const text = await readText(reader, header.size);
  if (header.type === 'L') return { path: cutAtNul(text) };
  if (header.type === 'K') return { linkpath: cutAtNul(text) };
  return paxFields(text);
}

async function readText(reader: BlockReader, size: number): Promise<string> {
  if (size > MAX_EXTENSION_BYTES) throw new TarError('a header is too long');
  const parts: Uint8Array[] = [];
  await reader.bytes(size, (chunk) => {
    parts.push(chunk);
    return Promise.resolve();
  });
  return new TextDecoder().decode(Buffer.concat(parts));
}

/** Records of `LENGTH KEY=VALUE\n`; the length in bytes includes itself. */
function paxFields(text: string): Extended {
  const bytes = Buffer.from(text);
  const found = new Map<string, string>();
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(bytes.toString('latin1', at, space));
    if (space < 0 || !Number.isSafeInteger(length) || length <= space - at || at + length > bytes.length) {
      throw new TarError('an extended header is damaged');
    }
    const record = bytes.toString('utf8', space + 1, at + length - 1);
    const equals = record.indexOf('=');
    if (equals < 0) throw new TarError('an extended header is damaged');
    found.set(record.slice(0, equals), record.slice(equals + 1));
    at += length;
  }
  const number = (key: string): number | undefined => {
    const value = found.get(key);
    if (value === undefined) return undefined;
    if (!/^\d{1,15}$/.test(value)) throw new TarError(`an extended header has no number as ${key}`);
    return Number(value);
  };
  const [path, linkpath, size, uid] = [found.get('path'), found.get('linkpath'), number('size'), number('uid')];
  return {
    ...(path !== undefined && { path }),
    ...(linkpath !== undefined && { linkpath }),
    ...(size !== undefined && { size }),
    ...(uid !== undefined && { uid }),
  };
}

function withExtended(entry: TarEntry, extended: Extended): TarEntry {
  return {
    ...entry,
    name: extended.path ?? entry.name,
    target: extended.linkpath ?? entry.target,
    size: extended.size ?? entry.size,
    uid: extended.uid ?? entry.uid,
  };
}

function parseHeader(block: Buffer): TarEntry {
  if (checksum(block) !== numberAt(block, 148, 8)) throw new TarError('a header does not match its checksum');
  const type = block.toString('latin1', 156, 157);
  const ustar = block.toString('latin1', 257, 262) === 'ustar' && block[263] === 0x30;
  const prefix = ustar ? textAt(block, 345, 155) : '';
  const name = textAt(block, 0, 100);
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    kind: KINDS[type] ?? 'other',
    type,
    mode: numberAt(block, 100, 8),
    uid: numberAt(block, 108, 8),
    size: numberAt(block, 124, 12),
    target: textAt(block, 157, 100),
  };
}

/** The sum of all bytes, with spaces in place of the checksum field. */
function checksum(block: Buffer): number {
  let sum = 8 * 0x20;
  for (const [index, byte] of block.entries()) if (index < 148 || index >= 156) sum += byte;
  return sum;
}

function textAt(block: Buffer, at: number, length: number): string {
  return cutAtNul(block.toString('utf8', at, at + length));
}

function cutAtNul(text: string): string {
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}

/** Octal digits, or (GNU) a binary number that begins with the bit 0x80. */
function numberAt(block: Buffer, at: number, length: number): number {
  if ((block[at] ?? 0) === 0x80) {
    const value = Number(block.subarray(at + 1, at + length).reduce((sum, byte) => sum * 256n + BigInt(byte), 0n));
    if (Number.isSafeInteger(value)) return value;
    throw new TarError('a header has a number that is too large');
  }
  const text = block
    .toString('latin1', at, at + length)
    .replace(/[\0 ]+$/, '')
    .trimStart();
  if (text === '') return 0;
  if (/^[0-7]+$/.test(text)) return Number.parseInt(text, 8);
  throw new TarError('a header has an invalid number');
}

function isZero(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** Splits a stream into the blocks of an archive. Buffers at most one chunk. */
class BlockReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunk: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#source = chunks[Symbol.asyncIterator]();
  }

  /** The next block; null at the end of the stream. */
  async block(): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for (let missing = BLOCK; missing > 0;) {
      const part = await this.#take(missing);
      if (part === null) {
        if (missing === BLOCK) return null;
        throw new TarError('it ends in the middle of a header');
      }
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  }

  /** Yields the next `size` bytes, and skips the padding after them. */
  async bytes(size: number, to: (chunk: Uint8Array) => Promise<void>): Promise<void> {
    for (let missing = size; missing > 0;) {
      const part = await this.#take(missing);
      if (part === null) throw new TarError('it ends in the middle of a file');
      missing -= part.length;
      await to(part);
    }
    for (let padding = (BLOCK - (size % BLOCK)) % BLOCK; padding > 0;) {
      const part = await this.#take(padding);
      if (part === null) throw new TarError('it ends in the middle of a file');
      padding -= part.length;
    }
  }

  /** What fills up the last record. A program whose output is not read to its end does not end. */
  async discardRest(): Promise<void> {
    while ((await this.#source.next()).done !== true);
  }

  async #take(most: number): Promise<Buffer | null> {
    while (this.#chunk.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return null;
      this.#chunk = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    const part = this.#chunk.subarray(0, most);
    this.#chunk = this.#chunk.subarray(part.length);
    return part;
  }
}
