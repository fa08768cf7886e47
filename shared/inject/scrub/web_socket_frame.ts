/** The header of a WebSocket frame (RFC 6455 section 5.2). */
export interface FrameHeader {
  readonly final: boolean;
  /** The three extension bits, in their position in the first byte. */
  readonly reserved: number;
  readonly opcode: number;
  readonly masked: boolean;
  readonly payloadLength: number;
}

const FIN = 0x80;
const RESERVED = 0x70;
const OPCODE = 0x0f;
const MASKED = 0x80;
const LENGTH = 0x7f;
const LENGTH_IN_2_BYTES = 126;
const LENGTH_IN_8_BYTES = 127;
const FIRST_CONTROL_OPCODE = 0x8;
const CLOSE_OPCODE = 0x8;
const LAST_CONTROL_OPCODE = 0xa;
const TEXT_OPCODE = 0x1;
const BINARY_OPCODE = 0x2;

/** The largest payload of a control frame (RFC 6455 section 5.5). */
export const MOST_CONTROL_BYTES = 125;

/** The length of a frame header, from its first two bytes. */
export function frameHeaderLength(secondByte: number): number {
  const length = secondByte & LENGTH;
  const extended = length === LENGTH_IN_8_BYTES ? 8 : length === LENGTH_IN_2_BYTES ? 2 : 0;
  return 2 + extended + (secondByte & MASKED ? 4 : 0);
}

/** Reads a whole frame header. */
export function readFrameHeader(header: readonly number[]): FrameHeader {
  const [first = 0, second = 0] = header;
  const length = second & LENGTH;
  const extended = length === LENGTH_IN_8_BYTES ? 8 : length === LENGTH_IN_2_BYTES ? 2 : 0;
  return {
    final: (first & FIN) !== 0,
    reserved: first & RESERVED,
    opcode: first & OPCODE,
    masked: (second & MASKED) !== 0,
    payloadLength:
      extended === 0 ? length : header.slice(2, 2 + extended).reduce((total, byte) => total * 256 + byte, 0),
  };
}

/** Whether the first frame of a WebSocket without extensions can start with this byte. No printable character does. */
export function startsFrame(byte: number): boolean {
  const opcode = byte & OPCODE;
  const isMessage = opcode === TEXT_OPCODE || opcode === BINARY_OPCODE;
  const isWholeControl = (byte & FIN) !== 0 && opcode >= FIRST_CONTROL_OPCODE && opcode <= LAST_CONTROL_OPCODE;
  return (byte & RESERVED) === 0 && (isMessage || isWholeControl);
}

/** A server's frame, which is not masked: its header in the shortest form, then its payload. */
export function formatFrame(
  { final, reserved, opcode }: Pick<FrameHeader, 'final' | 'reserved' | 'opcode'>,
  payload: readonly Uint8Array[],
): Uint8Array[] {
  const length = payload.reduce((total, { length: bytes }) => total + bytes, 0);
  return [Uint8Array.from([(final ? FIN : 0) | reserved | opcode, ...lengthBytes(length)]), ...payload];
}

function lengthBytes(length: number): readonly number[] {
  if (length < LENGTH_IN_2_BYTES) return [length];
  if (length < 0x10000) return [LENGTH_IN_2_BYTES, length >> 8, length & 0xff];
  const bytes = [7, 6, 5, 4, 3, 2, 1, 0].map((power) => Math.floor(length / 256 ** power) % 256);
  return [LENGTH_IN_8_BYTES, ...bytes];
}

/** Ping, pong and close frames may come between the fragments of a message. */
export function isControl(frame: FrameHeader): boolean {
  return frame.opcode >= FIRST_CONTROL_OPCODE;
}

export function isClose(frame: FrameHeader): boolean {
  return frame.opcode === CLOSE_OPCODE;
}
