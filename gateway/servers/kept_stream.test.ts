import type { McpSubscription } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Downstream } from '../fronts/downstream.ts';
import { KeptStream, keepListStream } from './kept_stream.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));
type Why = Awaited<McpSubscription['closed']>;

/** A connection whose streams a test ends, and whose pauses end at once. */
function world(auto: boolean = false) {
  const clock = { time: 0, now: () => clock.time };
  const pauses: number[] = [];
  const filters: object[] = [];
  const ends: ((why: Why) => void)[] = [];
  const state = { refusals: 0, returns: 0 };
  const gone = Promise.withResolvers<Awaited<Downstream['closed']>>();
  const open = (): McpSubscription => {
    const closed = Promise.withResolvers<Why>();
    ends.push(closed.resolve);
    const close = () => Promise.resolve(closed.resolve('local'));
    return { honoredFilter: {}, closed: closed.promise, close };
  };
  const client = {
    getProtocolEra: () => 'modern',
    getServerCapabilities: () => ({ tools: { listChanged: true }, prompts: { listChanged: true }, resources: {} }),
    autoOpenedSubscription: auto ? open() : undefined,
    listen: (filter: object) => {
      filters.push(filter);
      if ((state.refusals -= 1) >= 0) return Promise.reject(new Error('not now'));
      return Promise.resolve(open());
    },
  };
  const downstream = z.custom<Downstream>().parse({ client, closed: gone.promise });
  const pause = (ms: number) => Promise.resolve(void pauses.push(ms));
  const times = { clock, pause };
  const filter = { resourceSubscriptions: ['x://1'] };
  const stream = new KeptStream({ ...times, downstream, filter, onReturn: () => (state.returns += 1) });
  return {
    stream,
    times,
    downstream,
    clock,
    pauses,
    filters,
    ends,
    state,
    leave: () => gone.resolve({ reason: 'exited', message: 'it ended' }),
  };
}

test('a stream that ends is opened again, with growing pauses', async () => {
  const { stream, clock, pauses, filters, ends, state } = world();
  await stream.open();
  state.refusals = 2;
  ends[0]?.('remote');
  await settle();
  expect([pauses, filters.length, state.returns]).toEqual([[1_000, 2_000, 4_000], 4, 1]);
  ends[1]?.('graceful');
  await settle();
  expect(pauses.at(-1)).toBe(8_000);
  clock.time = 60_000;
  ends[2]?.('remote');
  await settle();
  expect([pauses.at(-1), state.returns]).toEqual([1_000, 3]);
});

test('a stream is not opened again once it is closed, or the connection has ended', async () => {
  const closed = world();
  await closed.stream.open();
  await closed.stream.close();
  const ended = world();
  await ended.stream.open();
  ended.leave();
  await settle();
  ended.ends[0]?.('remote');
  await settle();
  expect([closed.filters.length, ended.filters.length, closed.pauses, ended.pauses]).toEqual([1, 1, [], []]);
});

test('a refusal of the first request is passed on', async () => {
  const { stream, state } = world();
  state.refusals = 1;
  await expect(stream.open()).rejects.toThrow('not now');
});

test.each([true, false])(
  'changes of lists are listened to again, also if the first stream opened: %s',
  async (auto) => {
    const { times, downstream, filters, ends } = world(auto);
    const changed: string[] = [];
    keepListStream(downstream, times, (kind) => changed.push(kind));
    if (auto) ends[0]?.('remote');
    await settle();
    expect(filters).toEqual([{ toolsListChanged: true, promptsListChanged: true }]);
    expect(changed).toEqual(['tools', 'prompts', 'resources']);
  },
);
