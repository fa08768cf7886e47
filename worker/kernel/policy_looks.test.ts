import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, startInProcess } from '../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import { pollSnapshot } from '../services/sidecars/snapshot.ts';
import type { Database } from '../store/database.ts';
import { LOOK_MS, lookNow, OwnLooks, type PolicyLooks, SharedLooks } from './policy_looks.ts';

let control: InProcess;
let sidecars: TestSidecar[];
/** The statements of the looks. */
let statements: number;
let database: Database;
/** Ends the pause before a look. */
let wake: () => void;
let slept: number[];

const clock = {
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    slept.push(milliseconds);
    return new Promise((resolve) => {
      wake = resolve;
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  },
};
const never = new AbortController().signal;
const CALLER = {
  enterpriseId: '',
  ownOnly: false,
  receivingKey: { kty: 'OKP', crv: 'X25519', x: '' },
  nonce: 'n',
} as const;
const KNOWS = {
  knowsInactive: true,
  knowsTunnels: true,
  knowsOtherPorts: true,
  knowsRegionSets: true,
  knowsByteLimits: true,
  knowsCertificates: true,
  knowsTools: true,
};
const POLL = { waitSeconds: 0.5, signal: never, ...KNOWS };

beforeEach(async () => {
  control = await startInProcess();
  sidecars = [await control.enrolSidecar(), await control.enrolSidecar(), await control.enrolSidecar()];
  statements = 0;
  slept = [];
  const own = control.context.database;
  const read = new Proxy(own.read, {
    get(target, name, receiver) {
      if (name === 'select') statements += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  database = new Proxy(own, {
    get: (target, name, receiver) => (name === 'read' ? read : Reflect.get(target, name, receiver)),
  });
});
afterEach(() => control.stop());

const ids = () => sidecars.map(({ enrolled }) => enrolled.sidecar_id);
const ask = (looks: PolicyLooks, sidecarId: string, signal = never) => looks.next({ sidecarId, database, signal });

describe('looks that are shared', () => {
  test('are one statement for all who wait', async () => {
    const looks = new SharedLooks(clock, never);
    const answers = [...ids(), ...ids(), 'sdc_00000000000000000000000000'].map((id) => ask(looks, id));
    expect([slept, statements]).toEqual([[LOOK_MS], 0]);
    wake();
    const found = await Promise.all(answers);
    expect(found.map((standing) => standing?.revokedAt)).toEqual([null, null, null, null, null, null, undefined]);
    expect(statements).toBe(1);
  });

  test('tell each the version of its own policy, and that it was revoked', async () => {
    const looks = new SharedLooks(clock, never);
    const before = ask(looks, ids()[0] ?? '');
    wake();
    const held = (await before)?.policyVersion ?? -1;
    await control.asUser('POST', '/v1/secrets', { path: 'a/b', value: 'value-of-a-test' });
    await control.asUser('DELETE', `/v1/sidecars/${ids()[1]}`);
    const [first, second] = ids().map((id) => ask(looks, id));
    wake();
    expect((await first)?.policyVersion).toBeGreaterThan(held);
    expect(await second).toMatchObject({ revokedAt: expect.any(String) });
  });

  test('include those who come while one is made only in the next', async () => {
    const looks = new SharedLooks(clock, never);
    const first = ask(looks, ids()[0] ?? '');
    wake();
    await Promise.resolve();
    const second = ask(looks, ids()[1] ?? '');
    expect(await first).not.toBeNull();
    expect(slept).toHaveLength(2);
    wake();
    expect(await second).not.toBeNull();
    expect(statements).toBe(2);
  });

  test('fail for all who wait, and the next one is made again', async () => {
    const looks = new SharedLooks(clock, never);
    const own = database;
    database = new Proxy(own, {
      get() {
        throw new Error('the database is gone');
      },
    });
    const failing = ids().map((id) => ask(looks, id));
    wake();
    const ends = await Promise.allSettled(failing);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    database = own;
    const again = ask(looks, ids()[0] ?? '');
    wake();
    expect(await again).not.toBeNull();
  });

  test('are made at once when the program stops', async () => {
    const stop = new AbortController();
    const answer = ask(new SharedLooks(clock, stop.signal), ids()[0] ?? '');
    stop.abort();
    expect(await answer).not.toBeNull();
  });
});

test('a poll that ends before the next look still sees a change at its end', async () => {
  const { context } = control;
  const sidecarId = ids()[0] ?? '';
  const { policyVersion: held = -1 } = (await lookNow(context.database, sidecarId)) ?? {};
  const sleep = control.clock.sleep.bind(control.clock);
  control.clock.sleep = async (milliseconds) => {
    await control.asUser('DELETE', `/v1/sidecars/${sidecarId}`);
    await sleep(milliseconds);
  };
  const caller = { ...CALLER, sidecarId, userId: context.local?.userId ?? '' };
  const ended = await pollSnapshot(context, caller, { ...POLL, held });
  expect(ended).toMatchObject({ ok: false, error: { code: 'sidecar_revoked' } });
});

test('looks of one’s own are a statement each, and are made at once for a client that has gone', async () => {
  const looks = new OwnLooks(clock);
  const gone = new AbortController();
  const answers = ids().map((id) => ask(looks, id, gone.signal));
  gone.abort();
  expect((await Promise.all(answers)).every((standing) => standing !== null)).toBe(true);
  expect(statements).toBe(3);
});
