import { expect, test } from 'vitest';
import { EventScanner } from './event_scanner.ts';

function scanAll(chunks: readonly string[]): readonly (readonly [number, number])[] {
  const scanner = new EventScanner();
  return chunks.map((chunk) => {
    const { count, lastEnd } = scanner.scan(Buffer.from(chunk));
    return [count, lastEnd];
  });
}

test.each(['\n\n', '\r\r', '\r\n\r\n', '\n\r\n', '\n\r', '\r\n\n', '\r\n\r', '\r\r\n'])('%j ends an event', (end) => {
  expect(scanAll([`data: {}${end}`.repeat(3)])).toEqual([[3, 3 * (8 + end.length)]]);
});

test.each(['\n', '\r', '\r\n'])('%j ends a line only', (end) => {
  expect(scanAll([`data: 1${end}data: 2${end}`])).toEqual([[0, -1]]);
});

test('an event that ends in the next chunk is counted there, and the two halves of a CRLF are one end of a line', () => {
  expect(scanAll(['data: {}\n', '\ndata'])).toEqual([
    [0, -1],
    [1, 1],
  ]);
  expect(scanAll(['data: {}\r', '\n\r', '\ndata: {}\r', '\ndata'])).toEqual([
    [0, -1],
    [1, 2],
    [0, -1],
    [0, -1],
  ]);
});
