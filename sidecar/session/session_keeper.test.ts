import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompactSign } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { bootId, identify, type ProcessIdentity } from '../../machine/process_identity.ts';
import type { Identity } from '../../machine/sidecar_identity.ts';
import { createSessionSeal } from '../control/session_seal.ts';
import { FakeClock } from '../testing/fakes.ts';
import { sampleIdentity } from '../testing/sample_identity.ts';
import { samplePlanLockPayload } from '../testing/sample_plan_lock.ts';
import { createSessionCa, openSessionCa } from '../tls/session_ca.ts';
import { ok } from '../../shared/model/result.ts';
import type { Sandbox } from './sandbox.ts';
import { CapturedLogin } from './session_login.ts';
import type { Session } from './session.ts';
import { SessionKeeper, type SessionKeeperOptions } from './session_keeper.ts';
import { type NewSession, Sessions } from './sessions.ts';
import { SAMPLE_SANDBOX } from '../testing/sample_sandbox.ts';

const anyRecord = z.record(z.string(), z.unknown());
const signedHeader = z.looseObject({ alg: z.string() });
const OWN = identify(process.pid);
const OWNER: ProcessIdentity = { pid: process.pid, started: OWN?.started ?? '' };
const SANDBOX: Sandbox = { ...SAMPLE_SANDBOX, egress: 'sealed' };
const CONTAINER = 'c'.repeat(64);
const UNSEALED = { env: 'KEY', reference: 'vault://user/demo', host: 'api.example.test', reason: 'pinned' };
const MOST = { maxLeaves: 10 };

let home: string;
let directory: string;
let clock: FakeClock;
let identity: Identity;
let warnings: string[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-keeper-'));
  directory = join(home, 'sessions');
  clock = new FakeClock();
  identity = await sampleIdentity();
  warnings = [];
});
afterEach(() => rmSync(home, { recursive: true }));

/** Fails as it does when a folder cannot be written any more. */
class FailingKeeper extends SessionKeeper {
  override forget(): Promise<void> {
    return Promise.reject(new Error('read-only folder'));
  }
}

/** The sessions of one run of the sidecar. */
function runOf(change: Partial<SessionKeeperOptions> = {}, Keeper = SessionKeeper): Sessions {
  const now = (): number => clock.now();
  return new Sessions({
    directory,
    clock,
    maxTunnelsPerSession: 5,
    createCa: (at, sessionId) => createSessionCa(at, { ...MOST, sessionId, now }),
    systemRoots: () => '',
    warn: (message) => warnings.push(message),
    keeper: new Keeper({
      directory,
      clock,
      seal: createSessionSeal(identity),
      bootId: bootId(),
      uid: process.getuid?.() ?? null,
      proxyPort: () => 9100,
      openCa: (at, sessionId, digest) => openSessionCa(at, digest, { ...MOST, sessionId, now }),
      maxTunnelsPerSession: 5,
      warn: (message) => warnings.push(message),
      ...change,
    }),
  });
}

async function openSession(
  sessions: Sessions,
  change: Partial<NewSession> = {},
): Promise<{ readonly session: Session; readonly token: string }> {
  const { session, token } = await sessions.create({ name: 'demo', ttlSeconds: null, owner: OWNER, ...change });
  return { session, token: token ?? '' };
}

const fileOf = ({ directory: folder }: Session): string => join(folder, 'session.jws');

/** What the next run makes of the sessions, and why it refused the others. */
async function nextRun(change: Partial<SessionKeeperOptions> = {}): Promise<{ sessions: Sessions; reasons: string[] }> {
  const sessions = runOf(change);
  const { refused } = await sessions.start();
  await sessions.stop();
  return { sessions, reasons: refused.map(({ reason }) => reason) };
}

async function expectDead(session: Session, token: string, reason: string, change: Partial<SessionKeeperOptions> = {}) {
  const { sessions, reasons } = await nextRun(change);
  expect(reasons).toEqual([reason]);
  expect([sessions.list(), sessions.authenticate(session.id, token), sessions.withToken(token)]).toEqual([
    [],
    null,
    null,
  ]);
  expect(existsSync(join(session.directory, 'ca.key'))).toBe(false);
}

/** The facts of a session as this sidecar signs them. */
const signFacts = (facts: object): Promise<string> =>
  new CompactSign(new TextEncoder().encode(JSON.stringify(facts)))
    .setProtectedHeader({ alg: 'EdDSA', typ: 'svc-session+jws' })
    .sign(identity.signingKey);

/** Changes the signed text, and leaves its signature. */
function changeSigned(session: Session, edit: (facts: Record<string, unknown>) => object): void {
  const [head = '', payload = '', signature = ''] = readFileSync(fileOf(session), 'utf8').split('.');
  const facts = z.looseObject({}).parse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  const edited = Buffer.from(JSON.stringify(edit(facts))).toString('base64url');
  writeFileSync(fileOf(session), [head, edited, signature].join('.'));
}

describe('a session that is restored', () => {
  it('may have a container in a virtual machine, whose processes are not here', async () => {
    const before = runOf();
    const { session } = await openSession(before, { sandbox: SAMPLE_SANDBOX });
    session.containerId = 'c'.repeat(64);
    session.listener = { listener: 'namespace', address: '127.0.0.1', port: 7421, relay: true };
    await before.save(session);
    const { sessions, reasons } = await nextRun();
    expect(reasons).toEqual([]);
    expect(sessions.get(session.id)).toMatchObject({
      containerId: 'c'.repeat(64),
      container: null,
      listener: { relay: true },
    });
  });

  it('has the same id, token, CA and facts', async () => {
    const before = runOf();
    const { session, token } = await openSession(before, { mcpServers: ['mcp_1'], unsealed: [UNSEALED] });
    before.notePaused(session.id, [{ binding: 'bnd_1', host: 'api.example.test' }]);
    await before.save(session);
    const context = await session.ca.secureContextFor('api.example.test');
    const { sessions, reasons } = await nextRun();
    const restored = sessions.get(session.id);
    expect(reasons).toEqual([]);
    expect(sessions.authenticate(session.id, token)).toBe(restored);
    expect(sessions.authenticate(session.id, `${token}x`)).toBeNull();
    expect(restored).toMatchObject({
      name: 'demo',
      createdAt: session.createdAt,
      owner: OWNER,
      mcpServers: ['mcp_1'],
      unsealed: [UNSEALED],
      paused: [{ binding: 'bnd_1', host: 'api.example.test' }],
      lock: null,
      // The earlier run may have recorded some.
      reasons: null,
    });
    expect(restored?.ca.caPem).toBe(session.ca.caPem);
    expect(await restored?.ca.secureContextFor('api.example.test')).not.toBe(context);
  });

  it('has its container and listener', async () => {
    const before = runOf();
    const { session, token } = await openSession(before, { sandbox: { ...SANDBOX, detached: true } });
    expect(existsSync(fileOf(session))).toBe(false);
    session.containerId = CONTAINER;
    session.container = OWNER;
    session.owner = null;
    session.listener = { listener: 'namespace', address: '127.0.0.1', port: 7421, relay: true };
    await before.save(session);
    const { sessions } = await nextRun({ proxyPort: () => 9999 });
    expect(sessions.authenticate(session.id, token)).toMatchObject({
      containerId: CONTAINER,
      container: OWNER,
      owner: null,
      sandbox: { detached: true, egress: 'sealed' },
      listener: { port: 7421, relay: true },
    });
  });

  it('has its allowed hosts, and no more than before', async () => {
    const allowList = { hosts: ['*.cdn.example.test'], named: ['npm.example.test'] };
    const { session, token } = await openSession(runOf(), { allowList });
    const { sessions } = await nextRun();
    const restored = sessions.authenticate(session.id, token);
    expect(restored?.named).toEqual(new Set(['npm.example.test']));
    expect(restored?.allowed?.patterns).toEqual(session.allowed?.patterns);
    expect(restored?.allowed?.patterns).toHaveLength(2);
  });

  it('has its hosts for plain http, and none if it had none', async () => {
    const plainHttp = { hosts: ['*.cdn.example.test'], named: ['deb.example.test'] };
    const { session, token } = await openSession(runOf(), { plainHttp });
    const { sessions } = await nextRun();
    const restored = sessions.authenticate(session.id, token);
    expect(restored?.plainHttp).toEqual(session.plainHttp);
    expect(restored?.plainHttp?.named).toEqual(new Set(['deb.example.test']));
    expect(restored?.allowed).toBeNull();
  });

  it('has its hosts at other ports, and none if it had none', async () => {
    const otherPorts = { hosts: ['*.cdn.example.test:8443'], named: ['git.example.test:8443'] };
    const { session, token } = await openSession(runOf(), { otherPorts });
    const bare = await openSession(runOf());
    const { sessions } = await nextRun();
    const restored = sessions.authenticate(session.id, token);
    expect(restored?.otherPorts).toEqual(session.otherPorts);
    expect(restored?.named).toEqual(new Set(['git.example.test:8443']));
    expect(restored?.allowed).toBeNull();
    expect(sessions.authenticate(bare.session.id, bare.token)?.otherPorts).toBeNull();
  });

  it('has the account that it chose', async () => {
    const choice = {
      secrets: [{ path: 'user/work', by: 'folder', from: '/home/me/work' } as const],
      decisions: [{ pattern: '*.example.test', owner: 'personal', paths: ['user/work'], by: 'folder' } as const],
      exceptions: ['api.example.test'],
    };
    const { session, token } = await openSession(runOf(), { choice });
    const { sessions } = await nextRun();
    expect(sessions.authenticate(session.id, token)?.choice).toEqual(choice);
  });

  it('does not do more with a secret that it narrows', async () => {
    const scopes = [{ path: 'ci/github', narrowing: { repositories: ['website'] } }];
    const { session } = await openSession(runOf(), { scopes });
    const { sessions } = await nextRun();
    expect(sessions.get(session.id)?.scopes).toEqual(scopes);
  });

  it('has the limits that it was started with', async () => {
    const limits = { requestsPerMinute: 60, requestsPerDay: 2000, bytesPerDay: 500 };
    const { session } = await openSession(runOf(), { limits });
    const { sessions } = await nextRun();
    expect(sessions.get(session.id)?.limits).toEqual(limits);
  });

  it('is restored again and again, and its file has no token', async () => {
    const { session, token } = await openSession(runOf());
    expect(readFileSync(fileOf(session), 'utf8')).not.toContain(token);
    expect(statSync(fileOf(session)).mode & 0o777).toBe(0o600);
    expect((await nextRun()).sessions.authenticate(session.id, token)).not.toBeNull();
    expect((await nextRun()).sessions.authenticate(session.id, token)).not.toBeNull();
  });

  it('is one of many: all are restored, a few at a time', async () => {
    const before = runOf();
    await Promise.all(Array.from({ length: 40 }, () => openSession(before)));
    let open = 0;
    let most = 0;
    const openCa: SessionKeeperOptions['openCa'] = async (at, sessionId, digest) => {
      most = Math.max(most, (open += 1));
      const ca = await openSessionCa(at, digest, { ...MOST, sessionId, now: () => clock.now() });
      open -= 1;
      return ca;
    };
    const { sessions, reasons } = await nextRun({ openCa });
    expect([sessions.count, reasons]).toEqual([40, []]);
    expect(most).toBeLessThanOrEqual(16);
  });

  it('lives as long as its launcher: days later it is still there', async () => {
    const { session, token } = await openSession(runOf());
    clock.advance(40 * 24 * 3_600_000);
    const { sessions } = await nextRun();
    const restored = sessions.authenticate(session.id, token);
    expect(restored).not.toBeNull();
    expect(sessions.get(session.id)?.expiresAt).toBeGreaterThan(clock.now());
  });
});

describe('stays dead:', () => {
  const dead: [string, string, (session: Session) => Partial<SessionKeeperOptions> | Promise<void> | void][] = [
    ['a file that others may read', 'session_file_exposed', (session) => chmodSync(fileOf(session), 0o640)],
    ['a folder that others may enter', 'session_file_exposed', (session) => chmodSync(session.directory, 0o755)],
    ['a file of another user', 'session_file_exposed', () => ({ uid: (process.getuid?.() ?? 0) + 1 })],
    [
      'a link to a file',
      'session_file_exposed',
      (session) => {
        renameSync(fileOf(session), join(home, 'elsewhere'));
        symlinkSync(join(home, 'elsewhere'), fileOf(session));
      },
    ],
    [
      'a file that is no regular file',
      'session_file_exposed',
      (session) => {
        rmSync(fileOf(session));
        mkdirSync(fileOf(session), { mode: 0o700 });
      },
    ],
    [
      'a file that was changed',
      'session_file_foreign',
      (session) => changeSigned(session, (facts) => ({ ...facts, renews: false })),
    ],
    ['a file without a signature', 'session_file_foreign', (session) => writeFileSync(fileOf(session), '{}')],
    ['a launcher that has ended', 'launcher_ended', () => ({ isSurelyRunning: () => false })],
    ['a launcher from before the system was started again', 'launcher_ended', () => ({ bootId: 'another' })],
    ['a session whose proxy moved to another port', 'proxy_moved', () => ({ proxyPort: () => 9101 })],
    [
      'a CA key that others may read',
      'session_ca_unusable',
      (session) => chmodSync(join(session.directory, 'ca.key'), 0o644),
    ],
    [
      'a CA that was replaced',
      'session_ca_unusable',
      async (session) => {
        await createSessionCa(session.directory, { ...MOST, sessionId: session.id, now: () => clock.now() });
      },
    ],
    ['a session without its CA', 'session_ca_unusable', (session) => rmSync(join(session.directory, 'ca.key'))],
  ];

  it.each(dead)('%s (%s)', async (_title, reason, spoil) => {
    const { session, token } = await openSession(runOf());
    const options = (await spoil(session)) ?? {};
    await expectDead(session, token, reason, options);
  });

  it('a session whose launcher’s process id belongs to another process now', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions, {
      owner: { pid: process.pid, started: `${OWNER.started}1` },
    });
    await expectDead(session, token, 'launcher_ended');
  });

  it('a session whose container’s process id belongs to another process now', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions, { sandbox: SANDBOX });
    session.containerId = CONTAINER;
    session.container = { pid: process.pid, started: `${OWNER.started}1` };
    session.listener = { listener: 'namespace', address: '127.0.0.1', port: 7421, relay: false };
    await sessions.save(session);
    await expectDead(session, token, 'container_ended');
  });

  it('a session of a sidecar that was revoked and enrolled again', async () => {
    const { session, token } = await openSession(runOf());
    identity = await sampleIdentity();
    await expectDead(session, token, 'session_file_foreign');
  });

  it('a text that this sidecar has signed for something else', async () => {
    const { session, token } = await openSession(runOf());
    const payload = Buffer.from(readFileSync(fileOf(session), 'utf8').split('.')[1] ?? '', 'base64url');
    const signer = new CompactSign(payload).setProtectedHeader({ alg: 'EdDSA', typ: 'svc-plan-lock+jws' });
    writeFileSync(fileOf(session), await signer.sign(identity.signingKey));
    await expectDead(session, token, 'session_file_foreign');
  });

  it('a session whose narrowed secrets this version cannot read: without them, it would be given more', async () => {
    const { session, token } = await openSession(runOf());
    const [, payload = ''] = readFileSync(fileOf(session), 'utf8').split('.');
    const facts = anyRecord.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
    const scopes = [{ path: 'ci/github', narrowing: { branches: ['main'] } }];
    writeFileSync(fileOf(session), await signFacts({ ...facts, scopes }));
    await expectDead(session, token, 'session_file_foreign');
  });

  it('a session whose saved choice this version cannot read: without it, another account would be used', async () => {
    const { session, token } = await openSession(runOf());
    const [header = '', payload = ''] = readFileSync(fileOf(session), 'utf8').split('.');
    const facts = anyRecord.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
    const sign = (changed: object): Promise<string> =>
      new CompactSign(Buffer.from(JSON.stringify(changed)))
        .setProtectedHeader(signedHeader.parse(JSON.parse(Buffer.from(header, 'base64url').toString())))
        .sign(identity.signingKey);
    writeFileSync(fileOf(session), await sign(facts));
    expect((await nextRun()).sessions.authenticate(session.id, token)).not.toBeNull();
    writeFileSync(fileOf(session), await sign({ ...facts, choice: { secrets: [], hosts: ['api.example.test'] } }));
    await expectDead(session, token, 'session_file_foreign');
  });

  it('a file in the folder of another session', async () => {
    const { session, token } = await openSession(runOf());
    const other = join(directory, `ses_${'0'.repeat(26)}`);
    renameSync(session.directory, other);
    const { sessions, reasons } = await nextRun();
    expect([reasons, sessions.list()]).toEqual([['session_file_foreign'], []]);
    expect(sessions.withToken(token)).toBeNull();
    expect(existsSync(other)).toBe(false);
  });

  it('a session whose time was over while the sidecar was down', async () => {
    const { session, token } = await openSession(runOf(), { ttlSeconds: 60 });
    clock.advance(60_000);
    await expectDead(session, token, 'session_expired');
  });

  it('a container that reaches the proxy at a bridge’s gateway: another user could listen there meanwhile', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions, { sandbox: { ...SANDBOX, egress: 'open' } });
    session.containerId = CONTAINER;
    session.container = OWNER;
    session.listener = { listener: 'gateway', address: '172.17.0.1', port: 7421, relay: false };
    await sessions.save(session);
    await expectDead(session, token, 'absent');
  });

  it('a container at a gateway that an earlier version has saved', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions, { sandbox: { ...SANDBOX, egress: 'open' } });
    session.containerId = CONTAINER;
    session.container = OWNER;
    session.listener = { listener: 'namespace', address: '127.0.0.1', port: 7421, relay: false };
    await sessions.save(session);
    const seal = createSessionSeal(identity);
    const saved = await seal.open(readFileSync(fileOf(session), 'utf8'));
    if (saved === null || saved.container === null) throw new Error('it was not saved');
    const listener = { ...saved.container.listener, listener: 'gateway', address: '172.17.0.1' } as const;
    writeFileSync(fileOf(session), await seal.seal({ ...saved, container: { ...saved.container, listener } }));
    await expectDead(session, token, 'proxy_moved');
  });

  it('a session that was ended: its file goes first, before its tunnels are closed', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions);
    let wasThere: boolean | null = null;
    session.openTunnel(() => void (wasThere = existsSync(fileOf(session))));
    await sessions.end(session.id);
    expect(wasThere).toBe(false);
    await sessions.save(session);
    expect((await nextRun()).sessions.withToken(token)).toBeNull();
    expect(readdirSync(directory)).toEqual([]);
  });

  it('every session after its sidecar was revoked, though it goes on until then', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions);
    await sessions.forgetSaved();
    expect(sessions.authenticate(session.id, token)).toBe(session);
    await sessions.save(session);
    await expectDead(session, token, 'absent');
  });

  it('a plan’s session with the scopes of its steps', async () => {
    const sessions = runOf();
    const lock = await samplePlanLockPayload();
    const { session } = await openSession(sessions, { lock, sandbox: SANDBOX });
    session.containerId = CONTAINER;
    session.container = OWNER;
    session.listener = { listener: 'namespace', address: '127.0.0.1', port: 7421, relay: false };
    const step = {
      stepId: 'fetch',
      effect: 'read',
      hosts: ['api.example.test'],
      timeoutSeconds: 60,
      scopes: [],
      choice: null,
    };
    const { token } = session.openScope(step, clock.now());
    await sessions.save(session);
    await expectDead(session, token, 'absent');
  });

  it.each<[string, Partial<NewSession>]>([
    ['a session that no process owns', { owner: null }],
    ['a session whose owner’s start time is not known', { owner: { pid: process.pid, started: null } }],
    ['a container without a listener', { sandbox: SANDBOX }],
    ['the container of an MCP server', { mcpServer: { id: 'mcp_1', name: 'box', noteRefused: () => undefined } }],
    ['a self-test, which would come back as a session that reaches every host', { selfTest: true }],
  ])('%s', async (_title, wanted) => {
    const { session, token } = await openSession(runOf(), wanted);
    await expectDead(session, token, 'absent');
  });

  it('a session that could not be saved again', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions);
    const seal = createSessionSeal(identity);
    const failing = runOf({ seal: { ...seal, seal: () => Promise.reject(new Error('no space')) } });
    await failing.start();
    const again = failing.get(session.id);
    if (again === null) throw new Error('it was not restored');
    await failing.save(again);
    expect(warnings).toEqual([expect.stringContaining('could not be saved')]);
    await expectDead(session, token, 'absent');
    await failing.stop();
  });
});

describe('a session whose file cannot be removed', () => {
  it('ends nevertheless: its tunnels close, its CA is gone, and the failure is reported', async () => {
    const sessions = runOf({}, FailingKeeper);
    const { session, token } = await openSession(sessions);
    const closed: string[] = [];
    session.openTunnel(() => void closed.push('tunnel'));
    await expect(sessions.end(session.id)).rejects.toThrow('read-only folder');
    expect([closed, session.ended, sessions.authenticate(session.id, token)]).toEqual([['tunnel'], true, null]);
    await expect(session.ca.secureContextFor('api.example.test')).rejects.toThrow('its CA is gone');
    expect(existsSync(session.directory)).toBe(false);
  });

  it('does not stop the sweep, or the others when the sidecar is revoked or stops', async () => {
    const sessions = runOf({}, FailingKeeper);
    const { session } = await openSession(sessions, { ttlSeconds: 60 });
    await openSession(sessions, { owner: null });
    clock.advance(60_000);
    await sessions.sweep();
    await sessions.forgetSaved();
    await sessions.stop();
    expect([session.ended, sessions.list()]).toEqual([true, []]);
    expect(warnings).toEqual(Array.from({ length: 3 }, () => expect.stringContaining('read-only folder')));
  });

  it('can still be paused and saved: a write that fails does not end the sidecar', async () => {
    const sessions = runOf();
    const { session } = await openSession(sessions);
    rmSync(session.directory, { recursive: true });
    writeFileSync(session.directory, '');
    await sessions.save(session);
    await sessions.save(session);
    expect(warnings.filter((each) => each.includes('could not be removed'))).toHaveLength(2);
  });
});

describe('a sidecar that stops', () => {
  it('closes the tunnels of saved sessions and leaves their files; it ends the others', async () => {
    const sessions = runOf();
    const { session, token } = await openSession(sessions);
    const other = await openSession(sessions, { owner: null });
    const closed: string[] = [];
    session.openTunnel(() => void closed.push('tunnel'));
    await sessions.stop();
    expect([closed, existsSync(other.session.directory)]).toEqual([['tunnel'], false]);
    expect((await nextRun()).sessions.authenticate(session.id, token)).not.toBeNull();
  });
});

it('does not bring back the session of a login, which would pass its tokens on to the program', async () => {
  const open = {
    id: 'plg_00000000000000000000000000',
    program: 'claude',
    tokenUrl: 'https://auth.example.test/token',
    clientId: 'client',
    grants: ['authorization_code'],
    key: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' },
    expiresAt: clock.now() + 600_000,
  } as const;
  const login = new CapturedLogin(open, 'p'.repeat(60), { holdLogin: () => Promise.resolve(ok(undefined)) });
  const before = runOf();
  const { session, token } = await openSession(before, { login });
  await before.save(session);
  expect(existsSync(fileOf(session))).toBe(false);
  const { sessions } = await nextRun();
  expect(sessions.authenticate(session.id, token)).toBeNull();
});
