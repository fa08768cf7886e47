import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { FakeMetrics } from '../testing/fakes.ts';
import { FakeControlPlane, LOCAL_KEY, type Reply, sentEvents } from '../testing/fake_control_plane.ts';
import { type Control, type ControlOptions, openControl } from './control.ts';

const DEMO = { owner: 'personal', path: 'user/demo' } as const;
const SECRET = 'tok-4711-secret';
const EVENT = { type: 'sandbox.proxy.passthrough', session_id: null, actor: 'session', data: {} } as const;

let home: string;
let plane: FakeControlPlane;
let opened: Control[];
let warnings: string[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-home-'));
  plane = new FakeControlPlane();
  await plane.start();
  writeFileSync(join(home, 'local.key'), `${LOCAL_KEY}\n`, { mode: 0o600 });
  opened = [];
  warnings = [];
});

afterEach(async () => {
  await Promise.all(opened.map((control) => control.stop(0)));
  await plane.stop();
  rmSync(home, { recursive: true });
});

function options(): ControlOptions {
  return {
    home,
    controlUrl: plane.url,
    name: 'this machine',
    clock: { now: Date.now },
    limits: DEFAULT_LIMITS,
    metrics: new FakeMetrics(),
    warn: (message) => warnings.push(message),
  };
}

async function open(changes: Partial<ControlOptions> = {}): Promise<Control> {
  const control = await openControl({ ...options(), ...changes });
  if (!control.ok) throw new Error(control.error.message);
  opened.push(control.value);
  return control.value;
}

async function errorOf(changes: Partial<ControlOptions> = {}): Promise<string> {
  const control = await openControl({ ...options(), ...changes });
  return control.ok ? 'it opened' : control.error.message;
}

function everythingIn(directory: string): string {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');
}

describe('a sidecar and its control plane', () => {
  it('enrols with the local key, then has a policy, credentials and a log', async () => {
    plane.secrets = [{ ...DEMO, value: SECRET, version: '1' }];
    const control = await open();
    await control.start();
    expect(await control.policy.waitForVersion(1, 60_000)).toMatchObject({ ok: true });
    const credential = await control.credentials.resolve(DEMO);
    expect(credential.ok && credential.value.secret.reveal()).toBe(SECRET);
    control.audit.record(EVENT);
    expect(await control.audit.flush(5_000)).toBe(true);
    expect(plane.events.size).toBe(1);
    expect(everythingIn(home)).not.toContain(SECRET);
  });

  it('keeps its identity over a restart', async () => {
    const first = await open();
    await first.stop(0);
    expect((await open()).identity.sidecarId).toBe(first.identity.sidecarId);
  });

  it('starts from its files while the control plane is down, and loses no event of the outage', async () => {
    const first = await open();
    await first.start();
    await first.policy.waitForVersion(1, 60_000);
    await first.stop(0);
    await plane.stop();
    const second = await open();
    await second.start();
    expect(second.policy.current().ok).toBe(true);
    second.audit.record(EVENT);
    await second.stop(0);
    await plane.start();
    const third = await open();
    await third.start();
    expect(await third.audit.flush(5_000)).toBe(true);
    expect([...plane.events.values()].map(({ times }) => times)).toEqual([1]);
  });

  it('keeps its events if a machine in the middle claims that they arrived', async () => {
    const control = await open();
    await control.start();
    await control.policy.waitForVersion(1, 60_000);
    plane.tamperReply = (call, reply) => {
      if (call.target !== '/v1/sidecar/events') return null;
      const { events } = sentEvents.parse(JSON.parse(call.body));
      plane.events.clear();
      return { ...reply, body: JSON.stringify({ accepted: events.map(({ id }) => id), rejected: [] }) };
    };
    control.audit.record(EVENT);
    expect(await control.audit.flush(200)).toBe(false);
    expect(control.audit.pending.events).toBe(1);
    plane.tamperReply = () => null;
    expect(await control.audit.flush(5_000)).toBe(true);
    expect(plane.events.size).toBe(1);
  });

  it('notices that the control plane lost acknowledged events, and reports it until a person accepts it', async () => {
    const first = await open();
    await first.start();
    await first.policy.waitForVersion(1, 60_000);
    for (const _ of [1, 2, 3]) first.audit.record(EVENT);
    expect(await first.audit.flush(5_000)).toBe(true);
    await first.stop(0);
    plane.events.clear();
    const second = await open();
    await second.start();
    await second.policy.waitForVersion(1, 60_000);
    await second.witness.check();
    const { sidecarId: writer } = second.identity;
    const remembered = { sequence: 3, hash: '3'.padStart(64, '0') };
    expect(second.witness.mismatches).toMatchObject([{ writer, standing: 'behind', remembered }]);
    expect(warnings.join()).toContain('audit log was rolled back');
    expect(await second.audit.flush(5_000)).toBe(true);
    expect(plane.events.values().next().value?.event).toMatchObject({ type: 'sidecar.audit.mismatch_noticed' });
    expect(await second.witness.accept(writer, remembered)).toMatchObject({ ok: true });
    expect(await second.audit.flush(5_000)).toBe(true);
    expect(plane.events.size).toBe(2);
    await second.witness.check();
    expect(second.witness.mismatches).toEqual([]);
  });

  it('rejects an older reply about its events or the log: each reply is for one call', async () => {
    const control = await open();
    await control.start();
    await control.policy.waitForVersion(1, 60_000);
    await control.witness.check();
    const older = new Map<string, Reply>();
    plane.tamperReply = ({ target }, reply) => {
      older.set(target.split('?')[0] ?? '', reply);
      return null;
    };
    for (const _ of [1, 2]) control.audit.record(EVENT);
    expect(await control.audit.flush(5_000)).toBe(true);
    await control.witness.check();
    expect(control.witness.heads).toMatchObject([{ sequence: 2 }]);
    plane.events.clear();
    plane.tamperReply = ({ target }) => older.get(target.split('?')[0] ?? '') ?? null;
    control.audit.record(EVENT);
    expect(await control.audit.flush(200)).toBe(false);
    expect(await control.channel.auditHeads([])).toMatchObject({ ok: false, error: { reason: 'invalid_reply' } });
    await control.witness.check();
    expect(control.witness.mismatches).toEqual([]);
    plane.tamperReply = () => null;
    await control.witness.check();
    expect(control.witness.mismatches).toMatchObject([{ standing: 'behind', remembered: { sequence: 2 } }]);
  });

  it('drops a changed credential when the snapshot names a new version', async () => {
    plane.secrets = [{ ...DEMO, value: 'old', version: '1' }];
    const control = await open();
    await control.start();
    await control.policy.waitForVersion(1, 60_000);
    await control.credentials.resolve(DEMO);
    plane.secrets = [{ ...DEMO, value: 'new', version: '2' }];
    plane.answerPolls();
    await control.policy.waitForVersion(2, 60_000);
    const credential = await control.credentials.resolve(DEMO);
    expect(credential.ok && credential.value.secret.reveal()).toBe('new');
  });

  it('stops acting once it is revoked', async () => {
    plane.secrets = [{ ...DEMO, value: SECRET, version: '1' }];
    const control = await open();
    await control.start();
    await control.policy.waitForVersion(1, 60_000);
    await control.credentials.resolve(DEMO);
    plane.revoked = true;
    await control.audit.flush(1);
    control.audit.record(EVENT);
    await expect.poll(() => control.link.state).toBe('revoked');
    expect(control.policy.current()).toMatchObject({ ok: false });
    expect(await control.credentials.resolve(DEMO)).toMatchObject({ ok: false });
  });

  it('says what to do when the control plane was reinstalled', async () => {
    await (await open()).stop(0);
    await plane.stop();
    plane = new FakeControlPlane();
    await plane.start();
    const control = await open();
    await control.start();
    expect(await control.policy.waitForVersion(0, 300)).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining('identity.json') },
    });
  });
});

describe('a sidecar that cannot start', () => {
  it('never sends the local key to a remote control plane: a sign-in enrols there', async () => {
    const controlUrl = plane.url.replace('http:', 'https:');
    expect(await errorOf({ controlUrl })).toContain(`svc login --control ${controlUrl}`);
  });

  it('says so when it is not enrolled and there is no local key', async () => {
    rmSync(join(home, 'local.key'));
    expect(await errorOf()).toMatch(/not enrolled.*identity[.]json.*local[.]key/);
  });

  it('says so when the control plane does not accept the local key', async () => {
    writeFileSync(join(home, 'local.key'), 'svc_local_wrong\n', { mode: 0o600 });
    expect(await errorOf()).toContain('local.key');
  });

  it('says so when the spool cannot be opened', async () => {
    mkdirSync(join(home, 'sidecar'), { mode: 0o700 });
    writeFileSync(join(home, 'sidecar', 'spool'), 'not a directory');
    expect(await errorOf()).toMatch(/audit spool in .*spool cannot be used [(]E/);
  });

  it('says so when nobody answers', async () => {
    await plane.stop();
    expect(await errorOf()).toContain('ECONNREFUSED');
  });

  it.each([
    ['not a url', 'is not a URL'],
    ['http://control.example.com', 'use https'],
    ['http://127.0.0.1.example.com', 'use https'],
    ['http://0.0.0.0:1', 'use https'],
    ['ftp://127.0.0.1', 'neither https nor http'],
    ['https://me:pw@control.example.com', 'user name'],
    ['https://control.example.com/base', 'has more than a host'],
  ])('refuses the address %s', async (controlUrl, problem) => {
    expect(await errorOf({ controlUrl })).toContain(problem);
  });
});
