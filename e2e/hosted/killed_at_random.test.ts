import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { auditEventsPage, auditVerification } from '../../shared/wire/audit_events.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { newId } from '../../shared/wire/ids.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import { TestSidecar } from '../runtimes/sidecar_client.ts';
import { countOf } from '../support/full_counts.ts';
import { waitFor } from '../support/wait_for.ts';
import { startHostedOnDeno, startHostedOnNode, startHostedOnWorkerd } from '../team/team_runtimes.ts';
import { FORWARDED, type HostedPerson, HostedWorker } from './hosted_worker.ts';
import { type HostedWorld, RECEIVER_HOST, startHostedWorld } from './hosted_world.ts';

// Issue 19: workers on each runtime, on one database with a replica, while workers, the replica and the database itself fail.

const SEED = Number(process.env['SVC_TEST_SEED'] ?? 20_261_130);
const FAILURES = ['Node', 'Deno', 'workerd', 'the replica', 'a replica that is behind', 'the database'] as const;
/** The runtime of each worker. */
const RUNTIMES = [startHostedOnNode, startHostedOnDeno, startHostedOnWorkerd];
const ROUNDS = countOf(40, FAILURES.length);
/** About how many calls a round makes: its failure comes at one of them. */
const CALLS = 12;
const AGAIN_MS = 100;

/** Numbers that the seed fixes, below `limit`. */
function draw(round: number, limit: number): number {
  return createHash('sha256').update(`${SEED} ${round}`).digest().readUInt32BE(0) % limit;
}

let world: HostedWorld;
let workers: readonly HostedWorker[] = [];
let owner: HostedPerson;
let sidecar: TestSidecar;
/** What is done when so many more calls have begun; null if it was done. */
let failure: { after: number; readonly happen: () => Promise<void> } | null = null;
let failing: Promise<void> = Promise.resolve();

beforeAll(async () => {
  world = await startHostedWorld();
  workers = await Promise.all(RUNTIMES.map((start) => HostedWorker.start(world, start)));
  const [first] = workers;
  if (first === undefined) throw new Error('there is no worker');
  owner = await first.openPerson((await first.signIn('owner')).browser, 'owner');
  const { program } = owner;
  sidecar = await TestSidecar.make((path, init) => first.send(path, init));
  await sidecar.enrol(await program.bearer());
  const installed = await program.call('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC);
  const { id } = z.object({ id: z.string() }).parse(await installed.json());
  await program.call('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: 'key-of-the-items' });
  const sink = { kind: 'webhook', name: 'siem', url: `https://${RECEIVER_HOST}/in`, from: 'beginning' };
  await program.call('POST', '/v1/audit-sinks', sink);
});
afterAll(async () => {
  await Promise.all(workers.map(({ program }) => program.stop()));
  await world?.stop();
});

/** A reply, or null if its worker did not answer: then the call may have been done or not. */
async function sendTo(worker: number, path: string, init: RequestInit = {}): Promise<Response | null> {
  if (failure !== null && failure.after-- === 0) {
    failing = failure.happen();
    failure = null;
  }
  const url = workers[worker % workers.length]?.program.url ?? '';
  try {
    const reply = await fetch(url + path, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init.headers)), ...FORWARDED },
    });
    return new Response(reply.status === 204 ? null : await reply.arrayBuffer(), reply);
  } catch {
    return null;
  }
}

async function asOwner(worker: number, method: string, path: string, body?: unknown): Promise<Response | null> {
  const headers = { authorization: `Bearer ${owner.program.tokens.access_token}`, 'content-type': 'application/json' };
  return sendTo(worker, path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

/** What is repeated at the other worker: no answer, and "try again" of one without its database. */
const isUnsure = (reply: Response | null): reply is null => reply === null || reply.status === 503;

async function untilAnswered(call: (worker: number) => Promise<Response | null>): Promise<Response> {
  for (let worker = 0; ; worker += 1) {
    const reply = await call(worker);
    if (!isUnsure(reply)) return reply;
    await pause(AGAIN_MS);
  }
}

/** What the calls have shown. */
class Seen {
  readonly stored: string[] = [];
  readonly accepted: string[] = [];
  /** Of two refreshes with one token at the same time, how many got tokens. */
  readonly refreshed: number[] = [];
  readonly approvals: string[] = [];
  /** The items whose removal an approval covers. */
  readonly removed: string[] = [];
  readonly faults: string[] = [];

  note(what: string, replies: readonly (Response | null)[]): void {
    for (const reply of replies) {
      if (reply !== null && reply.status >= 500 && reply.status !== 503) this.faults.push(`${what}: ${reply.status}`);
    }
  }
}

async function storeSecret(seen: Seen, round: number): Promise<void> {
  const path = `user/s-${round}`;
  const reply = await untilAnswered((worker) => asOwner(worker, 'POST', '/v1/secrets', { path, value: `v-${round}` }));
  seen.note('a secret', [reply]);
  if (!reply.ok) return;
  seen.stored.push(path);
  const list = await untilAnswered((worker) => asOwner(worker + 1, 'GET', `/v1/secrets?limit=200`));
  const paths = secretsPage.parse(await list.json()).items.map((item) => item.path);
  if (!paths.includes(path)) seen.faults.push(`${path} was stored, and the next list does not have it`);
}

/** Sends an event in one signed call to every worker at the same time, and then until it is accepted. */
async function sendEvent(seen: Seen): Promise<void> {
  const id = newId('evt', randomBytes(16));
  const time = new Date().toISOString();
  const event = {
    id,
    type: 'sandbox.proxy.passthrough',
    time,
    sidecar_id: null,
    session_id: 'ses_load',
    actor: 'session',
    data: {},
  };
  const body = JSON.stringify({ events: [event] });
  const path = '/v1/sidecar/events';
  const sign = async (): Promise<RequestInit> => {
    const token = await sidecar.token(await sidecar.claims('POST', path, body));
    return { method: 'POST', body, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } };
  };
  const once = await sign();
  seen.note('an event', await Promise.all(workers.map((_, worker) => sendTo(worker, path, once))));
  const again = await untilAnswered(async (worker) => sendTo(worker, path, await sign()));
  seen.note('an event', [again]);
  if (again.ok) seen.accepted.push(id);
}

const removeItem = (worker: number, id: string) =>
  asOwner(worker, 'POST', '/v1/connector-operations/run', {
    connector_fqn: 'acme/items',
    operation: 'delete-item',
    args: { id },
  });

/** Asks for one removal, decides on it at every worker at the same time, and then does it at each. */
async function approveAndRun(seen: Seen, round: number): Promise<void> {
  const item = `item-${round}`;
  const asked = errorBody.parse(await (await untilAnswered((worker) => removeItem(worker, item))).json());
  const id = String(asked.error.details?.['approval_id']);
  seen.approvals.push(id);
  const decide = (worker: number) => asOwner(worker, 'POST', `/v1/approvals/${id}/decide`, { decision: 'approve' });
  seen.note('a decision', await Promise.all(workers.map((_, worker) => decide(worker))));
  await untilAnswered(decide);
  seen.removed.push(`/items/${item}`);
  seen.note('a run', await Promise.all(workers.map((_, worker) => removeItem(worker, item))));
}

/** Uses one refresh token at every worker at the same time. */
async function refresh(seen: Seen, token: string): Promise<void> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: token }),
  };
  const replies = await Promise.all(workers.map((_, worker) => sendTo(worker, '/auth/refresh', init)));
  seen.note('a refresh', replies);
  seen.refreshed.push(replies.filter((reply) => reply?.ok === true).length);
}

/** What fails in a round, and what makes it whole again. */
const HAPPEN: Readonly<Record<(typeof FAILURES)[number], { fail: () => Promise<void>; mend: () => Promise<void> }>> = {
  Node: { fail: () => killWorker(0), mend: () => restart(0) },
  Deno: { fail: () => killWorker(1), mend: () => restart(1) },
  workerd: { fail: () => killWorker(2), mend: () => restart(2) },
  'the replica': { fail: () => world.cluster.killReplica(), mend: () => world.cluster.startReplica() },
  'a replica that is behind': {
    fail: async () => world.cluster.freezeReplica(),
    mend: async () => world.cluster.thawReplica(),
  },
  'the database': { fail: () => world.cluster.restartPrimary(), mend: async () => undefined },
};

async function killWorker(index: number): Promise<void> {
  await workers[index]?.program.kill();
}

async function restart(index: number): Promise<void> {
  const start = RUNTIMES[index];
  if (start !== undefined) await workers[index]?.restart(start);
}

/** All of a round at once, and its failure somewhere in it. */
async function playRound(seen: Seen, round: number): Promise<void> {
  const [first] = workers;
  if (first === undefined) throw new Error('there is no worker');
  // What is unsure ends the sign-in of a refresh, so each round has another person's. Attempts are counted by address.
  const worker = first.from(`198.51.100.${round + 1}`);
  const copied = await worker.signInProgram((await worker.signIn(`person-${round}`)).browser, 'copied');
  await owner.program.bearer();
  const name = FAILURES[round % FAILURES.length] ?? 'the database';
  const { fail, mend } = HAPPEN[name];
  failure = { after: draw(round, CALLS), happen: fail };
  await Promise.all([
    storeSecret(seen, round),
    sendEvent(seen),
    approveAndRun(seen, round),
    refresh(seen, copied.tokens.refresh_token),
  ]);
  // A round of fewer calls ends before its failure.
  if (failure !== null) failing = failure.happen();
  failure = null;
  await failing;
  await mend();
}

type LoggedEvent = z.infer<typeof auditEventsPage>['items'][number];

/** All events of the enterprise's log, in the order of their arrival. */
async function readLog(): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const at: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const reply = await untilAnswered((worker) => asOwner(worker, 'GET', `/v1/audit-events?limit=100${at}`));
    const page = auditEventsPage.parse(await reply.json());
    events.push(...page.items);
    cursor = page.next_cursor;
  }
  return events;
}

const batch = z.object({
  data: z.object({ events: z.array(z.object({ id: z.string(), sequence: z.number(), writer: z.string() })) }),
});

/** What the receiver got, without what it got again. */
function delivered(): { readonly id: string; readonly sequence: number; readonly writer: string }[] {
  const events = world.received.flatMap((body) => batch.parse(JSON.parse(body)).data.events);
  return [...new Map(events.toReversed().map((event) => [event.id, event])).values()].toReversed();
}

test('nothing is lost and nothing happens twice', async () => {
  const seen = new Seen();
  for (let round = 0; round < ROUNDS; round += 1) await playRound(seen, round);
  expect(seen.faults).toEqual([]);

  const log = await readLog();
  const countOfType = (type: string, id: string) =>
    log.filter((event) => event.type === type && JSON.stringify(event.data).includes(id)).length;
  expect([seen.stored.length, seen.accepted.length]).toEqual([ROUNDS, ROUNDS]);
  const listed = await untilAnswered((worker) => asOwner(worker, 'GET', '/v1/secrets?limit=200'));
  const paths = secretsPage.parse(await listed.json()).items.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(seen.stored));
  for (const id of seen.accepted) expect(log.filter((event) => event.id === id)).toHaveLength(1);
  for (const id of seen.approvals) expect([id, countOfType('connector.approval.decided', id)]).toEqual([id, 1]);
  for (const item of seen.removed) {
    expect([item, world.seen.filter(({ target }) => target === item).length < 2]).toEqual([item, true]);
  }
  expect(world.seen.length).toBeGreaterThan(0);
  expect(Math.max(...seen.refreshed)).toBe(1);
  const verified = await untilAnswered((worker) => asOwner(worker, 'GET', '/v1/audit-events/verify'));
  expect(auditVerification.parse(await verified.json())).toMatchObject({ ok: true, first_break: null });

  // A worker that starts sends what is due.
  await killWorker(0);
  await restart(0);
  const ids = new Set(log.map(({ id }) => id));
  await waitFor('all events at the receiver', () => delivered().filter(({ id }) => ids.has(id)).length === ids.size);
  const chains = Map.groupBy(delivered(), ({ writer }) => writer);
  for (const events of chains.values()) {
    const sequences = events.map(({ sequence }) => sequence);
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
  }
});
