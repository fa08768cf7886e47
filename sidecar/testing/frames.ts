/** Frames of HTTP/2, as a hostile peer of a test writes them. */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Frame types and flags (RFC 9113 section 6). */
export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;
export const END_STREAM = 1;
export const END_HEADERS = 4;
export const PADDED = 8;
export const ACK = 1;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Header fields as literals that are not indexed (RFC 7541 section 6.2.2); `how` 0x40 puts them into the table. */
export function fields(list: readonly (readonly [string, string])[], how = 0): Buffer {
  return Buffer.concat(list.map(([name, value]) => Buffer.concat([Buffer.of(how), text(name), text(value)])));
}

function text(value: string): Buffer {
  return Buffer.concat([size(value.length), Buffer.from(value, 'latin1')]);
}

/** An integer with a prefix of seven bits (RFC 7541 section 5.1). */
function size(length: number): Buffer {
  if (length < 127) return Buffer.of(length);
  const bytes = [127];
  for (let left = length - 127; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) + 128);
  }
}

/** A big-endian number of 32 bits. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A SETTINGS frame. */
export function settings(...pairs: (readonly [id: number, value: number])[]): Buffer {
  return frame(
    SETTINGS,
    0,
    0,
    Buffer.concat(pairs.map(([id, value]) => Buffer.concat([Buffer.of(0, id), uint32(value)]))),
  );
}

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** The whole frames at the start of these bytes. */
export function readFrames(bytes: Buffer): ReceivedFrame[] {
  const frames: ReceivedFrame[] = [];
  for (let at = 0; at + 9 <= bytes.length;) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    if (end > bytes.length) break;
    const [type = 0, flags = 0] = bytes.subarray(at + 3, at + 5);
    frames.push({ type, flags, stream: bytes.readUInt32BE(at + 5), payload: bytes.subarray(at + 9, end) });
    at = end;
  }
  return frames;
}
