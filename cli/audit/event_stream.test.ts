import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventStreamParser } from './event_stream.ts';

const stream =
  ': hello\n\nevent: audit\nid: 7\ndata: {"a":1}\n\nevent: audit\r\ndata: x\r\ndata: y\r\n\r\ndata: last\n\n';
const events = [
  { event: 'audit', data: '{"a":1}', id: '7' },
  { event: 'audit', data: 'x\ny', id: null },
  { event: 'message', data: 'last', id: null },
];

test('finds the events and drops comments', () => {
  expect(new EventStreamParser().push(stream)).toEqual(events);
});

test('finds the same events wherever the stream is split', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: stream.length }), { maxLength: 8 }), (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), stream.length];
      const parser = new EventStreamParser();
      const found = at.slice(1).flatMap((end, index) => parser.push(stream.slice(at[index], end)));
      expect(found).toEqual(events);
    }),
  );
});

test('limits the size of an event that never ends', () => {
  const parser = new EventStreamParser();
  expect(() => parser.push('x'.repeat(2 * 1024 * 1024))).toThrow('too large');
});
