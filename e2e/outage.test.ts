import { afterEach, describe, expect, it } from 'vitest';
import { plantSecret } from './support/planted_secret.ts';
import { runOk } from './support/program.ts';
import { connectThroughProxy, type RawConnection } from './support/raw_client.ts';
import { kill } from './support/process.ts';
import type { Event, Session } from './support/svc.ts';
import { waitFor } from './support/wait_for.ts';
import { startWorld, type World } from './support/world.ts';

// Design section 6: bindings keep working from snapshot and cache until these expire, then fail closed. An event is in the spool
// before its reply ends, and whichever program dies, each event is in the audit log exactly once afterwards.

const BOUND = 'bound.example.test';
const PLAIN = 'plain.example.test';
const CACHE_SECONDS = 3;
const SECRET = plantSecret();
let world: World;

async function start(env: Readonly<Record<string, string>> = {}): Promise<Session> {
  world = await startWorld([BOUND, PLAIN], { env: { SVC_CREDENTIAL_CACHE_SECONDS: String(CACHE_SECONDS), ...env } });
  await world.svc.secret('user/key', SECRET);
  await world.svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/key' });
  return world.svc.session();
}

afterEach(async () => {
  kill(world.svc.runFile.control_pid, 'SIGCONT');
  await world.stop();
});

/** Sends requests, on one connection as long as it lasts, and keeps the result of each. */
class Traffic {
  readonly #session: Session;
  readonly #host: string;
  #client: RawConnection | undefined;
  readonly statuses: number[] = [];
  readonly codes = new Set<string>();

  constructor(session: Session, host = BOUND) {
    this.#session = session;
    this.#host = host;
  }

  async request(): Promise<number> {
    this.#client ??= await connectThroughProxy(this.#session, this.#host);
    const seen = await this.#client.exchange(`GET /n/${this.statuses.length} HTTP/1.1\r\nHost: ${this.#host}\r\n\r\n`);
    if (seen.header('connection') === 'close') this.close();
    this.statuses.push(seen.status);
    const code = /"code": ?"([a-z_]+)"/.exec(seen.body.data.toString())?.[1];
    if (code !== undefined) this.codes.add(code);
    return seen.status;
  }

  /** Continues until a request gets `status`. */
  async until(status: number): Promise<void> {
    await waitFor(`a reply ${status}`, async () => (await this.request()) === status);
  }

  count(status: number): number {
    return this.statuses.filter((seen) => seen === status).length;
  }

  close(): void {
    this.#client?.close();
    this.#client = undefined;
  }
}

function countOf(events: readonly Event[], type: string): number {
  return events.filter((event) => event.type === `sandbox.proxy.${type}`).length;
}

/** The session's audit events, once there are as many as there were requests. */
async function listRecorded(session: Session, traffic: Traffic) {
  const events = await waitFor('every event to arrive', async () => {
    const found = await world.svc.eventsOf(session);
    return found.length >= traffic.statuses.length && found;
  });
  await world.svc.ok(['audit', 'verify']);
  return {
    ids: new Set(events.map(({ id }) => id)).size,
    injected: countOf(events, 'binding_injected'),
    rejected: countOf(events, 'rejected'),
    events: events.length,
  };
}

/** The same; expects that each request was recorded once. */
function eachOnce(traffic: Traffic) {
  const events = traffic.statuses.length;
  return { ids: events, injected: traffic.count(200), rejected: traffic.count(503), events };
}

describe('the control plane hangs during traffic', () => {
  it('bindings work for the cache time, then are refused, then work again, and nothing is lost', async () => {
    const session = await start();
    const traffic = new Traffic(session);
    expect(await traffic.request()).toBe(200);
    const pid = world.svc.runFile.control_pid;
    kill(pid, 'SIGSTOP');
    const stopped = performance.now();
    await traffic.until(503);
    expect(performance.now() - stopped).toBeGreaterThan((CACHE_SECONDS - 1) * 1000);
    expect(traffic.count(200)).toBeGreaterThan(1);
    expect([...traffic.codes]).toEqual(['control_plane_unavailable']);
    const plain = new Traffic(session, PLAIN);
    expect(await plain.request()).toBe(200);
    plain.close();
    kill(pid, 'SIGCONT');
    await traffic.until(200);
    traffic.close();
    await session.end();
    const events = await world.svc.eventsOf(session);
    expect(countOf(events, 'passthrough')).toBe(1);
    expect(countOf(events, 'binding_injected')).toBe(traffic.count(200));
    expect(countOf(events, 'rejected')).toBe(traffic.count(503));
    expect(events).toHaveLength(traffic.statuses.length + 1);
    expect(world.upstream.requests).toHaveLength(traffic.count(200) + 1);
    await world.svc.ok(['audit', 'verify']);
  });
});

describe('the control plane is killed during traffic', () => {
  it('bindings keep working, and each event is stored once after the restart', async () => {
    const session = await start({ SVC_CREDENTIAL_CACHE_SECONDS: '300' });
    const traffic = new Traffic(session);
    expect(await traffic.request()).toBe(200);
    kill(world.svc.runFile.control_pid, 'SIGKILL');
    for (let count = 0; count < 20; count += 1) expect(await traffic.request()).toBe(200);
    traffic.close();
    await world.svc.comesBack();
    expect(await traffic.request()).toBe(200);
    traffic.close();
    expect(await listRecorded(session, traffic)).toEqual(eachOnce(traffic));
  });
});

describe('the sidecar is killed during traffic', () => {
  it('no event of an answered request is lost', async () => {
    const session = await start();
    const traffic = new Traffic(session);
    expect(await traffic.request()).toBe(200);
    // While the control plane hangs, nothing can have been delivered before the sidecar dies.
    kill(world.svc.runFile.control_pid, 'SIGSTOP');
    for (let count = 0; count < 20; count += 1) await traffic.request();
    kill(world.svc.runFile.sidecar_pid, 'SIGKILL');
    traffic.close();
    kill(world.svc.runFile.control_pid, 'SIGCONT');
    await world.svc.comesBack();
    expect(await listRecorded(session, traffic)).toEqual(eachOnce(traffic));
  });
});

/** Limits the size of every file that a process writes, like a full disk; `unlimited` removes the limit. */
function limitFileSize(pid: number, bytes: number | 'unlimited'): Promise<unknown> {
  return runOk('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}

describe.each([
  { what: 'the audit spool is full', env: { SVC_MAX_SPOOL_BYTES: '1MiB' }, room: 'unlimited' as const },
  { what: 'the disk of the audit spool is full', env: {}, room: 24 * 1024 },
])('$what', ({ env, room }) => {
  it('refuses credentialed requests, drops nothing, and works again afterwards', async () => {
    const session = await start({ ...env, SVC_CREDENTIAL_CACHE_SECONDS: '300' });
    const { control_pid, sidecar_pid } = world.svc.runFile;
    const traffic = new Traffic(session);
    expect(await traffic.request()).toBe(200);
    kill(control_pid, 'SIGSTOP');
    await limitFileSize(sidecar_pid, room);
    while (traffic.statuses.length < 10_000 && (await traffic.request()) === 200);
    expect(traffic.statuses.at(-1)).toBe(503);
    expect([...traffic.codes]).toEqual(['audit_unavailable']);
    const plain = new Traffic(session, PLAIN);
    expect(await plain.request()).toBe(200);
    plain.close();
    await limitFileSize(sidecar_pid, 'unlimited');
    kill(control_pid, 'SIGCONT');
    await traffic.until(200);
    traffic.close();
    await session.end();
    const events = await world.svc.eventsOf(session);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(countOf(events, 'binding_injected')).toBe(traffic.count(200));
    expect(countOf(events, 'passthrough')).toBe(1);
    expect(events).toHaveLength(traffic.count(200) + 1);
    expect(world.upstream.requests).toHaveLength(traffic.count(200) + 1);
  });
});
