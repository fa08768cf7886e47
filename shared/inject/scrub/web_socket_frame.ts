/** What the header of a WebSocket frame says (RFC 6455 section 5.2). */
export interface FrameHeader {
  readonly final: boolean;
  readonly opcode: number;
  readonly masked: boolean;
  readonly payloadLength: number;
}

const FIN = 0x80;
const OPCODE = 0x0f;
const MASKED = 0x80;
const LENGTH = 0x7f;
const LENGTH_IN_2_BYTES = 126;
const LENGTH_IN_8_BYTES = 127;
const FIRST_CONTROL_OPCODE = 0x8;
const CLOSE_OPCODE = 0x8;

/** How long a frame header is, by its first two bytes. */
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
  const payloadLength =
    extended === 0 ? length : header.slice(2, 2 + extended).reduce((total, byte) => total * 256 + byte, 0);
  return { final: (first & FIN) !== 0, opcode: first & OPCODE, masked: (second & MASKED) !== 0, payloadLength };
}

/** Ping, pong and close may come between the fragments of a message. */
export function isControl(frame: FrameHeader): boolean {
  return frame.opcode >= FIRST_CONTROL_OPCODE;
}

export function isClose(frame: FrameHeader): boolean {
  return frame.opcode === CLOSE_OPCODE;
}
