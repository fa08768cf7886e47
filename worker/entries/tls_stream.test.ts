import { expect, test } from 'vitest';
import { RecordWatch } from './tls_stream.ts';

const record = (type: number, length: number) =>
  Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), Buffer.alloc(length, 1)]);
const endsWithAlert = (bytes: Buffer, step = bytes.length): boolean => {
  const watch = new RecordWatch();
  for (let at = 0; at < bytes.length; at += step) watch.see(bytes.subarray(at, at + step));
  return watch.endsWithAlert;
};
const HANDSHAKE = Buffer.concat([record(22, 700), record(20, 1), record(23, 300)]);

test('a connection ends in order with an alert, in TLS 1.3 an encrypted one', () => {
  for (const step of [1, 2, 7, 10_000]) {
    expect(endsWithAlert(Buffer.concat([HANDSHAKE, record(23, 19)]), step)).toBe(true);
    expect(endsWithAlert(Buffer.concat([HANDSHAKE, record(21, 26)]), step)).toBe(true);
  }
});

test('a connection that ends after anything else, or within a record, broke off', () => {
  expect(endsWithAlert(Buffer.alloc(0))).toBe(false);
  for (const step of [1, 7, 10_000]) {
    expect(endsWithAlert(HANDSHAKE, step)).toBe(false);
    expect(endsWithAlert(Buffer.concat([HANDSHAKE, record(23, 19).subarray(0, 20)]), step)).toBe(false);
    expect(endsWithAlert(Buffer.concat([HANDSHAKE, record(23, 19), Buffer.from([21, 3])]), step)).toBe(false);
  }
});
