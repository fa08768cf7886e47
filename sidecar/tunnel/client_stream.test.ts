import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { ScriptedHttp2Stream, turns } from '../testing/scripted_stream.ts';
import { ClientStream } from './client_stream.ts';
import {
  MOST_UNSENT_BYTES,
  MOST_UNSENT_MS,
  MOST_UNSENT_STREAMS,
  UnsentAllowance,
  UNSENT_MS,
} from './discard_unsent.ts';

/** Refused streams whose clients are still sending; the last line of `text` is the reset. */

let connection: UnsentAllowance;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  connection = new UnsentAllowance();
});

afterEach(() => void vi.useRealTimers());

const STOPPED = 'reset 0';

/** A stream that was just refused. */
function refused(): { readonly stream: ScriptedHttp2Stream; readonly over: Promise<void> } {
  const stream = new ScriptedHttp2Stream();
  return { stream, over: new ClientStream(stream.asHttp2, connection).discardRest() };
}

async function after(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms);
  await turns(5);
}

test('a client that sends the rest is not stopped', async () => {
  const { stream, over } = refused();
  for (let piece = 0; piece < 5; piece += 1) {
    await turns(5);
    stream.send('a piece');
    await after(UNSENT_MS - 1);
  }
  stream.send(null);
  await over;
  expect([stream.text, vi.getTimerCount()]).toEqual(['', 0]);
});

test('a client that pauses for too long is told to stop', async () => {
  const { stream, over } = refused();
  await turns(5);
  await after(UNSENT_MS - 1);
  expect(stream.text).toBe('');
  await after(1);
  await over;
  expect([stream.text, vi.getTimerCount()]).toEqual([STOPPED, 0]);
});

test('a client that sends for too long is told to stop', async () => {
  const { stream, over } = refused();
  await turns(5);
  for (let ms = 0; ms < MOST_UNSENT_MS; ms += 1000) {
    expect(stream.text).toBe('');
    stream.send('x');
    await after(1000);
  }
  await over;
  expect([stream.text, vi.getTimerCount()]).toEqual([STOPPED, 0]);
});

test('a client that resets its stream is gone', async () => {
  const { stream, over } = refused();
  await turns(5);
  stream.destroy();
  await over;
  expect(vi.getTimerCount()).toBe(0);
});

test('a connection has a limited number of them, and a place is free when one ends', async () => {
  const some = Array.from({ length: MOST_UNSENT_STREAMS }, refused);
  await turns(5);
  await refused().over;
  expect(vi.getTimerCount()).toBe(2 * MOST_UNSENT_STREAMS);
  some[0]?.stream.send(null);
  await some[0]?.over;
  void refused();
  await turns(5);
  expect(vi.getTimerCount()).toBe(2 * MOST_UNSENT_STREAMS);
});

test('the streams of a connection share one limit of bytes, also one after the other', async () => {
  const piece = Buffer.alloc(1024 * 1024);
  const [one, other] = [refused(), refused()];
  one.stream.sendForEver(piece);
  other.stream.sendForEver(piece);
  await Promise.all([one.over, other.over]);
  expect([one.stream.text, other.stream.text]).toEqual([STOPPED, STOPPED]);
  expect(one.stream.sentBytes + other.stream.sentBytes).toBeLessThan(MOST_UNSENT_BYTES + 8 * piece.length);
  // A further one gets no place.
  await refused().over;
  expect(vi.getTimerCount()).toBe(0);
});
