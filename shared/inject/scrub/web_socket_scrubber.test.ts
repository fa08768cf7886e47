import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { latin1Bytes, latin1Text } from '../byte_text.ts';
import { joined } from '../sample_requests.ts';
import { compileScrubPatterns } from './patterns.ts';
import { WebSocketScrubber } from './web_socket_scrubber.ts';

const SECRET = 'S3CR3T-TOKEN';
const PATTERNS = compileScrubPatterns([SECRET]);
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

function encoded({ opcode, final, payload, lengthBytes = 0 }: Frame): string {
  const { length } = payload;
  const bytes = length > 65_535 || lengthBytes === 8 ? 8 : length > 125 || lengthBytes === 2 ? 2 : 0;
  const extended = Array.from({ length: bytes }, (_, index) => Math.floor(length / 256 ** (bytes - 1 - index)) % 256);
  const short = bytes === 8 ? 127 : bytes === 2 ? 126 : length;
  return String.fromCharCode((final ? 0x80 : 0) | opcode, short, ...extended) + payload;
}

function scrubbed(stream: string, cuts: readonly number[] = []): string {
  const scrubber = new WebSocketScrubber(PATTERNS);
  const output: Uint8Array[] = [];
  const ends = cuts.map((cut) => cut % (stream.length + 1)).toSorted((a, b) => a - b);
  let from = 0;
  for (const end of [...ends, stream.length]) {
    const chunk = latin1Bytes(stream.slice(from, end));
    output.push(...scrubber.push(chunk).map((piece) => piece.slice()));
    // What waits must not rest on a buffer that the caller uses again.
    chunk.fill(0xff);
    from = end;
  }
  return latin1Text(joined([...output, ...scrubber.flush()]));
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
    return pings[index] === true ? [fragment, { opcode: PING, final: true, payload: 'beat' }] : [fragment];
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

/** The frames with the messages' payloads masked as one text each. */
function masked(frames: readonly Frame[]): Frame[] {
  const data = frames.filter((frame) => frame.opcode !== PING);
  let rest = data
    .map((frame) => frame.payload)
    .join('')
    .replaceAll(SECRET, '*'.repeat(SECRET.length));
  return frames.map((frame) => {
    if (frame.opcode === PING) return frame;
    const payload = rest.slice(0, frame.payload.length);
    rest = rest.slice(frame.payload.length);
    return { ...frame, payload };
  });
}

describe('WebSocketScrubber', () => {
  it('masks messages across fragments, control frames and any split, with all lengths kept', () => {
    fc.assert(
      fc.property(
        fc.array(anyMessage, { maxLength: 4 }),
        fc.array(fc.nat(2000), { maxLength: 8 }),
        (messages, cuts) => {
          const stream = messages.flat().map(encoded).join('');
          const expected = messages.flatMap(masked).map(encoded).join('');
          expect(scrubbed(stream, cuts)).toBe(expected);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('masks in frames with 16-bit and 64-bit lengths', () => {
    for (const filler of [200, 70_000]) {
      const frame: Frame = { opcode: 2, final: true, payload: `${'x'.repeat(filler)}${SECRET}y` };
      const expected = encoded({ ...frame, payload: frame.payload.replace(SECRET, '*'.repeat(SECRET.length)) });
      expect(scrubbed(encoded(frame), [3, filler + 8])).toBe(expected);
    }
  });

  it('gives the end of a message out at once', () => {
    const scrubber = new WebSocketScrubber(PATTERNS);
    const frame = encoded({ opcode: TEXT, final: true, payload: 'ends like S3CR3T' });
    expect(latin1Text(joined(scrubber.push(latin1Bytes(frame))))).toBe(frame);
  });

  it('gives what waits out before a close frame', () => {
    const scrubber = new WebSocketScrubber(PATTERNS);
    const frames =
      encoded({ opcode: TEXT, final: false, payload: 'a S3CR3T' }) +
      encoded({ opcode: CLOSE, final: true, payload: '' });
    expect(latin1Text(joined(scrubber.push(latin1Bytes(frames))))).toBe(frames);
  });

  it('masks the tail that waits when too much comes behind it', () => {
    const scrubber = new WebSocketScrubber(PATTERNS);
    const first = encoded({ opcode: TEXT, final: false, payload: `a ${SECRET.slice(0, -1)}` });
    const ping = encoded({ opcode: PING, final: true, payload: 'p'.repeat(125) });
    const output = joined(
      [first, ...Array.from({ length: 600 }, () => ping)].flatMap((text) => scrubber.push(latin1Bytes(text))),
    );
    expect(latin1Text(output)).not.toContain(SECRET.slice(0, -1));
    expect(latin1Text(output)).toContain(ping);
  });

  it('passes a frame with the mask bit unread', () => {
    const frame = String.fromCharCode(0x81, 0x80 | SECRET.length, 0, 0, 0, 0) + SECRET;
    expect(scrubbed(frame, [1, 4, 9])).toBe(frame);
  });

  it('passes everything when there is nothing to search for', () => {
    const chunk = latin1Bytes(encoded({ opcode: TEXT, final: true, payload: SECRET }));
    expect(new WebSocketScrubber(compileScrubPatterns([])).push(chunk)).toEqual([chunk]);
  });
});
