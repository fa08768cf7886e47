import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createClient } from '@libsql/client/web';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { auditEventsPage, auditVerification } from '../../shared/wire/audit_events.ts';
import { newId } from '../../shared/wire/ids.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { fetchAs } from '../support/fetch_as.ts';
import { countOf } from '../support/full_counts.ts';
import { CallWatch } from './call_watch.ts';
import { type LibsqlCluster, startLibsqlCluster } from './libsql_cluster.ts';
import { databaseSettings, type NodeUnderTest, startNodeAt } from './programs.ts';
import { TestSidecar } from './sidecar_client.ts';

const SIGN_INS = countOf(1_000, 40);
const SIDECARS = countOf(200, 10);
const SECRETS = 20;

const linkReply = z.object({ url: z.string() });

let home = '';
let cluster: LibsqlCluster;
let workers: NodeUnderTest[] = [];

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-killed-'));
  cluster = await startLibsqlCluster();
  const settings = databaseSettings(cluster);
  workers = [await startNodeAt(home, settings), await startNodeAt(home, settings)];
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await cluster.stop();
  await rm(home, { recursive: true, force: true });
});

/** The time limit of each call, which is tried a few times: the load always ends, even on a slow machine. */
const REPLY_MS = 120_000;
/** The pause before a retry. */
const AGAIN_MS = 100;
/** The number of tries; restarting a program takes time on a busy machine. */
const TRIES = 3_000;
/** Reports what a hanging load waits for. The duration is not judged, because it depends on the machine. */
const HANGS_MS = 3_600_000;
const calls = new CallWatch();

/** A reply, or null if its worker was killed: then the call may have been done or not. */
async function sendTo(
  worker: number,
  path: string,
  init?: RequestInit,
  consoleName: string | null = null,
): Promise<Response | null> {
  const index = worker % workers.length;
  // A path may contain a code.
  const what = `worker ${index}: ${init?.method ?? 'GET'} ${path.replace(/[^/]{40,}$/, '...')}`;
  const send = async () => {
    try {
      const signal = AbortSignal.any([AbortSignal.timeout(REPLY_MS), ...(init?.signal ? [init.signal] : [])]);
      const url = new URL(path, workers[index]?.url);
      const reply =
        consoleName === null
          ? await fetch(url, { ...init, signal })
          : await fetchAs(`${consoleName}:${url.port}`, url.href, { signal });
      await reply.clone().arrayBuffer();
      return reply;
    } catch {
      return null;
    }
  };
  return calls.watch(what, send, (reply) => reply?.status ?? 'none');
}

function asUser(worker: number, method: string, path: string, body?: unknown): Promise<Response | null> {
  const headers = { authorization: `Bearer ${workers[0]?.localKey}`, 'content-type': 'application/json' };
  return sendTo(worker, path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

/** Repeats a call until a worker answers; "the database does not answer: try again" (503) is repeated too. */
async function callUntilAnswered(call: (worker: number) => Promise<Response | null>): Promise<Response> {
  for (let worker = 0; worker < TRIES; worker += 1) {
    const reply = await call(worker);
    if (reply !== null && reply.status !== 503) return reply;
    await setTimeout(AGAIN_MS);
  }
  throw new Error('no worker answers');
}

/** Does work 0, 1, 2 ... below `count`, a limited number at a time. */
async function inLanes(lanes: number, count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** The observations of the load. */
class Seen {
  /** For each sign-in code: of the browsers that used it at the same time, how many were signed in and how many got no answer. */
  readonly signIns: { signedIn: number; unanswered: number }[] = [];
  /** The acknowledged secrets. */
  readonly stored: string[] = [];
  /** The ids of the acknowledged events. */
  readonly accepted = new Set<string>();
  /** How often one signed call was accepted. */
  readonly sameCalls: number[] = [];
  readonly failures: string[] = [];
  polls = 0;

  /** 503 means "try again"; the call is repeated. */
  note(what: string, reply: Response | null): void {
    if (reply !== null && reply.status >= 500 && reply.status !== 503) this.failures.push(`${what}: ${reply.status}`);
  }
}

/** Uses one code at both workers at the same time. */
async function signIn(seen: Seen): Promise<void> {
  const made = await callUntilAnswered((worker) => asUser(worker, 'POST', '/v1/sign-in-links'));
  seen.note('link', made);
  if (!made.ok) return;
  const { pathname, hostname } = new URL(linkReply.parse(await made.json()).url);
  const replies = await Promise.all([0, 1].map((worker) => sendTo(worker, pathname, {}, hostname)));
  for (const reply of replies) seen.note('sign-in', reply);
  const signedIn = replies.filter((reply) => reply?.status === 303).length;
  const unanswered = replies.filter((reply) => reply === null || reply.status === 503).length;
  seen.signIns.push({ signedIn, unanswered });
}

async function storeSecret(seen: Seen, index: number): Promise<void> {
  const path = `load/${index}`;
  const reply = await callUntilAnswered((worker) =>
    asUser(worker + index, 'POST', '/v1/secrets', { path, value: `v-${index}` }),
  );
  seen.note('secret', reply);
  if (reply.ok) seen.stored.push(path);
  const list = await callUntilAnswered((worker) => asUser(worker + index + 1, 'GET', '/v1/secrets?limit=200'));
  seen.note('list', list);
  if (!reply.ok || !list.ok) return;
  const paths = secretsPage.parse(await list.json()).items.map((item) => item.path);
  if (!paths.includes(path))
    seen.failures.push(`${path} was stored and is not among ${paths.length}: ${await holders(path)}`);
}

/** Which database servers have a secret, and the length of their audit chains. */
async function holders(path: string): Promise<string> {
  const told = [cluster.url, cluster.directReplicaUrl].map(async (url, index) => {
    const client = createClient({ url });
    const query = `SELECT (SELECT count(*) FROM secrets WHERE path = '${path}') AS here, sum(sequence) AS mark FROM audit_heads`;
    const row = (await client.execute(query).catch(() => null))?.rows[0];
    client.close();
    return `the ${index === 0 ? 'primary' : 'replica'}: ${JSON.stringify(row ?? null)}`;
  });
  return (await Promise.all(told)).join(', ');
}

const newEvent = () => ({
  id: newId('evt', randomBytes(16)),
  type: 'sandbox.proxy.passthrough',
  time: new Date().toISOString(),
  sidecar_id: null,
  session_id: 'ses_load',
  actor: 'session',
  data: {},
});

/** Polls both workers in turn until the load ends; after a pause if there was no answer, as a sidecar does. */
async function poll(seen: Seen, sidecar: TestSidecar, first: number, over: AbortSignal): Promise<void> {
  let etag = '';
  for (let worker = first; !over.aborted; worker += 1) {
    const send = await signedCall(sidecar, 'GET', '/v1/sidecar/snapshot?wait=10', { 'if-none-match': etag });
    const reply = await send(worker, over);
    seen.note('poll', reply);
    if (reply === null || reply.status === 503) await setTimeout(AGAIN_MS);
    seen.polls += reply?.ok === true || reply?.status === 304 ? 1 : 0;
    etag = reply?.headers.get('etag') ?? etag;
  }
}

/** Sends an event in one signed call to both workers at the same time, and again, as a sidecar without an answer does. */
async function sendEvent(seen: Seen, sidecar: TestSidecar): Promise<void> {
  const event = newEvent();
  const signEvent = () => signedCall(sidecar, 'POST', '/v1/sidecar/events', {}, { events: [event] });
  const once = await signEvent();
  const replies = await Promise.all([0, 1].map((worker) => once(worker)));
  for (const reply of replies) seen.note('event', reply);
  seen.sameCalls.push(replies.filter((reply) => reply?.status === 200).length);
  const again = await callUntilAnswered(async (worker) => (await signEvent())(worker));
  seen.note('event', again);
  if (again.status === 200) seen.accepted.add(event.id);
}

/** A signed call, to be sent to one worker or to several. */
async function signedCall(
  sidecar: TestSidecar,
  method: 'GET' | 'POST',
  path: string,
  headers: Record<string, string>,
  content?: unknown,
): Promise<(worker: number, signal?: AbortSignal) => Promise<Response | null>> {
  const body = content === undefined ? '' : JSON.stringify(content);
  const token = await sidecar.token(await sidecar.claims(method, path, body));
  const all = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers };
  const init = { method, headers: all, ...(body !== '' && { body }) };
  return (worker, signal) => sendTo(worker, path, { ...init, ...(signal && { signal }) });
}

async function enrolAll(): Promise<TestSidecar[]> {
  const sidecars: TestSidecar[] = [];
  await inLanes(8, SIDECARS, async () => {
    const sidecar = await TestSidecar.make((path, init) => callUntilAnswered((worker) => sendTo(worker, path, init)));
    expect((await sidecar.enrol(workers[0]?.localKey ?? '')).status).toBe(201);
    sidecars.push(sidecar);
  });
  return sidecars;
}

/** The load's events in the log, one for each row. */
async function loggedEvents(): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const at = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const reply = await asUser(1, 'GET', `/v1/audit-events?session=ses_load&limit=100${at}`);
    const page = auditEventsPage.parse(await reply?.json());
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.next_cursor;
  }
  return ids;
}

/**
 * Signs in, stores secrets, sends events and polls, while the replica and a worker are killed. Ends early if `over` is aborted.
 */
async function load(seen: Seen, over: AbortController): Promise<void> {
  const sidecars = await enrolAll();
  const polling = Promise.all(sidecars.map((sidecar, index) => poll(seen, sidecar, index, over.signal)));
  const signingIn = inLanes(8, SIGN_INS, async (index) => {
    if (index === SIGN_INS / 4) await cluster.killReplica();
    if (index === SIGN_INS / 2) workers[0]?.signal('SIGKILL');
    await signIn(seen);
  });
  const storing = inLanes(2, SECRETS, (index) => storeSecret(seen, index));
  const sending = inLanes(2, SIDECARS, async (index) => {
    const sidecar = sidecars[index];
    if (sidecar !== undefined) await sendEvent(seen, sidecar);
  });
  await Promise.all([signingIn, storing, sending]);
  over.abort();
  await polling;
  await inLanes(8, SIDECARS, async (index) => {
    const sidecar = sidecars[index];
    if (sidecar === undefined) return;
    const reply = await callUntilAnswered(async (worker) => {
      return (await signedCall(sidecar, 'GET', '/v1/sidecar/snapshot', {}))(worker);
    });
    if (reply.status !== 200) seen.failures.push(`a sidecar got no snapshot afterwards: ${reply.status}`);
  });
}

test(
  'a worker and the replica are killed under load: nothing is lost, and nothing is used twice',
  async () => {
    const seen = new Seen();
    const over = new AbortController();
    const programs = workers.map(({ output }, index) => ({ name: `worker ${index}`, output }));
    try {
      await calls.inTime(load(seen, over), HANGS_MS, [...programs, ...cluster.outputs()]);
    } finally {
      over.abort();
    }

    expect(seen.failures).toEqual([]);
    expect(seen.signIns.filter(({ signedIn }) => signedIn > 1)).toEqual([]);
    expect(seen.signIns.filter(({ signedIn, unanswered }) => signedIn + unanswered === 0)).toEqual([]);
    expect(seen.signIns.filter(({ unanswered }) => unanswered > 0).length).toBeGreaterThan(SIGN_INS / 4);
    expect(seen.sameCalls.filter((times) => times > 1)).toEqual([]);
    expect([seen.stored.length, seen.accepted.size]).toEqual([SECRETS, SIDECARS]);
    expect(seen.polls).toBeGreaterThan(0);

    const listed = secretsPage.parse(await (await asUser(1, 'GET', '/v1/secrets?limit=200'))?.json());
    expect(listed.items.map(({ path }) => path)).toEqual(expect.arrayContaining(seen.stored));
    expect((await loggedEvents()).toSorted()).toEqual([...seen.accepted].toSorted());
    const verified = auditVerification.parse(await (await asUser(1, 'GET', '/v1/audit-events/verify'))?.json());
    expect(verified).toMatchObject({ ok: true });
    const client = createClient({ url: cluster.url });
    const sessions = await client.execute('SELECT count(*) AS n FROM browser_sessions');
    client.close();
    const signedIn = seen.signIns.filter((each) => each.signedIn === 1).length;
    const begun = Number(sessions.rows[0]?.['n']);
    expect([begun >= signedIn, begun <= SIGN_INS]).toEqual([true, true]);
  },
  HANGS_MS + 60_000,
);
