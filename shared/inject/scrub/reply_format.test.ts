import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { replyFormatOf } from './reply_format.ts';

/** Where the parts of a body end, found in its chunks: offsets from its start. */
function endsIn(contentType: string, chunks: readonly Uint8Array[]): number[] {
  const find = replyFormatOf(contentType).partEnds();
  const ends: number[] = [];
  let before = 0;
  for (const chunk of chunks) {
    const end = find?.(chunk) ?? -1;
    if (end !== -1) ends.push(before + end);
    before += chunk.length;
  }
  return ends;
}

function fill(size: number): number[] {
  return Array.from({ length: size }, () => 7);
}

function cutIntoBytes(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (_byte, at) => bytes.subarray(at, at + 1));
}

describe.each([
  ['application/grpc+proto', (size: number) => [1, 0, 0, 0, size, ...fill(size)]],
  ['application/vnd.amazon.eventstream', (size: number) => [0, 0, 0, size + 4, ...fill(size)]],
])('messages of %s', (contentType, message) => {
  test('end where their length says, however they are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(100), { minLength: 1 }), (sizes) => {
        const messages = sizes.map(message);
        const ends = messages.map((_one, at) => messages.slice(0, at + 1).flat().length);
        const bytes = Uint8Array.from(messages.flat());
        expect(endsIn(contentType, cutIntoBytes(bytes))).toEqual(ends);
        expect(endsIn(contentType, [bytes])).toEqual(ends.slice(-1));
      }),
    );
  });

  test('of which only a part has arrived have not ended', () => {
    expect(endsIn(contentType, [Uint8Array.from(message(20)).subarray(0, 24 - 4)])).toEqual([]);
  });
});

test.each([
  ['text/event-stream; charset=utf-8', 'data: a\n\ndata: b\r\n\r\ndata: c\n', 20],
  ['application/json', '{"a":1}\n{"b', 8],
])('the parts of %s', (contentType, body, last) => {
  expect(endsIn(contentType, [new TextEncoder().encode(body)])).toEqual([last]);
  expect(endsIn(contentType, cutIntoBytes(new TextEncoder().encode(body))).at(-1)).toBe(last);
});
