import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { Connection } from '../../machine/connection/connection.ts';
import { ScriptedStream, turns } from '../testing/scripted_stream.ts';
import { closeAfterAnswer } from './close_after_answer.ts';
import { MOST_UNSENT_BYTES, MOST_UNSENT_MS, UNSENT_MS } from './discard_unsent.ts';

let client: ScriptedStream;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  client = new ScriptedStream();
});

afterEach(() => void vi.useRealTimers());

async function answered(): Promise<Promise<void>> {
  const over = closeAfterAnswer(new Connection(client));
  await turns(5);
  return over;
}

/** Lets the time pass, and everything happen that waited for it. */
async function after(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms);
  await turns(5);
}

test('closes as soon as the client has finished sending', async () => {
  client.send('the rest');
  client.send(null);
  await answered();
  expect([client.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
});

test('lets a client finish that pauses again and again while it sends', async () => {
  const over = answered();
  await turns(5);
  for (let piece = 0; piece < 5; piece += 1) {
    client.send('a piece');
    await after(UNSENT_MS - 1);
    expect(client.destroyed).toBe(false);
  }
  client.send(null);
  await over;
  expect(client.destroyed).toBe(true);
});

test('drops a client that neither sends nor closes', async () => {
  const over = answered();
  await turns(5);
  await after(UNSENT_MS);
  await over;
  expect([client.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
});

test('drops a client that sends single bytes for ever', async () => {
  const over = answered();
  await turns(5);
  for (let ms = 0; ms < MOST_UNSENT_MS; ms += 1000) {
    expect(client.destroyed).toBe(false);
    client.send('x');
    await after(1000);
  }
  await over;
  expect([client.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
});

test('drops a client that sends without end, also one that reads nothing', async () => {
  for (const reading of [true, false]) {
    client = new ScriptedStream({ reading });
    const over = closeAfterAnswer(new Connection(client));
    client.sendForEver(Buffer.alloc(1024 * 1024));
    await over;
    expect(client.destroyed).toBe(true);
    expect(client.sentBytes).toBeLessThan(MOST_UNSENT_BYTES + 4 * 1024 * 1024);
  }
});
