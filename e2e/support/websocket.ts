import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** RFC 6455 section 1.3. */
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const [TEXT, CLOSE, PING, PONG] = [0x1, 0x8, 0x9, 0xa] as const;

/** The answers to one text message. */
type Answer = (message: string) => Promise<readonly string[]>;

/** Accepts a WebSocket over HTTP/1.1 and answers its messages as {@link answerMessages} does. */
export function serveWebSocket(request: IncomingMessage, socket: Duplex, head: Buffer, answer: Answer): void {
  const key = `${request.headers['sec-websocket-key'] ?? ''}${ACCEPT_SUFFIX}`;
  const accept = createHash('sha1').update(key).digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.write([...lines, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n'));
  answerMessages(socket, head, answer);
}

/** Answers each text message of an open WebSocket with others; enough of RFC 6455 for the clients: no extensions. */
export function answerMessages(socket: Duplex, head: Buffer, answer: Answer): void {
  let received = head;
  let message = Buffer.alloc(0);
  const send = async (asked: string): Promise<void> => {
    for (const text of await answer(asked)) if (socket.writable) socket.write(writeFrame(TEXT, Buffer.from(text)));
  };
  const take = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk]);
    for (let frame = readFrame(received); frame !== null; frame = readFrame(received)) {
      received = received.subarray(frame.size);
      if (frame.opcode === CLOSE) {
        socket.end(writeFrame(CLOSE, frame.payload));
        return;
      }
      if (frame.opcode === PING) socket.write(writeFrame(PONG, frame.payload));
      if (frame.opcode > TEXT) continue;
      message = Buffer.concat([message, frame.payload]);
      if (!frame.final) continue;
      void send(message.toString('utf8'));
      message = Buffer.alloc(0);
    }
  };
  socket.on('error', () => socket.destroy());
  socket.on('data', take);
  take(Buffer.alloc(0));
}

interface Frame {
  readonly final: boolean;
  readonly opcode: number;
  readonly payload: Buffer;
  /** All bytes of the frame. */
  readonly size: number;
}

/** RFC 6455 section 5.2; null until the whole frame is there. A client's frames are masked. */
function readFrame(bytes: Buffer): Frame | null {
  if (bytes.length < 2) return null;
  const short = (bytes[1] ?? 0) & 0x7f;
  const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
  const start = 2 + lengthBytes + 4;
  if (bytes.length < start) return null;
  const length =
    lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : lengthBytes === 2 ? bytes.readUInt16BE(2) : short;
  if (bytes.length < start + length) return null;
  const mask = bytes.subarray(start - 4, start);
  const payload = Buffer.from(bytes.subarray(start, start + length)).map((byte, at) => byte ^ (mask[at % 4] ?? 0));
  const first = bytes[0] ?? 0;
  return { final: (first & 0x80) !== 0, opcode: first & 0x0f, payload: Buffer.from(payload), size: start + length };
}

function writeFrame(opcode: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(payload.length < 126 ? 2 : 4);
  head[0] = 0x80 | opcode;
  head[1] = payload.length < 126 ? payload.length : 126;
  if (payload.length >= 126) head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, payload]);
}
