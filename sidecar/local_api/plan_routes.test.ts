import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { stepScopeReply } from '../../shared/wire/plan/plan_lock.ts';
import { LocalApiBench, sandboxInput } from '../testing/local_api_bench.ts';
import { samplePlanLock, sampleSealedStep } from '../testing/sample_plan_lock.ts';

const LOCKS = '/v1/sandbox-proxy/plan-locks';
const SCOPES = '/v1/sandbox-proxy/step-scopes';
const STARTS = '/v1/sandbox-proxy/step-starts';
const SESSIONS = '/v1/sandbox-proxy/sessions';

let bench: LocalApiBench;

const account = (path: string, host = 'api.example.test'): HostBinding =>
  bearerBinding(host, {
    id: `bnd_${path}`,
    credential: { owner: 'personal', path },
    emit: { mechanism: 'sentinel-swap', sentinel: `placeholder-of-${path}`, env: 'TOKEN' },
  });

beforeEach(async () => {
  bench = await LocalApiBench.start();
});

afterEach(() => bench.stop());

async function freezePlan(...steps: Parameters<typeof samplePlanLock>): Promise<string> {
  const reply = await bench.call('POST', LOCKS, { content: await samplePlanLock(...steps) });
  return z.object({ lock: z.string() }).parse(reply.body).lock;
}

function tamper(lock: string, change: (payload: Record<string, unknown>) => void): string {
  const [head = '', payload = '', signature = ''] = lock.split('.');
  const said = z.record(z.string(), z.unknown()).parse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  change(said);
  return `${head}.${Buffer.from(JSON.stringify(said)).toString('base64url')}.${signature}`;
}

async function planSession(lock: string): Promise<string> {
  return (await bench.createSession({ sandbox: sandboxInput(), plan: { lock } })).id;
}

function reportStart(sessionId: string, change: object = {}) {
  return bench.call('POST', STARTS, { session_id: sessionId, step_id: 'fetch', began: true, ...change });
}

/** The reach events: whether each was enforced, and its reason. */
function reaches(): unknown[] {
  return bench.sink.events.map(({ type, data }) => {
    expect(type).toBe('flightplan.launch.reach');
    return [data['svc.reach.enforced'], data['svc.proxy.reason'] ?? null];
  });
}

function scopeFor(sessionId: string, stepId = 'fetch') {
  return bench.call('POST', SCOPES, { session_id: sessionId, step_id: stepId });
}

describe("a plan's session", () => {
  it('has no token, and its proxy URL has no credentials', async () => {
    const { id, token, body } = await bench.createSession({
      sandbox: sandboxInput(),
      plan: { lock: await freezePlan() },
    });
    expect(token).toBe('');
    expect(body).not.toHaveProperty('token');
    expect(body).toMatchObject({ proxy_url: 'http://127.0.0.1:7421' });
    expect((await bench.call('GET', `${SESSIONS}/${id}`)).body).toMatchObject({ plan: { name: 'nightly' } });
  });

  it('gets no unsealed credential', async () => {
    const id = await planSession(await freezePlan());
    const body = { session_id: id, env: 'X', reference: 'vault://user/demo', host: 'a.example', reason: 'r' };
    expect((await bench.call('POST', '/v1/sandbox-proxy/unsealed', body)).code).toBe('session_of_plan');
    const sandbox = sandboxInput({
      unsealed: [{ env: 'X', reference: 'vault://user/demo', host: 'a.example', reason: 'r' }],
    });
    const reply = await bench.call('POST', SESSIONS, { sandbox, plan: { lock: await freezePlan() } });
    expect(reply.code).toBe('invalid_input');
  });

  it('has no relay, which would open what the session itself does not', async () => {
    const id = await planSession(await freezePlan());
    await bench.call('PUT', `${SESSIONS}/${id}/container`, { container_id: 'c'.repeat(64) });
    const reply = await bench.call('POST', `${SESSIONS}/${id}/listener`, { pid: 4711, relay: true });
    expect([reply.code, bench.pids]).toEqual(['session_of_plan', []]);
  });

  it.each([
    [
      'a host was added',
      (p: Record<string, unknown>) => (p['steps'] = [sampleSealedStep({ hosts: ['evil.example'] })]),
    ],
    [
      'the image was changed',
      (p: Record<string, unknown>) => (p['image'] = { name: 'x', id: `sha256:${'f'.repeat(64)}` }),
    ],
    ['white space was added', (p: Record<string, unknown>) => (p['name'] = 'nightly ')],
  ])('is refused if its lock was changed: %s', async (_what, change) => {
    const lock = tamper(await freezePlan(), change);
    const reply = await bench.call('POST', SESSIONS, { sandbox: sandboxInput(), plan: { lock } });
    expect([reply.status, reply.code, bench.sessions.count]).toEqual([422, 'plan_lock_invalid', 0]);
  });

  it('is refused with the lock of another sidecar, and names that sidecar', async () => {
    const other = await LocalApiBench.start();
    const signed = await other.call('POST', LOCKS, { content: await samplePlanLock() });
    await other.stop();
    const named = tamper(String(signed.body['lock']), (p) => (p['sidecar_id'] = `sdc_${'7'.repeat(26)}`));
    const reply = await bench.call('POST', SESSIONS, { sandbox: sandboxInput(), plan: { lock: named } });
    expect([reply.status, reply.code]).toEqual([422, 'plan_lock_foreign']);
    expect(reply.text).toContain(`sdc_${'7'.repeat(26)}`);
    const same = await bench.call('POST', SESSIONS, {
      sandbox: sandboxInput(),
      plan: { lock: signed.body['lock'] },
    });
    expect(same.code).toBe('plan_lock_invalid');
  });

  it('is refused in another image than the pinned one, and without a container', async () => {
    const lock = await freezePlan();
    const sandbox = sandboxInput({ image_id: `sha256:${'f'.repeat(64)}` });
    expect((await bench.call('POST', SESSIONS, { sandbox, plan: { lock } })).code).toBe('plan_lock_invalid');
    expect((await bench.call('POST', SESSIONS, { plan: { lock } })).code).toBe('invalid_input');
  });

  it.each(['', 'x', 'a.b.c', '..'])('is refused with the lock %j', async (lock) => {
    const reply = await bench.call('POST', SESSIONS, { sandbox: sandboxInput(), plan: { lock } });
    expect(reply.code).toMatch(/^(invalid_input|plan_lock_invalid)$/);
  });
});

describe('signing a lock', () => {
  it('is refused if its digest does not match its content', async () => {
    const content = { ...(await samplePlanLock()), name: 'other' };
    const reply = await bench.call('POST', LOCKS, { content });
    expect([reply.status, reply.code]).toEqual([422, 'plan_lock_invalid']);
  });

  it.each([
    ['a pattern', [sampleSealedStep({ hosts: ['*.example.test'] })]],
    ['the port 443', [sampleSealedStep({ hosts: ['api.example.test:443'] })]],
    ['the port 80', [sampleSealedStep({ hosts: ['api.example.test:80'] })]],
    ['an address', [sampleSealedStep({ hosts: ['127.0.0.1'] })]],
    ['an upper-case host', [sampleSealedStep({ hosts: ['API.example.test'] })]],
    ['an effect without a host', [sampleSealedStep({ hosts: [] })]],
    ['two steps with one id', [sampleSealedStep(), sampleSealedStep()]],
    ['no step', []],
  ])('is refused with %s', async (_what, steps) => {
    const reply = await bench.call('POST', LOCKS, { content: await samplePlanLock(steps) });
    expect([reply.status, reply.code]).toEqual([400, 'invalid_input']);
  });
});

describe('a step scope', () => {
  it("has its step's effect and hosts from the lock, and its reach is recorded once the step runs", async () => {
    const id = await planSession(await freezePlan());
    const reply = await scopeFor(id);
    expect(reply.status).toBe(201);
    const scope = stepScopeReply.parse(reply.body);
    expect(scope).toMatchObject({
      hosts: ['api.example.test'],
      effect: 'read',
      expires_at: '2026-01-02T03:05:05.678Z',
    });
    expect(bench.sessions.authenticate(id, scope.token)?.reach?.stepId).toBe('fetch');
    expect(bench.sink.events).toEqual([]);
    expect((await reportStart(id, { scope_id: scope.scope_id })).status).toBe(204);
    await bench.call('DELETE', `${SCOPES}/${scope.scope_id}`);
    expect(bench.sink.events).toEqual([
      {
        type: 'flightplan.launch.reach',
        session_id: id,
        actor: 'session',
        data: {
          'svc.step.id': 'fetch',
          'svc.reach.effect': 'read',
          'svc.reach.hosts': ['api.example.test'],
          'svc.reach.enforced': true,
          'svc.reach.egress': 'open',
        },
      },
    ]);
  });

  it('acts as the account that its step names, and hands out its placeholder alone', async () => {
    bench.bindings = [account('user/home'), account('user/work')];
    const work = sampleSealedStep({ credential: 'vault://user/work' });
    const id = await planSession(await freezePlan([work, sampleSealedStep({ id: 'any' })]));
    const scope = stepScopeReply.parse((await scopeFor(id)).body);
    expect(scope.sentinels).toEqual([{ env: 'TOKEN', value: 'placeholder-of-user/work' }]);
    expect(bench.sessions.authenticate(id, scope.token)?.choice?.decisions).toEqual([
      { pattern: 'api.example.test', owner: 'personal', paths: ['user/work'], by: 'option' },
    ]);
    const any = stepScopeReply.parse((await scopeFor(id, 'any')).body);
    expect(any.sentinels).toEqual([{ env: 'TOKEN', value: 'placeholder-of-user/home' }]);
    expect(bench.sessions.authenticate(id, any.token)?.choice).toBeNull();
  });

  it.each<[string, HostBinding[]]>([
    ['nowhere', [account('user/home')]],
    ['only at another host', [account('user/home'), account('user/work', 'other.example.test')]],
    ['only below a host of the step', [account('user/home'), account('user/work', 'a.api.example.test')]],
  ])('is refused if the credential of its step is bound %s, so the step uses no other account', async (_, bindings) => {
    bench.bindings = bindings;
    const id = await planSession(await freezePlan([sampleSealedStep({ credential: 'vault://user/work' })]));
    expect(await scopeFor(id)).toMatchObject({ status: 503, code: 'credential_unavailable' });
  });

  it('accepts no hosts from the caller', async () => {
    const id = await planSession(await freezePlan());
    for (const more of [{ hosts: ['evil.example'] }, { effect: 'write' }, { timeout_seconds: 9 }]) {
      const reply = await bench.call('POST', SCOPES, { session_id: id, step_id: 'fetch', ...more });
      expect(reply.code).toBe('invalid_input');
    }
    expect(bench.sink.events).toEqual([]);
  });

  it('is not a token of the local API', async () => {
    const id = await planSession(await freezePlan());
    const token = String((await scopeFor(id)).body['token']);
    for (const path of ['/v1/health', SESSIONS, '/metrics']) {
      expect((await bench.call('GET', path, undefined, token)).code).toBe('unauthenticated');
    }
    expect((await bench.call('POST', SCOPES, { session_id: id, step_id: 'fetch' }, token)).code).toBe(
      'unauthenticated',
    );
  });

  it('is refused for a step that the lock does not have, or has without hosts', async () => {
    const { effect: _none, ...offline } = sampleSealedStep({ id: 'sort', hosts: [] });
    const id = await planSession(await freezePlan([sampleSealedStep(), offline]));
    expect(await scopeFor(id, 'other')).toMatchObject({ status: 404, code: 'step_not_in_lock' });
    expect(await scopeFor(id, '__proto__')).toMatchObject({ status: 404, code: 'step_not_in_lock' });
    expect(await scopeFor(id, 'sort')).toMatchObject({ status: 409, code: 'step_without_reach' });
    expect(bench.sink.events).toEqual([]);
  });

  it('is refused for a session that does not exist, has ended, or has no plan', async () => {
    const { id: plain } = await bench.createSession();
    expect((await scopeFor(plain)).code).toBe('session_without_plan');
    expect((await scopeFor(`ses_${'0'.repeat(26)}`)).code).toBe('not_found');
    expect((await scopeFor('../x')).code).toBe('invalid_input');
    const id = await planSession(await freezePlan());
    await bench.sessions.end(id);
    expect((await scopeFor(id)).code).toBe('not_found');
  });

  it('is refused if its reach cannot be recorded', async () => {
    const id = await planSession(await freezePlan());
    bench.sink.accepting = false;
    expect((await scopeFor(id)).code).toBe('audit_unavailable');
  });

  it('opens nothing once it is revoked', async () => {
    const id = await planSession(await freezePlan());
    const scope = stepScopeReply.parse((await scopeFor(id)).body);
    expect((await bench.call('DELETE', `${SCOPES}/${scope.scope_id}`)).status).toBe(204);
    expect(bench.sessions.authenticate(id, scope.token)).toBeNull();
    expect((await bench.call('DELETE', `${SCOPES}/${scope.scope_id}`)).code).toBe('not_found');
    expect((await bench.call('DELETE', `${SCOPES}/..%2fsessions`)).code).toBe('not_found');
  });
});

describe('the start of a step', () => {
  it('is enforced only if the step ran, under an open scope of its own', async () => {
    const { effect: _none, ...offline } = sampleSealedStep({ id: 'sort', hosts: [] });
    const steps = [sampleSealedStep(), sampleSealedStep({ id: 'other' }), offline];
    const id = await planSession(await freezePlan(steps));
    const own = stepScopeReply.parse((await scopeFor(id)).body).scope_id;
    const others = stepScopeReply.parse((await scopeFor(id, 'other')).body).scope_id;
    const elsewhere = await planSession(await freezePlan());
    const foreign = stepScopeReply.parse((await scopeFor(elsewhere)).body).scope_id;
    await reportStart(id);
    await reportStart(id, { scope_id: others });
    await reportStart(id, { scope_id: foreign });
    await reportStart(id, { scope_id: own, began: false });
    await reportStart(id, { scope_id: own });
    await bench.call('DELETE', `${SCOPES}/${own}`);
    await reportStart(id, { scope_id: own });
    expect(reaches()).toEqual([
      [false, null],
      [false, null],
      [false, null],
      [false, 'step_not_started'],
      [true, null],
      [false, null],
    ]);
  });

  it('of a step without hosts is recorded too, with the state of its network', async () => {
    const { effect: _none, ...offline } = sampleSealedStep({ id: 'sort', hosts: [] });
    const id = await planSession(await freezePlan([offline]));
    expect((await reportStart(id, { step_id: 'sort' })).status).toBe(204);
    expect(bench.sink.events[0]?.data).toEqual({
      'svc.step.id': 'sort',
      'svc.reach.hosts': [],
      'svc.reach.enforced': false,
      'svc.reach.egress': 'open',
    });
  });

  it.each([
    ['revoked', async (_id: string, scopeId: string) => bench.call('DELETE', `${SCOPES}/${scopeId}`)],
    ['ended with its session', async (id: string) => bench.sessions.end(id)],
  ])('that nobody reports is recorded as such when the scope is %s', async (_how, end) => {
    const id = await planSession(await freezePlan());
    const scope = stepScopeReply.parse((await scopeFor(id)).body);
    await end(id, scope.scope_id);
    expect(reaches()).toEqual([[false, 'step_start_unknown']]);
  });

  it('accepts no reach and no verdict from the caller, and only steps of the lock', async () => {
    const id = await planSession(await freezePlan());
    for (const more of [{ hosts: ['evil.example'] }, { effect: 'write' }, { enforced: true }]) {
      expect((await reportStart(id, more)).code).toBe('invalid_input');
    }
    expect(await reportStart(id, { step_id: 'x' })).toMatchObject({ status: 404, code: 'step_not_in_lock' });
    const { id: plain } = await bench.createSession();
    expect((await reportStart(plain)).code).toBe('session_without_plan');
    bench.sink.accepting = false;
    expect((await reportStart(id)).code).toBe('audit_unavailable');
    expect(bench.sink.events).toEqual([]);
  });
});

const step = (id: string, scopes?: string[]) => sampleSealedStep({ id, ...(scopes && { scopes }) });

describe('a step that narrows a secret', () => {
  const SCOPE = 'vault://ci/github:repositories=website';
  let minted: (string | null)[];
  let isRefused: boolean;
  beforeEach(() => {
    minted = [];
    isRefused = false;
    bench.scopedSources = (id) => ({
      resolve: () => {
        minted.push(id);
        const message =
          'vault://ci/github cannot be narrowed: repositories: "website" is not one of those of the source';
        return isRefused
          ? err(refusal('credential_unavailable', message))
          : ok({ secret: new Secret('narrow'), version: '1' });
      },
      isStored: () => true,
      findStoredVersion: () => null,
    });
  });

  it('has values of its own, minted when its scope opens and gone when it ends', async () => {
    const id = await planSession(await freezePlan([step('fetch', [SCOPE]), step('other', [SCOPE]), step('wide')]));
    const opened = await Promise.all(['fetch', 'other'].map((each) => scopeFor(id, each)));
    const scopeIds = opened.map(({ body }) => String(body['scope_id']));
    expect(new Set(minted)).toEqual(new Set(scopeIds));
    const live = scopeIds.map((each) => bench.sessions.scope(each));
    expect(live.map((scope) => [scope?.credentialsId, scope?.scopes])).toEqual(
      scopeIds.map((each) => [each, [{ path: 'ci/github', narrowing: { repositories: ['website'] } }]]),
    );
    const { body } = await scopeFor(id, 'wide');
    expect(bench.sessions.scope(String(body['scope_id']))?.credentialsId).toBe(id);
    let ended = 0;
    live[0]?.onEnd(() => (ended += 1));
    expect((await bench.call('DELETE', `${SCOPES}/${scopeIds[0]}`)).status).toBe(204);
    expect([ended, bench.sessions.scope(scopeIds[0] ?? '')]).toEqual([1, null]);
    expect(bench.sessions.scope(scopeIds[1] ?? '')).not.toBeNull();
  });

  it('gets no scope if its secret cannot be narrowed, or if nothing uses it', async () => {
    const id = await planSession(await freezePlan([step('fetch', [SCOPE])]));
    isRefused = true;
    const refused = await scopeFor(id);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('is not one of those of the source')]);
    expect(bench.sessions.scope(minted[0] ?? '')).toBeNull();
    bench.isStored = false;
    const unused = await scopeFor(id);
    expect([unused.status, unused.text]).toEqual([400, expect.stringContaining('no binding and no connector')]);
  });

  it('is not one whose lock was changed to narrow nothing', async () => {
    const lock = tamper(await freezePlan([step('fetch', [SCOPE])]), (p) => (p['steps'] = [step('fetch')]));
    const reply = await bench.call('POST', SESSIONS, { sandbox: sandboxInput(), plan: { lock } });
    expect([reply.status, reply.code]).toEqual([422, 'plan_lock_invalid']);
  });
});
