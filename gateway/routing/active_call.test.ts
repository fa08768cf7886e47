import type { Notification } from '@modelcontextprotocol/server';
import { describe, expect, test, vi } from 'vitest';
import { ActiveCall, type CallOwner } from './active_call.ts';
import { CallRegistry, HeldCalls, UNRECORDED } from './call_registry.ts';

const ALL: CallOwner = {
  clientKey: 'a',
  capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} },
  wantsLog: () => true,
};
const SAMPLE = { method: 'sampling/createMessage', params: { messages: [] } } as const;
const never = new AbortController().signal;
const ignoreEnd = (): void => undefined;

function startCall(owner: CallOwner = ALL, silentMs = 60_000) {
  const result = Promise.withResolvers<Record<string, unknown>>();
  let signal: AbortSignal = never;
  const call = new ActiveCall(owner, silentMs, (given) => {
    signal = given;
    given.addEventListener('abort', () => result.reject(new Error('given up')));
    return result.promise;
  });
  return { call, result, signal: () => signal };
}

function round(progressToken?: string) {
  const told: Notification[] = [];
  const gone = new AbortController();
  const notify = (notification: Notification) => Promise.resolve(void told.push(notification));
  return { told, gone, round: { notify, progressToken, signal: gone.signal } };
}

describe('a call', () => {
  test('returns its result', async () => {
    const { call, result } = startCall();
    result.resolve({ content: [] });
    expect(await call.runRound(round().round)).toEqual({ kind: 'done', result: { content: [] } });
  });

  test("passes the server's request to the client, returns the answer, and continues", async () => {
    const { call, result } = startCall();
    const first = call.runRound(round().round);
    const asked = call.ask(SAMPLE, never);
    expect(await first).toEqual({ kind: 'input', requests: { 'input-1': SAMPLE } });
    call.answer({ 'input-1': { role: 'assistant' } });
    expect(await asked).toEqual({ role: 'assistant' });
    const second = call.runRound(round().round);
    result.resolve({ content: [] });
    expect(await second).toMatchObject({ kind: 'done' });
  });

  test('tells the server if the client gave no answer', async () => {
    const { call } = startCall();
    const first = call.runRound(round().round);
    const asked = call.ask(SAMPLE, never);
    await first;
    call.answer(undefined);
    await expect(asked).rejects.toThrow('the client gave no answer');
  });

  test('refuses a request that its client does not support, by name', async () => {
    const { call } = startCall({ ...ALL, capabilities: { elicitation: { form: {} } } });
    await expect(call.ask(SAMPLE, never)).rejects.toThrow('does not support sampling');
    await expect(call.ask({ method: 'roots/list', params: {} }, never)).rejects.toThrow('does not support roots');
    const byUrl = { method: 'elicitation/create', params: { mode: 'url' } } as const;
    await expect(call.ask(byUrl, never)).rejects.toThrow('does not support elicitation by URL');
  });

  test('ends when its client disconnects, and refuses later requests', async () => {
    const { call, signal } = startCall();
    const { gone, round: mine } = round();
    const next = call.runRound(mine);
    gone.abort();
    await expect(next).rejects.toMatchObject({ why: 'cancelled' });
    expect(signal().aborted).toBe(true);
    await expect(call.ask(SAMPLE, never)).rejects.toThrow('cannot ask for more input');
  });

  test('times out when silent, but not while its client is asked', async () => {
    vi.useFakeTimers();
    try {
      const { call } = startCall(ALL, 60);
      const first = call.runRound(round().round);
      const asked = call.ask(SAMPLE, never).catch(() => 'over');
      await first;
      await vi.advanceTimersByTimeAsync(600);
      call.answer({ 'input-1': {} });
      await asked;
      const second = call.runRound(round().round).catch((error: unknown) => error);
      await vi.advanceTimersByTimeAsync(59);
      call.reportProgress({ progress: 1 });
      await vi.advanceTimersByTimeAsync(59);
      await vi.advanceTimersByTimeAsync(2);
      expect(await second).toMatchObject({ why: 'timeout' });
    } finally {
      vi.useRealTimers();
    }
  });

  test('reports progress under the token of the open request, with a rate limit', () => {
    const { call } = startCall();
    const { told, round: mine } = round('mine');
    void call.runRound(mine).catch(() => undefined);
    for (let progress = 0; progress < 500; progress += 1) call.reportProgress({ progress });
    expect(told[0]).toEqual({ method: 'notifications/progress', params: { progress: 0, progressToken: 'mine' } });
    expect(told.length).toBeLessThanOrEqual(100);
  });
});

describe('who is asked', () => {
  test('is the one client with a running call; with none or several, nobody is', async () => {
    const registry = new CallRegistry();
    const [one, two] = [startCall().call, startCall({ ...ALL, clientKey: 'b' }).call];
    await expect(registry.ask('s', SAMPLE, never)).rejects.toThrow('no call of a client is running');
    registry.add('s', one);
    expect(registry.findSoleCall('s')).toBe(one);
    registry.add('s', two);
    expect(registry.findSoleCall('s')).toBeNull();
    await expect(registry.ask('s', SAMPLE, never)).rejects.toThrow('several clients have calls running');
    await expect(registry.ask('other', SAMPLE, never)).rejects.toThrow('no call of a client is running');
    registry.remove('s', one);
    registry.remove('s', one);
    expect([registry.findSoleCall('s'), registry.count, registry.countOf('s')]).toEqual([two, 1, 1]);
  });
});

describe('a call that waits for its client', () => {
  test('continues once, and only with the same request', () => {
    const held = new HeldCalls(60_000);
    const call = {
      subject: 'mine',
      clientKey: 'a',
      running: null,
      state: 's',
      begun: UNRECORDED,
      onDropped: ignoreEnd,
    };
    const state = held.hold(call)!;
    expect(held.take(state, 'another request')).toBeNull();
    expect(held.take(`${state}x`, 'mine')).toBeNull();
    expect(held.take(state, 'mine')).toBe(call);
    expect(held.take(state, 'mine')).toBeNull();
  });

  test('is ended if the client does not return or disconnects', async () => {
    vi.useFakeTimers();
    try {
      const held = new HeldCalls(1_000);
      const dropped: string[] = [];
      const hold = (clientKey: string) => {
        const { call } = startCall();
        void call.runRound(round().round).catch(() => undefined);
        const waiting = { subject: '', clientKey, running: call, state: undefined, begun: UNRECORDED };
        return held.hold({ ...waiting, onDropped: () => void dropped.push(clientKey) })!;
      };
      const [first, second] = [hold('a'), hold('b')];
      held.dropClient('b');
      expect(dropped).toEqual(['b']);
      await vi.advanceTimersByTimeAsync(1_100);
      expect(dropped).toEqual(['b', 'a']);
      expect([held.take(first, ''), held.take(second, '')]).toEqual([null, null]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('call slots', () => {
  const limits = { maxCalls: 3, maxCallsOfServer: 2 };

  test('are taken synchronously, so that concurrent calls do not share one', () => {
    const registry = new CallRegistry();
    const leave = registry.take({ serverId: 's', sessionId: null }, limits);
    expect(registry.take({ serverId: 's', sessionId: null }, limits)).not.toBeNull();
    expect(registry.take({ serverId: 's', sessionId: null }, limits)).toBeNull();
    expect(registry.take({ serverId: 't', sessionId: null }, limits)).not.toBeNull();
    expect(registry.take({ serverId: 't', sessionId: null }, limits)).toBeNull();
    leave?.();
    leave?.();
    expect(registry.take({ serverId: 't', sessionId: null }, limits)).not.toBeNull();
    expect(registry.isFull({ serverId: 's', sessionId: null }, limits)).toBe(true);
  });
});
