import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eventsIn } from './event_stream.ts';

const stream = new TextEncoder().encode(
  ': hello\n\nevent: audit\nid: 7\ndata: {"a":1}\n\nevent: audit\r\ndata: x\r\ndata: ü\r\n\r\ndata: last\n\n',
);
const events = [
  { event: 'audit', data: '{"a":1}', id: '7' },
  { event: 'audit', data: 'x\nü', id: undefined },
  { event: undefined, data: 'last', id: undefined },
];

async function read(pieces: Uint8Array[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const several of eventsIn(pieces)) found.push(...several);
  return found;
}

test('finds the events and drops comments', async () => {
  expect(await read([stream])).toEqual(events);
});

test('finds the same events wherever the stream is split', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: stream.length }), { maxLength: 8 }), async (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
      expect(await read(at.slice(1).map((end, index) => stream.slice(at[index], end)))).toEqual(events);
    }),
  );
});

test('limits the size of an event that never ends', async () => {
  await expect(read([new Uint8Array(2 * 1024 * 1024).fill(120)])).rejects.toThrow('too large');
});
