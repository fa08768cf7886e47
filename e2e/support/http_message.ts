import type { ByteReader } from './byte_reader.ts';

/** A message head as it was on the wire. */
export interface MessageHead {
  /** The raw head with its final empty line, latin1. */
  readonly text: string;
  readonly startLine: string;
  /** The header lines, in order and unchanged. */
  readonly lines: readonly string[];
  /** The value of the first header of that name. */
  header(name: string): string | undefined;
  /** The values of every header of that name, in order. */
  headers(name: string): string[];
}

export interface MessageBody {
  /** The bytes as they were on the wire, with the chunk framing. */
  readonly raw: Buffer;
  /** The payload. */
  readonly data: Buffer;
}

export const EMPTY_BODY: MessageBody = { raw: Buffer.alloc(0), data: Buffer.alloc(0) };

function parseHead(text: string): MessageHead {
  const [startLine = '', ...lines] = text.slice(0, -4).split('\r\n');
  const headers = (name: string): string[] =>
    lines
      .filter((line) => line.slice(0, line.indexOf(':')).toLowerCase() === name.toLowerCase())
      .map((line) => line.slice(line.indexOf(':') + 1).trim());
  return { text, startLine, lines, headers, header: (name) => headers(name)[0] };
}

export async function readHead(reader: ByteReader): Promise<MessageHead | null> {
  const bytes = await reader.until('\r\n\r\n');
  return bytes === null ? null : parseHead(bytes.toString('latin1'));
}

/** The body that a head announces. `untilClose`: a reply without a length continues to the end of the connection. */
export async function readBody(reader: ByteReader, head: MessageHead, untilClose: boolean): Promise<MessageBody> {
  if (head.header('transfer-encoding')?.toLowerCase() === 'chunked') return await readChunked(reader);
  const length = head.header('content-length');
  const raw =
    length === undefined && !untilClose ? null : length === undefined ? reader.rest() : reader.exactly(Number(length));
  if (raw === null) return EMPTY_BODY;
  const bytes = await raw;
  return { raw: bytes, data: bytes };
}

async function readChunked(reader: ByteReader): Promise<MessageBody> {
  const raw: Buffer[] = [];
  const data: Buffer[] = [];
  for (;;) {
    const sizeLine = await reader.until('\r\n');
    if (sizeLine === null) break;
    raw.push(sizeLine);
    const size = Number.parseInt(sizeLine.toString('latin1'), 16);
    if (size === 0) {
      raw.push(await readTrailers(reader));
      break;
    }
    const chunk = await reader.exactly(size + 2);
    raw.push(chunk);
    data.push(chunk.subarray(0, size));
    if (chunk.length < size + 2) break;
  }
  return { raw: Buffer.concat(raw), data: Buffer.concat(data) };
}

async function readTrailers(reader: ByteReader): Promise<Buffer> {
  const lines: Buffer[] = [];
  for (;;) {
    const line = await reader.until('\r\n');
    if (line === null) return Buffer.concat(lines);
    lines.push(line);
    if (line.length === 2) return Buffer.concat(lines);
  }
}
