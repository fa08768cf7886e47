import { borrowSample } from '../testing/borrow_sample.ts';
import { MaskedReplies } from '../exchange/masked_replies.ts';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { compilePolicy } from '../../shared/resolve/resolve.ts';
import { channelFailure } from '../control/channel_failure.ts';
import { Link } from '../control/link.ts';
import { createPlanLocks, type PlanLocks } from '../control/plan_locks.ts';
import { reachFailure } from '../reach/reach_failure.ts';
import { Sessions } from '../session/sessions.ts';
import { FakeClock } from '../testing/fakes.ts';
import { fakeSessionCa } from '../testing/fake_session_ca.ts';
import { sampleIdentity } from '../testing/sample_identity.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import type { AuditMismatch } from '../control/audit_witness.ts';
import { createLocalApi } from './app.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { MetricsRegistry } from './metrics.ts';

const HOST_TOKEN = `svc_host_${'h'.repeat(43)}`;
const UNAVAILABLE = refusal('control_plane_unavailable', 'not reached');
const WENT_BACK: AuditMismatch = {
  writer: 'sdc_00000000000000000000000001',
  standing: 'behind',
  remembered: { sequence: 5, hash: '5'.repeat(64) },
  found: null,
  noticed_at: '2026-01-01T00:00:00.000Z',
};
const created = z.object({ session_id: z.string(), token: z.string(), proxy_url: z.string() });

let home: string;
let clock: FakeClock;
let link: Link;
let sessions: Sessions;
let bindings: HostBinding[];
let waited: [number, number][];
let flushed: number;
let accepting: boolean;
let mismatches: AuditMismatch[];
let accepted: string[];
let inForce: boolean;
let recorded: unknown[];
let asked: unknown[];
let unsealedValue: string | null;
let planLocks: PlanLocks;
let app: ReturnType<typeof createLocalApi>;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-local-api-'));
  clock = new FakeClock();
  link = new Link();
  planLocks = createPlanLocks(await sampleIdentity(), clock);
  bindings = [];
  waited = [];
  flushed = 0;
  accepting = true;
  mismatches = [];
  accepted = [];
  inForce = true;
  recorded = [];
  asked = [];
  unsealedValue = null;
  sessions = new Sessions({
    directory: join(home, 'sessions'),
    clock,
    maxTunnelsPerSession: 5,
    createCa: (directory) => fakeSessionCa(directory),
    systemRoots: () => 'ROOTS\n',
  });
  app = createLocalApi(options());
});

afterEach(async () => {
  await sessions.stop();
  rmSync(home, { recursive: true });
});

function options(): LocalApiOptions {
  return {
    logins: {
      fetchLogin: () => Promise.reject(new Error('unused')),
      holdLogin: () => Promise.reject(new Error('unused')),
    },
    version: '4.0.0',
    borrow: borrowSample(),
    credentials: { isStored: () => true },
    scopes: {
      of: () => {
        throw new Error('unused');
      },
    },
    hostToken: HOST_TOKEN,
    limits: DEFAULT_LIMITS,
    proxyOrigin: () => 'http://127.0.0.1:9100',
    hostNames: ['172.17.0.1', 'fd00::1'],
    policy: {
      current: () => (inForce ? ok(compilePolicy(bindings)) : err(UNAVAILABLE)),
      bindings: () => bindings,
      status: () => (inForce ? { version: 7, ageSeconds: 3 } : null),
      waitForVersion: (version, timeoutMs) => {
        waited.push([version, timeoutMs]);
        return Promise.resolve(inForce ? ok(version) : err(UNAVAILABLE));
      },
      waitForChange: () => Promise.resolve(),
      mcpServers: () => [],
    },
    audit: {
      get accepting() {
        return accepting;
      },
      pending: { bytes: 120, events: 2, dropped: 0 },
      record: (event) => `evt_${recorded.push(event)}`,
      flush: () => {
        flushed += 1;
        return Promise.resolve(true);
      },
    },
    link,
    witness: {
      heads: [],
      mismatches,
      isKept: true,
      accept: (writer, { sequence }) => {
        accepted.push(`${writer} ${sequence}`);
        return Promise.resolve(mismatches.length === 0 ? err('no_mismatch' as const) : ok(undefined));
      },
    },
    sessions,
    listeners: {
      openSocket: () => Promise.resolve(ok(undefined)),
      planFor: () => Promise.resolve(ok({ listener: 'namespace', address: '127.0.0.1', port: 7421 })),
      isInVirtualMachine: () => Promise.resolve(ok(false)),
      open: () => Promise.resolve(err(reachFailure('not_the_container', 'not it'))),
    },
    planLocks,
    masked: new MaskedReplies(1, () => true),
    operations: {
      run: () => Promise.reject(new Error('no run was expected')),
      request: () => Promise.reject(new Error('no request was expected')),
    },
    releaseUnsealed: (request) => {
      asked.push(request);
      return Promise.resolve(unsealedValue === null ? err(UNAVAILABLE) : ok(new Secret(unsealedValue)));
    },
    clock,
    metrics: new MetricsRegistry({ svc_demo_total: 'Things.' }),
    warn: () => undefined,
  };
}

function swap(sentinel: string, env?: string): HostBinding['emit'] {
  return { mechanism: 'sentinel-swap', sentinel, ...(env === undefined ? {} : { env }) };
}

interface Call {
  readonly method?: string;
  readonly token?: string | null;
  readonly host?: string | null;
  readonly body?: string;
}

async function call(path: string, { method = 'GET', token = HOST_TOKEN, host = '127.0.0.1:9100', body }: Call = {}) {
  const headers = new Headers();
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  if (host !== null) headers.set('host', host);
  return app.request(`http://127.0.0.1:9100${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
}

async function createSession(body: object = {}): Promise<z.infer<typeof created>> {
  const reply = await call('/v1/sandbox-proxy/sessions', { method: 'POST', body: JSON.stringify(body) });
  expect(reply.status).toBe(201);
  return created.parse(await reply.json());
}

async function codeOf(reply: Response): Promise<string> {
  const body = z.object({ error: z.object({ code: z.string(), message: z.string(), request_id: z.string() }) });
  return `${reply.status} ${body.parse(await reply.json()).error.code}`;
}

describe('creating a session', () => {
  it("returns what a launch needs, with the proxy URL in the specification's form", async () => {
    const reply = await call('/v1/sandbox-proxy/sessions', {
      method: 'POST',
      body: '{"name":"demo","ttl_seconds":60}',
    });
    const session = await reply.json();
    expect(session).toMatchObject({
      session_id: expect.stringMatching(/^ses_/),
      expires_at: '2026-01-02T03:05:05.678Z',
      ca_pem_path: expect.stringMatching(/ca[.]pem$/),
      sentinels: [],
    });
    const { session_id: id, token, proxy_url: url } = created.parse(session);
    expect(url).toBe(`http://${id}:${token}@127.0.0.1:9100`);
    expect([sessions.get(id)?.name, sessions.authenticate(id, token)?.id]).toEqual(['demo', id]);
    const bundle = z.object({ ca_bundle_path: z.string() }).parse(session).ca_bundle_path;
    expect(readFileSync(bundle, 'utf8')).toBe('ROOTS\nTEST CA\n');
  });

  it('waits for the policy version that the caller has seen', async () => {
    await createSession({ min_policy_version: 42 });
    expect(waited).toEqual([[42, 10_000]]);
  });

  it('is refused without a policy, and creates no session', async () => {
    inForce = false;
    const reply = await call('/v1/sandbox-proxy/sessions', { method: 'POST' });
    expect(await codeOf(reply)).toBe('503 control_plane_unavailable');
    expect(sessions.count).toBe(0);
  });

  it("returns the sentinels of bindings; a personal one wins over the enterprise's for the same variable", async () => {
    bindings = [
      sampleBinding({ owner: 'enterprise', emit: swap('theirs', 'DEMO_TOKEN') }),
      sampleBinding({ emit: swap('mine', 'DEMO_TOKEN') }),
      sampleBinding({ emit: swap('other', 'OTHER_TOKEN') }),
      sampleBinding({ emit: swap('nowhere') }),
      sampleBinding(),
    ];
    const reply = await call('/v1/sandbox-proxy/sessions', { method: 'POST' });
    expect(await reply.json()).toMatchObject({
      sentinels: [
        { env: 'DEMO_TOKEN', value: 'mine' },
        { env: 'OTHER_TOKEN', value: 'other' },
      ],
    });
  });

  it('records each credential that its command inherits', async () => {
    const kept = [{ env: 'GITHUB_TOKEN', reference: 'vault://user/github' }, { env: 'MY_KEY' }];
    const { session_id: id } = await createSession({ kept_env: kept });
    const event = { type: 'sandbox.proxy.credential_unsealed', session_id: id, actor: 'session' };
    expect(recorded).toEqual([
      {
        ...event,
        data: {
          'svc.proxy.credential_ref': 'vault://user/github',
          'svc.proxy.reason': 'kept in the environment: GITHUB_TOKEN',
        },
      },
      { ...event, data: { 'svc.proxy.reason': 'kept in the environment: MY_KEY' } },
    ]);
  });

  it('is refused if an inherited credential could not be recorded', async () => {
    accepting = false;
    const body = JSON.stringify({ kept_env: [{ env: 'GITHUB_TOKEN' }] });
    expect(await codeOf(await call('/v1/sandbox-proxy/sessions', { method: 'POST', body }))).toBe(
      '503 audit_unavailable',
    );
    expect(sessions.count).toBe(0);
  });

  it.each([
    ['{"kept_env":[{"env":"A=B"}]}', '400 invalid_input'],
    ['{"kept_env":[{"env":"A","reference":"ghp_secret"}]}', '400 invalid_input'],
    ['{"nam":"x"}', '400 invalid_input'],
    ['{"ttl_seconds":0}', '400 invalid_input'],
    ['{"ttl_seconds":1e99}', '400 invalid_input'],
    ['{"min_policy_version":"7"}', '400 invalid_input'],
    ['{"name":""}', '400 invalid_input'],
    ['[]', '400 invalid_input'],
    ['{', '400 invalid_json'],
    ['['.repeat(1000), '400 invalid_json'],
    [`{"name":[${'1,'.repeat(200_000)}1]}`, '400 invalid_json'],
    [`{"name":"${'x'.repeat(1_100_000)}"}`, '413 body_too_large'],
  ])('refuses the body %.30s', async (body, code) => {
    const reply = await call('/v1/sandbox-proxy/sessions', { method: 'POST', body });
    expect(await codeOf(reply)).toBe(code);
    expect(sessions.count).toBe(0);
  });

  it('says what is wrong if the CA cannot be created', async () => {
    const failing = new Sessions({
      directory: join(home, 'sessions'),
      clock,
      maxTunnelsPerSession: 1,
      createCa: () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })),
      systemRoots: () => '',
    });
    app = createLocalApi({ ...options(), sessions: failing });
    const reply = await call('/v1/sandbox-proxy/sessions', { method: 'POST' });
    expect(await codeOf(reply.clone())).toBe('500 session_ca_unavailable');
    expect(await reply.text()).toContain('could not be created: the disk is full (ENOSPC). Check');
  });
});

const endWithReasons = (id: string) => call(`/v1/sandbox-proxy/sessions/${id}?reasons=true`, { method: 'DELETE' });

describe('sessions', () => {
  it('are listed without their tokens', async () => {
    const { session_id: id, token } = await createSession({ name: 'demo' });
    const reply = await call('/v1/sandbox-proxy/sessions');
    const text = await reply.text();
    expect(JSON.parse(text)).toMatchObject({ items: [{ session_id: id, name: 'demo', open_tunnels: 0 }] });
    expect(text).not.toContain(token);
  });

  it('end, and their events are flushed before the reply', async () => {
    const { session_id: id, token } = await createSession();
    const reply = await call(`/v1/sandbox-proxy/sessions/${id}`, { method: 'DELETE' });
    expect([reply.status, flushed, sessions.authenticate(id, token)]).toEqual([204, 1, null]);
    const other = await call(`/v1/sandbox-proxy/sessions/ses_${'0'.repeat(26)}`, { method: 'DELETE' });
    expect(await codeOf(other)).toBe('404 not_found');
  });

  it('give the reasons of their events if asked, when they end', async () => {
    const { session_id: quiet } = await createSession();
    expect(await (await endWithReasons(quiet)).json()).toEqual({ reasons: [] });
    const { session_id: id } = await createSession();
    for (const reason of ['placeholder_unbound', 'egress_host_not_allowed', 'placeholder_unbound']) {
      sessions.noteReason(id, reason);
    }
    const reply = await endWithReasons(id);
    expect([reply.status, await reply.json()]).toEqual([
      200,
      { reasons: ['egress_host_not_allowed', 'placeholder_unbound'] },
    ]);
    // It is not known any more.
    expect((await endWithReasons(id)).status).toBe(204);
    const { session_id: unasked } = await createSession();
    expect((await call(`/v1/sandbox-proxy/sessions/${unasked}`, { method: 'DELETE' })).status).toBe(204);
  });

  it('can still be ended after they have ended by themselves', async () => {
    const { session_id: id } = await createSession({ ttl_seconds: 60 });
    clock.advance(60_000);
    await sessions.sweep();
    expect((await call(`/v1/sandbox-proxy/sessions/${id}`, { method: 'DELETE' })).status).toBe(204);
  });
});

describe('health', () => {
  it('shows an anonymous caller only status and version', async () => {
    const reply = await call('/v1/health', { token: null });
    expect(await reply.json()).toEqual({ status: 'degraded', version: '4.0.0' });
  });

  it('shows the host token everything', async () => {
    link.markDown(channelFailure('clock_skew', 'clocks', { serverTime: '2030-01-01T00:00:00.000Z' }));
    await createSession();
    const reply = await call('/v1/health');
    expect(await reply.json()).toEqual({
      status: 'degraded',
      version: '4.0.0',
      snapshot: { version: 7, age_seconds: 3, usable: true },
      spool: { bytes: 120, events: 2, dropped: 0, accepting: true },
      channel: {
        state: 'down',
        last_error: { reason: 'clock_skew', message: 'clocks', server_time: '2030-01-01T00:00:00.000Z' },
      },
      audit_log: { remembers: true, heads: [], mismatches: [] },
      upstream_proxy: null,
      sessions: 1,
    });
  });

  it('is degraded while the audit log was rolled back and no person has accepted it; metrics show it', async () => {
    link.markUp();
    mismatches.push(WENT_BACK);
    expect(await (await call('/v1/health', { token: null })).json()).toMatchObject({ status: 'degraded' });
    expect(await (await call('/v1/health')).json()).toMatchObject({ audit_log: { mismatches: [WENT_BACK] } });
    expect(await (await call('/metrics')).text()).toContain('\nsvc_audit_log_mismatches 1\n');
  });

  it('lets only the host token accept an audit log mismatch, and only as it was shown', async () => {
    const body = JSON.stringify({ writer: WENT_BACK.writer, ...WENT_BACK.remembered });
    const { token } = await createSession();
    const accept = { method: 'POST', body };
    expect(await codeOf(await call('/v1/audit-log/accept', { ...accept, token }))).toBe('403 host_token_required');
    expect(await codeOf(await call('/v1/audit-log/accept', accept))).toBe('404 not_found');
    mismatches.push(WENT_BACK);
    expect((await call('/v1/audit-log/accept', accept)).status).toBe(204);
    expect(accepted).toEqual([`${WENT_BACK.writer} 5`, `${WENT_BACK.writer} 5`]);
  });

  it('shows a session only its own state', async () => {
    const { session_id: id, token } = await createSession();
    const reply = await call('/v1/health', { token });
    expect(await reply.json()).toEqual({
      status: 'degraded',
      version: '4.0.0',
      session: { session_id: id, expires_at: expect.any(String), open_tunnels: 0 },
    });
  });

  it.each([
    ['starting', () => (inForce = false)],
    ['ok', () => link.markUp()],
    ['degraded', () => link.markDown(channelFailure('unreachable', 'x'))],
    [
      'degraded',
      () => {
        link.markUp();
        accepting = false;
      },
    ],
  ])('is %s', async (status, arrange) => {
    arrange();
    expect(await (await call('/v1/health', { token: null })).json()).toMatchObject({ status });
  });
});

describe('authentication', () => {
  it.each([
    ['POST', '/v1/sandbox-proxy/sessions'],
    ['GET', '/v1/sandbox-proxy/sessions'],
    ['DELETE', '/v1/sandbox-proxy/sessions/ses_0'],
    ['GET', '/metrics'],
  ])("%s %s needs the host token: 403 for a session's token, 401 without one", async (method, path) => {
    const { token } = await createSession();
    expect(await codeOf(await call(path, { method, token }))).toBe('403 host_token_required');
    expect(await codeOf(await call(path, { method, token: null }))).toBe('401 unauthenticated');
  });

  it.each(['x', `${HOST_TOKEN}x`, HOST_TOKEN.slice(0, -1), 'svc_session_none'])(
    'an unknown token gets 401 everywhere, also for health: %s',
    async (token) => {
      expect(await codeOf(await call('/v1/health', { token }))).toBe('401 unauthenticated');
      expect(await codeOf(await call('/v1/sandbox-proxy/sessions', { token }))).toBe('401 unauthenticated');
    },
  );

  it('an expired session token is unknown', async () => {
    const { token } = await createSession({ ttl_seconds: 60 });
    clock.advance(60_000);
    expect(await codeOf(await call('/v1/health', { token }))).toBe('401 unauthenticated');
  });

  it.each(['evil.example', 'evil.example:9100', '127.0.0.1.evil.example', 'localhost.evil.example', '', '10.0.0.1'])(
    'a call with the Host %j is refused, even with a valid token (DNS rebinding)',
    async (host) => {
      expect(await codeOf(await call('/v1/health', { host }))).toBe('421 misdirected_host');
    },
  );

  it('a call without a Host header is refused', async () => {
    expect(await codeOf(await call('/v1/health', { host: null }))).toBe('421 misdirected_host');
  });

  it.each(['127.0.0.1', 'LocalHost:80', '[::1]:9100', '172.17.0.1:9100', '[fd00::1]:9100'])(
    'a call with the Host %s is answered',
    async (host) => {
      expect((await call('/v1/health', { host })).status).toBe(200);
    },
  );
});

describe('other paths', () => {
  it('answer 404 with the same error body', async () => {
    expect(await codeOf(await call('/v1/nothing'))).toBe('404 not_found');
    expect(await codeOf(await call('/v1/sandbox-proxy/sessions', { method: 'PATCH' }))).toBe('404 not_found');
  });

  it('answer 500 on an exception, without its details', async () => {
    const broken = { ...options(), sessions, metrics: new MetricsRegistry() };
    broken.metrics.gauge({
      name: 'svc_broken',
      help: 'x',
      read: () => {
        throw new Error('detail of the failure');
      },
    });
    app = createLocalApi(broken);
    const reply = await call('/metrics');
    expect(reply.status).toBe(500);
    expect(await reply.text()).not.toContain('detail');
  });

  it('serves the metrics in Prometheus format', async () => {
    const reply = await call('/metrics');
    expect(reply.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await reply.text();
    expect(text).toContain('# TYPE svc_demo_total counter');
    expect(text).toContain('svc_audit_spool_events 2\n');
    expect(text).toContain('svc_policy_age_seconds 3\n');
  });
});
