import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineSplitter } from './line_splitter.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

test('returns the same lines wherever the stream is split', () => {
  const anyLine = fc.string({ unit: fc.constantFrom('a', 'ä', '🙂', '\r', ' '), maxLength: 12 });
  fc.assert(
    fc.property(fc.array(anyLine), fc.array(fc.nat(80)), (lines, cuts) => {
      const stream = bytes(lines.map((line) => `${line}\n`).join(''));
      const splitter = new LineSplitter(1_000);
      const ends = [...cuts.map((cut) => Math.min(cut, stream.length)).toSorted((a, b) => a - b), stream.length];
      const found = ends.flatMap((end, index) =>
        splitter.push(stream.subarray(index === 0 ? 0 : ends[index - 1], end))!,
      );
      expect(found).toEqual(lines.map((line) => line.replace(/\r$/, '')));
    }),
  );
});

test('refuses a line over the limit, even if it does not end', () => {
  const splitter = new LineSplitter(4);
  expect(splitter.push(bytes('1234\n'))).toEqual(['1234']);
  expect(splitter.push(bytes('12345\n'))).toBeNull();
  const other = new LineSplitter(4);
  expect(other.push(bytes('123'))).toEqual([]);
  expect(other.push(bytes('45'))).toBeNull();
});
