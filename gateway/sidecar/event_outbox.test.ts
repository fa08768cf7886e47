import { beforeEach, describe, expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import type { GatewayEventRecord } from '../../shared/wire/mcp/mcp_gateway.ts';
import { EventOutbox } from './event_outbox.ts';

type Sent = Awaited<ReturnType<ConstructorParameters<typeof EventOutbox>[0]['send']>>;

const DOWN: Sent = err({ code: 'sidecar_unreachable', message: 'not there', details: {} });
const TAKEN: Sent = ok({ accepting: true });

let batches: number[][];
let replies: Sent[];
let pauses: { readonly ms: number; readonly over: () => void }[];
let warnings: string[];
let nowMs: number;
let outbox: EventOutbox;

beforeEach(() => {
  batches = [];
  replies = [];
  pauses = [];
  warnings = [];
  nowMs = 0;
  outbox = new EventOutbox({
    send: (events) => {
      batches.push(events.map(({ number }) => number));
      return Promise.resolve((replies.length > 1 ? replies.shift() : replies[0]) ?? TAKEN);
    },
    now: () => nowMs,
    pause: (ms, signal) =>
      new Promise((resolve) => {
        pauses.push({ ms, over: resolve });
        signal.addEventListener('abort', () => resolve());
      }),
    warn: (message) => void warnings.push(message),
  });
});

const EVENT: Omit<GatewayEventRecord, 'number'> = {
  type: 'mcp.tool.called',
  server_id: 'mcp_1',
  server: 'demo',
  registry_id: null,
  version: null,
  session_id: null,
};

function add(count = 1): void {
  for (let n = 0; n < count; n += 1) outbox.add(EVENT);
}

async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('the events of a gateway', () => {
  test('of one turn go in one call, each with its number', async () => {
    add(3);
    await settle();
    add();
    await settle();
    expect(batches).toEqual([[1, 2, 3], [4]]);
    expect(outbox.accepting).toBe(true);
  });

  test('are sent in calls of at most a hundred', async () => {
    add(150);
    await settle();
    expect(batches.map(({ length }) => length)).toEqual([100, 50]);
  });

  test('are retried in order until the sidecar has them', async () => {
    replies = [DOWN, DOWN, TAKEN];
    add(2);
    await settle();
    add();
    for (const ms of [250, 500]) {
      expect(pauses.at(-1)?.ms).toBe(ms);
      pauses.at(-1)?.over();
      await settle();
    }
    expect(batches).toEqual([
      [1, 2],
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  test('that are always refused do not block later ones', async () => {
    replies = [err({ code: 'invalid_input', message: 'events.0.tool', details: {} }), TAKEN];
    add();
    await settle();
    add();
    await settle();
    expect(batches).toEqual([[1], [2]]);
    expect(warnings).toHaveLength(1);
  });
});

describe('stops accepting', () => {
  test("while the sidecar's log is full", async () => {
    replies = [ok({ accepting: false }), TAKEN];
    add();
    await settle();
    expect(outbox.accepting).toBe(false);
    add();
    await settle();
    expect(outbox.accepting).toBe(true);
  });

  test('if too many events wait', () => {
    replies = [DOWN];
    add(199);
    expect(outbox.accepting).toBe(true);
    add();
    expect(outbox.accepting).toBe(false);
  });

  test('if the sidecar has not answered for too long', async () => {
    replies = [DOWN];
    add();
    await settle();
    expect(outbox.accepting).toBe(true);
    nowMs = 15_001;
    expect(outbox.accepting).toBe(false);
  });
});

describe('at the end', () => {
  test('delivers everything', async () => {
    add(2);
    await outbox.close(1_000);
    expect(batches).toEqual([[1, 2]]);
    expect(warnings).toEqual([]);
  });

  test('counts undelivered events', async () => {
    replies = [DOWN];
    add(2);
    await outbox.close(0);
    expect(warnings).toEqual(['2 events could not be recorded: the sidecar does not answer']);
  });
});
