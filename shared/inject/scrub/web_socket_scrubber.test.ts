import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { latin1Bytes, latin1Text } from '../byte_text.ts';
import { SAMPLE_SEARCH_KEY } from '../testing/sample_requests.ts';
import { joinBytes } from '../join_bytes.ts';
import { compileScrubPatterns } from './patterns.ts';
import { WebSocketScrubber } from './web_socket_scrubber.ts';

const SECRET = 'S3CR3T-TOKEN';
const PATTERNS = compileScrubPatterns([SECRET], SAMPLE_SEARCH_KEY);
const TEXT = 1;
const CONTINUATION = 0;
const PING = 9;
const CLOSE = 8;

interface Frame {
  readonly opcode: number;
  readonly final: boolean;
  readonly payload: string;
  /** How many bytes the length is written with, at least. */
  readonly lengthBytes?: 0 | 2 | 8;
}

function encodeFrame({ opcode, final, payload, lengthBytes = 0 }: Frame): string {
  const { length } = payload;
  const bytes = length > 65_535 || lengthBytes === 8 ? 8 : length > 125 || lengthBytes === 2 ? 2 : 0;
  const extended = Array.from({ length: bytes }, (_, index) => Math.floor(length / 256 ** (bytes - 1 - index)) % 256);
  const short = bytes === 8 ? 127 : bytes === 2 ? 126 : length;
  return String.fromCharCode((final ? 0x80 : 0) | opcode, short, ...extended) + payload;
}

function scrubFrames(stream: string, cuts: readonly number[] = []): string {
  const scrubber = new WebSocketScrubber(PATTERNS);
  const output: Uint8Array[] = [];
  const ends = cuts.map((cut) => cut % (stream.length + 1)).toSorted((a, b) => a - b);
  let from = 0;
  for (const end of [...ends, stream.length]) {
    const chunk = latin1Bytes(stream.slice(from, end));
    output.push(...scrubber.push(chunk).map((piece) => piece.slice()));
    // Held-back bytes must not share a buffer that the caller reuses.
    chunk.fill(0xff);
    from = end;
  }
  return latin1Text(joinBytes([...output, ...scrubber.flush()]));
}

/** The frames of one message: `payload` split into fragments, a ping after each fragment that `pings` names. */
function message(
  payload: string,
  splits: readonly number[],
  pings: readonly boolean[],
  lengthBytes: 0 | 2 | 8,
): Frame[] {
  const ends = [...splits.map((split) => split % (payload.length + 1)).toSorted((a, b) => a - b), payload.length];
  return ends.flatMap((end, index) => {
    const final = index === ends.length - 1;
    const opcode = index === 0 ? TEXT : CONTINUATION;
    const fragment: Frame = {
      opcode,
      final,
      payload: payload.slice(index === 0 ? 0 : ends[index - 1], end),
      lengthBytes,
    };
    return pings[index] === true ? [fragment, { opcode: PING, final: true, payload: `beat ${SECRET}` }] : [fragment];
  });
}

const anyPayload = fc
  .array(
    fc.oneof(fc.constant(SECRET), fc.string({ maxLength: 40, unit: fc.constantFrom(...'S3CR-T{}" '.split('')) })),
    {
      maxLength: 6,
    },
  )
  .map((parts) => parts.join(''));
const anyMessage = fc
  .tuple(
    anyPayload,
    fc.array(fc.nat(200), { maxLength: 4 }),
    fc.array(fc.boolean(), { maxLength: 5 }),
    fc.constantFrom<0 | 2 | 8>(0, 2, 8),
  )
  .map(([payload, splits, pings, lengthBytes]) => message(payload, splits, pings, lengthBytes));

function whole(opcode: number, payload: string): string {
  return encodeFrame({ opcode, final: true, payload });
}

/** A client's view of the frames: whole messages with their opcode, and control frames in between; `open`: not ended. */
function readMessages(stream: string): string[] {
  const told: string[] = [];
  let text = '';
  for (let at = 0; at < stream.length;) {
    const [first, short] = [stream.charCodeAt(at), stream.charCodeAt(at + 1)];
    const bytes = short === 127 ? 8 : short === 126 ? 2 : 0;
    const extended = stream.slice(at + 2, at + 2 + bytes);
    const length = bytes === 0 ? short : latin1Bytes(extended).reduce((sum, byte) => sum * 256 + byte, 0);
    at += 2 + bytes + length;
    const payload = stream.slice(at - length, at);
    const opcode = first & 15;
    if (opcode >= 8) {
      told.push(`control ${opcode}: ${payload}`);
      continue;
    }
    expect(opcode === CONTINUATION).toBe(text !== '');
    text += (text === '' ? `message ${opcode}: ` : '') + payload;
    if ((first & 0x80) === 0) continue;
    told.push(text);
    text = '';
  }
  return text === '' ? told : [...told, `open ${text}`];
}

/** The same with the secret masked by hand in each. */
function maskMessages(told: readonly string[]): string[] {
  return told.map((each) => each.replaceAll(SECRET, '*'.repeat(SECRET.length)));
}

describe('WebSocketScrubber', () => {
  it('masks messages across fragments, control frames and any split, and control frames too', () => {
    fc.assert(
      fc.property(
        fc.array(anyMessage, { maxLength: 4 }),
        fc.array(fc.nat(2000), { maxLength: 8 }),
        (messages, cuts) => {
          const stream = messages.flat().map(encodeFrame).join('');
          const result = readMessages(scrubFrames(stream, cuts));
          // Messages in order, and control frames in order: a control frame does not wait for the message around it.
          for (const kind of ['message', 'control']) {
            const ofKind = (told: string): boolean => told.startsWith(kind);
            expect(result.filter(ofKind)).toEqual(maskMessages(readMessages(stream)).filter(ofKind));
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it('masks in frames with 16-bit and 64-bit lengths', () => {
    for (const filler of [200, 70_000]) {
      const frame: Frame = { opcode: 2, final: true, payload: `${'x'.repeat(filler)}${SECRET}y` };
      expect(readMessages(scrubFrames(encodeFrame(frame), [3, filler + 8]))).toEqual(
        maskMessages([`message 2: ${frame.payload}`]),
      );
    }
  });

  it('sends the end of a message at once', () => {
    const scrubber = new WebSocketScrubber(PATTERNS);
    const frame = encodeFrame({ opcode: TEXT, final: true, payload: 'ends like S3CR3T' });
    expect(latin1Text(joinBytes(scrubber.push(latin1Bytes(frame))))).toBe(frame);
  });

  it('sends held-back bytes before a close frame', () => {
    const scrubber = new WebSocketScrubber(PATTERNS);
    const frames =
      encodeFrame({ opcode: TEXT, final: false, payload: 'a S3CR3T' }) +
      encodeFrame({ opcode: CLOSE, final: true, payload: '' });
    expect(latin1Text(joinBytes(scrubber.push(latin1Bytes(frames))))).toBe(frames);
  });

  it('never masks part of the secret nor delays a control frame, however many come within a message', () => {
    const scrubber = new WebSocketScrubber(PATTERNS);
    const first = encodeFrame({ opcode: TEXT, final: false, payload: `a ${SECRET.slice(0, -1)}` });
    const ping = encodeFrame({ opcode: PING, final: true, payload: '' });
    expect(scrubber.push(latin1Bytes(first))).toEqual([]);
    for (let count = 0; count < 32_000; count += 1) {
      expect(latin1Text(joinBytes(scrubber.push(latin1Bytes(ping))))).toBe(ping);
    }
    const last = encodeFrame({ opcode: CONTINUATION, final: true, payload: '!' });
    expect(readMessages(latin1Text(joinBytes(scrubber.push(latin1Bytes(last)))))).toEqual([
      `message 1: a ${SECRET.slice(0, -1)}!`,
    ]);
  });

  it('masks the reason of a close frame and the payload of a ping', () => {
    for (const opcode of [CLOSE, PING]) {
      const payload = `${opcode === CLOSE ? '\x03\xe8' : ''}no ${SECRET} here`;
      expect(readMessages(scrubFrames(encodeFrame({ opcode, final: true, payload }), [5]))).toEqual(
        maskMessages([`control ${opcode}: ${payload}`]),
      );
    }
  });

  it('reports each message and control frame in which something was masked', () => {
    let count = 0;
    const scrubber = new WebSocketScrubber(PATTERNS, () => (count += 1));
    const frames = [whole(TEXT, `${SECRET} ${SECRET}`), whole(PING, SECRET), whole(TEXT, 'ok'), whole(TEXT, SECRET)];
    for (const each of frames) scrubber.push(latin1Bytes(each));
    expect(count).toBe(3);
  });

  it('counts an endless message once, as soon as something in it is masked', () => {
    let count = 0;
    const scrubber = new WebSocketScrubber(PATTERNS, () => (count += 1));
    const fragment = (opcode: number): Uint8Array =>
      latin1Bytes(encodeFrame({ opcode, final: false, payload: `${SECRET} ${'-'.repeat(PATTERNS.tailBytes)}` }));
    scrubber.push(fragment(TEXT));
    expect(count).toBe(1);
    scrubber.push(fragment(CONTINUATION));
    scrubber.flush();
    expect(count).toBe(1);
  });

  it('counts a truncated message', () => {
    let count = 0;
    const scrubber = new WebSocketScrubber(PATTERNS, () => (count += 1));
    scrubber.push(latin1Bytes(encodeFrame({ opcode: TEXT, final: false, payload: SECRET })));
    scrubber.flush();
    expect(count).toBe(1);
  });

  it('passes a frame with the mask bit unread', () => {
    const frame = String.fromCharCode(0x81, 0x80 | SECRET.length, 0, 0, 0, 0) + SECRET;
    expect(scrubFrames(frame, [1, 4, 9])).toBe(frame);
  });

  it('passes everything if there is nothing to search for', () => {
    const chunk = latin1Bytes(encodeFrame({ opcode: TEXT, final: true, payload: SECRET }));
    expect(new WebSocketScrubber(compileScrubPatterns([], SAMPLE_SEARCH_KEY)).push(chunk)).toEqual([chunk]);
  });
});
