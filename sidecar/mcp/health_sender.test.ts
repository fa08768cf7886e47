import { beforeEach, expect, test } from 'vitest';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { McpHealthReport } from '../../shared/wire/mcp/mcp_servers.ts';
import { GATHER_MS, HealthSender } from './health_sender.ts';

type State = McpHealthReport['servers'][number]['state'];

let state: State | null;
let checkedAt: string;
let hosts: readonly string[];
let sent: string[];
let reply: Result<void, unknown>;
let pauses: { readonly ms: number; readonly over: () => void }[];
let now: number;
let sender: HealthSender;

beforeEach(() => {
  state = 'running';
  checkedAt = '2026-01-02T03:04:05.678Z';
  hosts = [];
  sent = [];
  reply = ok(undefined);
  pauses = [];
  now = 0;
  sender = new HealthSender({
    report: () =>
      state && {
        servers: [{ id: 'mcp_1', state, last_error: null, checked_at: checkedAt, refused_hosts: [...hosts] }],
      },
    send: ({ servers }) => {
      sent.push(servers[0]?.state ?? '');
      return Promise.resolve(reply);
    },
    pause: (ms, signal) =>
      new Promise((resolve) => {
        pauses.push({ ms, over: resolve });
        signal.addEventListener('abort', () => resolve());
        if (signal.aborted) resolve();
      }),
    now: () => now,
  });
});

async function passes(): Promise<void> {
  pauses.pop()?.over();
  await new Promise((resolve) => setImmediate(resolve));
}

test('sends changes that happen together once', async () => {
  for (const next of ['starting', 'running', 'failed'] as const) {
    state = next;
    sender.notify();
  }
  expect(pauses.map(({ ms }) => ms)).toEqual([GATHER_MS]);
  await passes();
  expect(sent).toEqual(['failed']);
});

test('sends nothing if nothing changed', async () => {
  sender.notify();
  await passes();
  checkedAt = '2026-01-02T04:04:05.678Z';
  sender.notify();
  await passes();
  expect(sent).toEqual(['running']);
});

test('repeats that something runs, because a report is valid for five minutes', async () => {
  for (now = 0; now <= 600_000; now += 60_000) {
    sender.notify();
    await passes();
  }
  expect(sent).toEqual(Array.from({ length: 6 }, () => 'running'));
  state = 'failed';
  for (; now <= 1_200_000; now += 60_000) {
    sender.notify();
    await passes();
  }
  expect(sent.slice(6)).toEqual(['failed']);
});

test('retries a failed report later, with the state at that time', async () => {
  reply = err('down');
  sender.notify();
  await passes();
  reply = ok(undefined);
  state = 'failed';
  await passes();
  await passes();
  expect(sent).toEqual(['running', 'failed']);
});

test('sends nothing while nothing is known', async () => {
  state = null;
  sender.notify();
  await passes();
  await sender.stop(1_000);
  expect(sent).toEqual([]);
});

test('sends the final state, and nothing after it', async () => {
  sender.notify();
  await passes();
  state = 'stopped';
  sender.notify();
  await sender.stop(1_000);
  state = 'failed';
  sender.notify();
  await passes();
  expect(sent).toEqual(['running', 'stopped']);
});

async function notified(...refused: readonly string[]): Promise<number> {
  hosts = refused;
  sender.notify();
  await passes();
  return sent.length;
}

test('sends refused hosts alone at most every 15 s, and with every other change', async () => {
  expect(await notified('a.test')).toBe(1);
  now = 14_999;
  expect(await notified('a.test', 'b.test')).toBe(1);
  now = 15_000;
  expect(await notified('a.test', 'b.test')).toBe(2);
  now = 40_000;
  expect(await notified('b.test', 'a.test')).toBe(2);
  state = 'failed';
  expect(await notified('b.test', 'c.test')).toBe(3);
  now = 60_000;
  expect(await notified('b.test', 'c.test')).toBe(3);
});
