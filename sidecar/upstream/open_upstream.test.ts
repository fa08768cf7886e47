import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';

import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Connection } from '../../machine/connection/connection.ts';
import type { WantedUpstream } from '../ports.ts';
import type { Dialer } from './dialer.ts';
import type { Dialling } from './dialling.ts';
import { openUpstream } from './open_upstream.ts';
import { WarmUpstreams } from './warm_upstreams.ts';

const UNREACHABLE = refusal('upstream_unreachable', 'it is not there');

/** A dialler whose every dial is answered by the test. */
class FakeDialer implements Dialer {
  readonly offered: (readonly string[])[] = [];
  readonly pending: PromiseWithResolvers<Result<Connection, Refusal>>[] = [];
  cancelled = 0;

  dial(): Dialling {
    return this.dialOffering(['http/1.1']);
  }

  dialOffering(protocols: readonly string[]): Dialling {
    const answer = Promise.withResolvers<Result<Connection, Refusal>>();
    this.offered.push(protocols);
    this.pending.push(answer);
    return { connected: answer.promise, cancel: () => void (this.cancelled += 1) };
  }
}

function neverGone(): () => void {
  return nothing;
}

function nothing(): void {}

function wanted(offered: readonly string[], change: Partial<WantedUpstream> = {}): WantedUpstream {
  return {
    session: {},
    host: 'api.example.test',
    isPublicOnly: () => false,
    offered,
    mayDial: true,
    onGone: neverGone,
    ...change,
  };
}

const NOTHING_KEPT = new WarmUpstreams(0);
const BOTH = ['h2', 'http/1.1'];

afterEach(() => void vi.useRealTimers());

test.each([
  ['a client without HTTP/2', wanted(['http/1.1']), 'http/1.1'],
  ['a client that says nothing', wanted([]), 'http/1.1'],
  ['a tunnel in which nothing would be sent', wanted(BOTH, { mayDial: false }), 'http/1.1'],
  ['the same for a client of HTTP/2 alone', wanted(['h2'], { mayDial: false }), 'h2'],
])('%s: nothing is dialled before a request', async (_what, asked, protocol) => {
  const dialer = new FakeDialer();
  expect((await openUpstream(dialer, NOTHING_KEPT, asked)).protocol).toBe(protocol);
  expect(dialer.offered).toEqual([]);
});

test('an upstream that does not choose in time is dialled again, by the first request', async () => {
  vi.useFakeTimers();
  const dialer = new FakeDialer();
  const opening = openUpstream(dialer, NOTHING_KEPT, wanted(BOTH));
  await vi.advanceTimersByTimeAsync(5000);
  const { protocol, lanes } = await opening;
  expect([protocol, dialer.cancelled, dialer.offered]).toEqual(['http/1.1', 1, [BOTH]]);
  void lanes.take('', null, true);
  expect(dialer.offered).toEqual([BOTH, ['http/1.1']]);
});

test('a client of HTTP/2 alone waits as long as the dial does', async () => {
  vi.useFakeTimers();
  const dialer = new FakeDialer();
  const opening = openUpstream(dialer, NOTHING_KEPT, wanted(['h2']));
  await vi.advanceTimersByTimeAsync(20_000);
  dialer.pending[0]?.resolve(err(UNREACHABLE));
  expect((await opening).protocol).toBe('h2');
  expect(dialer.cancelled).toBe(0);
});

test.each([[BOTH], [['h2']]])('a failed dial for %j is the answer to the first request alone', async (offered) => {
  const dialer = new FakeDialer();
  const opening = openUpstream(dialer, NOTHING_KEPT, wanted(offered));
  dialer.pending[0]?.resolve(err(UNREACHABLE));
  const { lanes } = await opening;
  expect(await lanes.take('a', null, true)).toEqual(err(UNREACHABLE));
  void lanes.take('a', null, true);
  expect(dialer.offered).toHaveLength(2);
});

test('a connection that was dialled early is used by the first lane that asks, unless it has ended', async () => {
  for (const hasEnded of [false, true]) {
    const dialer = new FakeDialer();
    const opening = openUpstream(dialer, NOTHING_KEPT, wanted(BOTH));
    const connection = new Connection(new PassThrough());
    dialer.pending[0]?.resolve(ok(connection));
    const { lanes } = await opening;
    if (hasEnded) connection.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    const taken = lanes.take('a', null, true);
    expect(hasEnded || taken).toEqual(hasEnded || ok({ connection, reused: true }));
    void lanes.take('b', null, true);
    expect(dialer.offered).toHaveLength(hasEnded ? 3 : 2);
    lanes.close();
  }
});

test('a client that leaves stops the dial', async () => {
  const dialer = new FakeDialer();
  let leave = nothing;
  const onGone = (listener: () => void): (() => void) => {
    leave = listener;
    return () => undefined;
  };
  const opening = openUpstream(dialer, NOTHING_KEPT, wanted(BOTH, { onGone }));
  leave();
  expect(dialer.cancelled).toBe(1);
  dialer.pending[0]?.resolve(err(UNREACHABLE));
  await opening;
});
