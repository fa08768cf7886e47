import { beforeEach, describe, expect, test } from 'vitest';
import { GatewayChild, GATEWAY_START_MS, GATEWAY_STOP_MS, type GatewayHandle } from './gateway_child.ts';

/** A gateway controlled by the test. */
class FakeGateway implements GatewayHandle {
  readonly socketPath: string;
  readonly killed: string[] = [];
  readonly ready: Promise<void>;
  readonly exited: Promise<string>;
  listens: () => void = () => undefined;
  exit: (how: string) => void = () => undefined;
  obeys = true;

  constructor(socketPath: string) {
    this.socketPath = socketPath;
    this.ready = new Promise((resolve) => (this.listens = resolve));
    this.exited = new Promise((resolve) => (this.exit = resolve));
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.killed.push(signal);
    if (this.obeys || signal === 'SIGKILL') this.exit(signal);
  }
}

let started: FakeGateway[];
let removed: string[];
let warnings: string[];
let nowMs: number;
let pauses: { readonly ms: number; readonly over: () => void }[];
let child: GatewayChild;

beforeEach(() => {
  started = [];
  removed = [];
  warnings = [];
  pauses = [];
  nowMs = 1_000;
  child = new GatewayChild({
    launch: (socketPath) => {
      const gateway = new FakeGateway(socketPath);
      started.push(gateway);
      return gateway;
    },
    newSocketPath: () => `/home/mcp/${started.length}.sock`,
    removeSocket: (path) => void removed.push(path),
    now: () => nowMs,
    pause: (ms, signal) =>
      new Promise((resolve) => {
        pauses.push({ ms, over: resolve });
        signal.addEventListener('abort', () => resolve());
      }),
    warn: (message) => void warnings.push(message),
  });
});

function newest(): FakeGateway {
  const gateway = started.at(-1);
  if (gateway === undefined) throw new Error('nothing was started');
  return gateway;
}

async function openSocket(): Promise<string> {
  const socket = child.socket();
  newest().listens();
  const found = await socket;
  return found.ok ? found.value : found.error;
}

/** The newest one dies, and all pending callbacks have run. */
async function dies(): Promise<void> {
  const gateway = newest();
  gateway.exit('exit status 1');
  await gateway.exited;
  await Promise.resolve();
}

describe("the sidecar's gateway process", () => {
  test('is not started before it is needed', () => {
    expect(child.wanted).toBe(false);
    expect(started).toEqual([]);
  });

  test('is started once for any number of callers', async () => {
    const all = [child.socket(), child.socket()];
    newest().listens();
    expect(await Promise.all(all)).toEqual([
      { ok: true, value: '/home/mcp/0.sock' },
      { ok: true, value: '/home/mcp/0.sock' },
    ]);
    expect(await openSocket()).toBe('/home/mcp/0.sock');
    expect(started).toHaveLength(1);
  });

  test('is restarted on another socket when needed after it died, after a pause', async () => {
    await openSocket();
    await dies();
    expect(started).toHaveLength(1);
    expect(removed).toEqual(['/home/mcp/0.sock']);
    const again = child.socket();
    expect(pauses.at(-1)?.ms).toBe(500);
    pauses.at(-1)?.over();
    await Promise.resolve();
    newest().listens();
    expect(await again).toEqual({ ok: true, value: '/home/mcp/1.sock' });
  });

  test('is restarted after growing pauses if it keeps dying; then callers are refused at once', async () => {
    await openSocket();
    for (const pauseMs of [500, 1_000, 2_000]) {
      await dies();
      expect(warnings.at(-1)).toContain(`after ${pauseMs / 1000} s`);
      nowMs += pauseMs;
      await openSocket();
    }
    await dies();
    expect(await child.socket()).toMatchObject({ ok: false });
    expect(started).toHaveLength(4);
  });

  test('is restarted quickly if it ran for long', async () => {
    await openSocket();
    await dies();
    nowMs += 500;
    await openSocket();
    nowMs += 60_000;
    await dies();
    expect(warnings.at(-1)).toContain('after 0.5 s');
  });

  test('is a refusal if it ends before it listens, and is not kept', async () => {
    const socket = child.socket();
    newest().exit('exit status 2');
    expect(await socket).toMatchObject({ ok: false });
    expect(child.wanted).toBe(false);
  });

  test('is killed if it does not listen in time', async () => {
    const socket = child.socket();
    expect(pauses.at(-1)?.ms).toBe(GATEWAY_START_MS);
    pauses.at(-1)?.over();
    expect(await socket).toMatchObject({ ok: false });
    expect(newest().killed).toEqual(['SIGKILL']);
  });

  test('ends with the sidecar, and is not restarted', async () => {
    await openSocket();
    await child.stop();
    expect(newest().killed).toEqual(['SIGTERM']);
    expect(removed).toContain('/home/mcp/0.sock');
    expect(await child.socket()).toMatchObject({ ok: false });
    expect(warnings).toEqual([]);
  });

  test('is killed if it does not end when asked to', async () => {
    await openSocket();
    newest().obeys = false;
    const stopping = child.stop();
    expect(pauses.at(-1)?.ms).toBe(GATEWAY_STOP_MS);
    pauses.at(-1)?.over();
    await stopping;
    expect(newest().killed).toEqual(['SIGTERM', 'SIGKILL']);
  });
});
