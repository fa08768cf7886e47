import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import type { PlanLockPayload, SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import type { SandboxSession } from '../launch/launch_ports.ts';
import type { PlanPorts, StepScope } from './plan_ports.ts';
import { runPlan, type PlanRun } from './run_plan.ts';
import { CONTAINER_ID, FakeChild, FakeEngine } from './testing/fake_engine.ts';
import { IMAGE_ID, SIDECAR_ID } from './testing/sample_plan.ts';
import { archive } from './testing/tar_archive.ts';

const HOST = 'api.example.com';
const STEP: SealedStep = { id: 'one', command: ['true'], hosts: [], timeout_seconds: 60, mounts: [], collect: [] };
const SCOPED: SealedStep = { ...STEP, id: 'fetch', effect: 'read', hosts: [HOST] };
const SCOPE: StepScope = { scopeId: 'scp_1', token: 'svc_scope_t', hosts: [HOST], effect: 'read', sentinels: null };
const SESSION: SandboxSession = {
  sessionId: 'ses_1',
  token: null,
  proxyUrl: 'http://127.0.0.1:7421',
  listener: 'namespace',
  caPemPath: '/s/ca.pem',
  sentinels: [
    { env: 'DEMO_TOKEN', value: 'placeholder' },
    { env: 'LD_PRELOAD', value: '/home/agent/x.so' },
  ],
};

let engine: FakeEngine;
let folder: string;
let stop: AbortController;
let alarms: { ms: number; call: () => void }[];
let scope: () => ReturnType<PlanPorts['sessions']['openScope']>;
let closeFails: boolean;
let startFails: boolean;
let said: string[];
beforeEach(() => {
  engine = new FakeEngine();
  folder = mkdtempSync(join(tmpdir(), 'svc-plan-'));
  stop = new AbortController();
  alarms = [];
  scope = () => Promise.resolve(ok(SCOPE));
  closeFails = false;
  startFails = false;
  said = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function ports(): PlanPorts {
  const log = (what: string): Promise<void> => {
    engine.log.push(what);
    return Promise.resolve();
  };
  return {
    runtime: engine.runtime,
    sessions: {
      create: (wanted) => {
        engine.log.push(`session ${wanted.lock}`);
        return Promise.resolve(SESSION);
      },
      recordContainer: (_session, id) => log(`record ${id === CONTAINER_ID}`),
      openListener: (_session, pid, relay) => log(`listener ${pid} ${relay}`),
      openScope: (_session, step) => {
        engine.log.push(`scope ${step}`);
        return scope();
      },
      recordStart: (_session, { stepId, scopeId, began }) => {
        engine.log.push(`report ${stepId} ${scopeId} ${began}`);
        return startFails ? Promise.reject(new Error('the log is full')) : Promise.resolve();
      },
      closeScope: (id) => (closeFails ? Promise.reject(new Error('sidecar gone')) : log(`close ${id}`)),
      end: () => log('end'),
    },
    archiveOf: (_id, path) => {
      engine.log.push(`archive ${path}`);
      const child = new FakeChild();
      child.end(0, archive({ name: 'size.txt', content: '5' }));
      return child;
    },
    now: () => 0,
    schedule: (ms, call) => {
      const alarm = { ms, call };
      alarms.push(alarm);
      return () => void (alarms = alarms.filter((other) => other !== alarm));
    },
    pause: () => Promise.resolve(),
    stop: stop.signal,
    stdout: new PassThrough().resume(),
    stderr: new PassThrough().resume(),
    progress: (text) => said.push(text),
    warn: (text) => said.push(`warning: ${text}`),
    newSentinel: () => 's'.repeat(43),
  };
}

function planOf(steps: readonly SealedStep[], more: Partial<PlanRun> = {}): PlanRun {
  const lock: PlanLockPayload = {
    version: 1,
    name: 'nightly',
    plan_file_sha256: '',
    plan_sha256: '',
    image: { name: 'agent-tools:1', id: IMAGE_ID },
    steps: [...steps],
    lock_sha256: '',
    sidecar_id: SIDECAR_ID,
    issued_at: '',
  };
  const image = {
    imageId: IMAGE_ID,
    agentUser: 'agent',
    uid: 1000,
    home: '/home/agent',
    entry: '/b/entry',
    stepRunner: '/b/step',
  };
  const runtime = { program: 'docker', endpoint: 'unix:///run/fake.sock' } as const;
  return {
    lock,
    steps,
    session: { name: 'plan', ttlSeconds: 60, owner: null, image: lock.image, runtime, egress: 'sealed', lock: 'jws' },
    boot: { home: folder, image, egress: 'sealed', mounts: [] },
    outputFolder: () => join(folder, 'out'),
    keepGoing: false,
    beforeEnd: () => Promise.resolve(),
    ...more,
  };
}

async function run(steps: readonly SealedStep[], more: Partial<PlanRun> = {}) {
  const end = await runPlan(ports(), planOf(steps, more));
  return end.results.map(({ id, outcome, exitCode, problem }) => ({ id, outcome, exitCode, problem }));
}

/** Fires the alarm of this length. */
function ring(ms: number): void {
  const alarm = alarms.find((one) => one.ms === ms);
  if (alarm === undefined) throw new Error(`no alarm after ${ms} ms`);
  alarm.call();
}

describe('a plan', () => {
  test('runs its steps in one container, each swept and its scope closed before the next begins', async () => {
    await run([SCOPED, STEP]);
    expect(engine.log).toEqual([
      'session jws',
      'create',
      'record true',
      'start',
      'listener 4711 false',
      'scope fetch',
      'exec true',
      'report fetch scp_1 true',
      'SIGUSR1',
      'sweep',
      'close scp_1',
      'exec true',
      'report one null true',
      'SIGUSR1',
      'sweep',
      'remove',
      'end',
    ]);
  });

  test('boots the pinned image, sealed, with no token in its environment and a first process of its own', async () => {
    await run([STEP]);
    expect(engine.created).toMatchObject([
      {
        image: IMAGE_ID,
        entrypoint: '/b/entry',
        command: ['--hold'],
        network: 'none',
        user: '0',
        env: { SVC_AGENT_USER: 'agent', SVC_IMAGE_SENTINEL: 's'.repeat(43), SVC_PROXY_WAIT: '127.0.0.1:7421' },
        mounts: [{ source: '/s/ca.pem', target: '/etc/svc/proxy/ca.pem', readOnly: true }],
        hardening: { init: false },
        labels: { 'svc.session': 'ses_1' },
      },
    ]);
    expect(Object.keys(engine.created[0]?.env ?? {})).toHaveLength(3);
  });

  test('a step gets its scope as the CONNECT password, and no SVC_TOKEN', async () => {
    await run([{ ...SCOPED, command: ['curl', '$(id)'] }]);
    const [step] = engine.steps;
    expect(step?.command).toEqual(['/b/step', '--', 'curl', '$(id)']);
    expect(step?.env).toMatchObject({
      HTTPS_PROXY: 'http://ses_1:svc_scope_t@127.0.0.1:7421',
      https_proxy: 'http://ses_1:svc_scope_t@127.0.0.1:7421',
      SVC_STEP_ID: 'fetch',
      SVC_STEP_SENTINEL: 's'.repeat(43),
      SVC_IMAGE_SENTINEL: '',
      DEMO_TOKEN: 'placeholder',
    });
    expect(step?.env).not.toHaveProperty('SVC_TOKEN');
    expect(step?.env).not.toHaveProperty('LD_PRELOAD');
  });

  test('a step has the placeholders of its own scope, and none that the session has for other accounts', async () => {
    const sentinels = [
      { env: 'WORK_TOKEN', value: 'placeholder-of-work' },
      { env: 'LD_PRELOAD', value: '/home/agent/x.so' },
    ];
    scope = () => Promise.resolve(ok({ ...SCOPE, sentinels }));
    await run([SCOPED]);
    const env = engine.steps[0]?.env ?? {};
    expect(env['WORK_TOKEN']).toBe('placeholder-of-work');
    for (const name of ['DEMO_TOKEN', 'LD_PRELOAD']) expect(env).not.toHaveProperty(name);
  });

  test('a step without trust gets no scope and no proxy variables', async () => {
    await run([STEP]);
    expect(Object.keys(engine.steps[0]?.env ?? {}).toSorted()).toEqual([
      'SVC_IMAGE_SENTINEL',
      'SVC_SESSION_ID',
      'SVC_STEP_ID',
      'SVC_STEP_SENTINEL',
    ]);
    expect(engine.log.join()).not.toContain('scope');
  });

  test('says what a step reaches: once it runs, under its scope, and before that scope is closed', async () => {
    await run([SCOPED, STEP]);
    const order = engine.log.filter((line) => /^(scope|exec|report|close)/.test(line));
    expect(order).toEqual([
      'scope fetch',
      'exec true',
      'report fetch scp_1 true',
      'close scp_1',
      'exec true',
      'report one null true',
    ]);
  });

  test('says that a step never ran when the engine could not run it', async () => {
    engine.starts = () => false;
    expect(await run([SCOPED])).toMatchObject([{ outcome: 'failed', exitCode: 126 }]);
    expect(engine.log).toContain('report fetch scp_1 false');
    expect(engine.log).not.toContain('report fetch scp_1 true');
  });

  test('says nothing of a step that got no scope', async () => {
    scope = () => Promise.resolve(err('the audit log is full'));
    await run([SCOPED]);
    expect(engine.log.join()).not.toContain('report');
  });

  test('a step whose start cannot be recorded is ended, and the plan with it', async () => {
    startFails = true;
    engine.behaviour = () => undefined;
    expect(await run([SCOPED, STEP])).toMatchObject([
      { outcome: 'failed', problem: 'its start could not be recorded: the log is full' },
      { outcome: 'not_run' },
    ]);
    expect(engine.log).toContain('close scp_1');
  });

  test.each([
    ['sealed', 'step 1/2 fetch: read on api.example.com', 'step 2/2 one: no network'],
    [
      'open',
      'step 1/2 fetch: read on api.example.com by the proxy, and the open network',
      'step 2/2 one: no proxy, and the open network',
    ],
  ] as const)('tells what a step can reach with egress %s', async (egress, first, second) => {
    const plan = planOf([SCOPED, STEP]);
    await runPlan(ports(), { ...plan, boot: { ...plan.boot, egress } });
    expect(said).toEqual(expect.arrayContaining([first, second]));
  });

  test('a step that gets no scope is not run', async () => {
    scope = () => Promise.resolve(err('the audit log is full'));
    expect(await run([SCOPED, STEP])).toMatchObject([
      { id: 'fetch', outcome: 'not_run', problem: 'it got no scope, so it was not run: the audit log is full' },
      { id: 'one', outcome: 'not_run', problem: 'step fetch did not succeed' },
    ]);
    expect(engine.steps).toEqual([]);
  });

  test.each([
    ['more hosts', { hosts: [HOST, 'evil.example.com'] }],
    ['another host', { hosts: ['evil.example.com'] }],
    ['another effect', { effect: 'write' }],
  ])('a scope with %s than was sealed is closed, and the step is not run', async (_what, change) => {
    scope = () => Promise.resolve(ok({ ...SCOPE, ...change }));
    expect(await run([SCOPED])).toMatchObject([{ outcome: 'not_run' }]);
    expect(engine.steps).toEqual([]);
    expect(engine.log).toContain('close scp_1');
  });

  test('a sidecar that cannot be asked ends the plan, and everything is taken down', async () => {
    scope = () => Promise.reject(new Error('gone'));
    await expect(run([SCOPED])).rejects.toThrow('gone');
    expect(engine.log.slice(-2)).toEqual(['remove', 'end']);
  });

  test('the first step that fails ends the plan; with keepGoing the others run', async () => {
    engine.behaviour = (child, { command }) => child.end(command.includes('false') ? 3 : 0);
    const steps = [
      { ...STEP, command: ['false'] },
      { ...STEP, id: 'two' },
    ];
    expect(await run(steps)).toMatchObject([{ outcome: 'failed', exitCode: 3 }, { outcome: 'not_run' }]);
    expect(await run(steps, { keepGoing: true })).toMatchObject([{ outcome: 'failed' }, { outcome: 'done' }]);
  });

  test('a step whose time is up is swept away, and a client that stays is killed', async () => {
    engine.left = [];
    engine.behaviour = () => setImmediate(() => ring(60_000));
    expect(await run([STEP])).toMatchObject([{ outcome: 'timed_out', problem: 'it was ended after 60 s' }]);
    expect(alarms).toEqual([]);
  });

  test('the sweep at the end of the time is over before the next begins', async () => {
    engine.left = ['broken', 'broken', 'broken'];
    engine.behaviour = (child) => {
      engine.behaviour = (next) => next.end(0);
      setImmediate(() => {
        ring(60_000);
        child.end(137);
      });
    };
    expect(await run([STEP, { ...STEP, id: 'two' }], { keepGoing: true })).toMatchObject([
      { outcome: 'timed_out' },
      { outcome: 'done' },
    ]);
    const sweeps = engine.log.filter((line) => line === 'SIGUSR1' || line === 'sweep').join(' ');
    expect(sweeps).toBe('SIGUSR1 sweep sweep sweep sweep SIGUSR1 sweep SIGUSR1 sweep');
  });

  test('what cannot be ended ends the plan, also with keepGoing', async () => {
    engine.left = [1, 1, 1, 1, 1];
    const results = await run([STEP, { ...STEP, id: 'two' }], { keepGoing: true });
    expect(results).toMatchObject([
      { outcome: 'failed', exitCode: 0, problem: expect.stringContaining('not all of its processes could be ended') },
      { outcome: 'not_run', problem: 'step one left something behind' },
    ]);
    expect(engine.log.slice(-2)).toEqual(['remove', 'end']);
  });

  test('a sweep that did not work is tried again, and one that never does counts as not done', async () => {
    engine.left = ['broken', 2];
    expect(await run([STEP])).toMatchObject([{ outcome: 'done' }]);
    engine.left = ['broken', 'broken', 'broken', 'broken', 'broken'];
    expect(await run([STEP])).toMatchObject([{ outcome: 'failed' }]);
  });

  test('the next step waits until the dead of the last one are reaped, but not for ever', async () => {
    engine.left = ['dead', 'dead'];
    expect(await run([STEP, { ...STEP, id: 'two' }])).toMatchObject([{ outcome: 'done' }, { outcome: 'done' }]);
    const [first, ...rest] = engine.log.filter((line) => line === 'sweep' || line.startsWith('exec'));
    expect(first).toMatch(/^exec/);
    expect(rest.map((line) => line.split(' ')[0])).toEqual(['sweep', 'sweep', 'sweep', 'exec', 'sweep']);
    engine.left = Array.from({ length: 50 }, () => 'dead' as const);
    expect(await run([STEP])).toMatchObject([{ outcome: 'done' }]);
    expect(engine.left).toEqual([]);
  });

  test('a scope that cannot be closed ends the plan', async () => {
    closeFails = true;
    expect(await run([SCOPED, STEP], { keepGoing: true })).toMatchObject([
      { outcome: 'failed' },
      { outcome: 'not_run' },
    ]);
  });

  test('Ctrl-C ends the step, the container and the session, in that order', async () => {
    engine.behaviour = () => setImmediate(() => stop.abort());
    expect(await run([SCOPED, STEP], { keepGoing: true })).toMatchObject([
      { outcome: 'interrupted' },
      { outcome: 'not_run', problem: 'the plan was ended before it' },
    ]);
    expect(engine.log.slice(-5)).toEqual(['SIGUSR1', 'sweep', 'close scp_1', 'remove', 'end']);
  });

  test('Ctrl-C before the first step: nothing is run, and what was made is taken down', async () => {
    stop.abort();
    await expect(run([STEP])).rejects.toThrow('stopped before a step was run');
    expect(engine.log).toEqual(['session jws', 'end']);
  });

  test('a container that is not made ends the session', async () => {
    engine.createFails = true;
    await expect(run([STEP])).rejects.toThrow('no room');
    expect(engine.log).toEqual(['session jws', 'create', 'end']);
  });

  test('a container that is to be looked into is there until that is over', async () => {
    const seen: string[] = [];
    const beforeEnd = (id: string): Promise<void> => {
      seen.push(id, engine.log.at(-1) ?? '');
      return Promise.resolve();
    };
    await run([STEP], { beforeEnd });
    expect(seen).toEqual([CONTAINER_ID, 'sweep']);
    expect(engine.log.slice(-2)).toEqual(['remove', 'end']);
  });
});

describe('outputs', () => {
  const COLLECTING = { ...STEP, collect: [{ path: '/home/agent/size.txt', as: 'size' }] };

  test('are kept in the folder of the step, after its processes are gone', async () => {
    expect(await run([COLLECTING])).toMatchObject([{ outcome: 'done' }]);
    expect(readFileSync(join(folder, 'out', 'one', 'size'), 'utf8')).toBe('5');
    expect(engine.log.indexOf('archive /home/agent/size.txt')).toBeGreaterThan(engine.log.indexOf('sweep'));
  });

  test('of a step that failed are not', async () => {
    engine.behaviour = (child) => child.end(1);
    await run([COLLECTING]);
    expect(existsSync(join(folder, 'out'))).toBe(false);
  });

  test.each(['link', 'missing', 'nonsense'])('are not asked for when the path is %s', async (kind) => {
    engine.kinds = { '/home/agent/size.txt': kind };
    expect(await run([COLLECTING])).toMatchObject([{ outcome: 'failed', exitCode: 0 }]);
    expect(engine.log.join()).not.toContain('archive');
    expect(readdirSync(join(folder, 'out'))).toEqual([]);
  });

  test('are all kept, or none', async () => {
    engine.kinds = { '/home/agent/two': 'link' };
    const collect = [...COLLECTING.collect, { path: '/home/agent/two', as: 'two' }];
    await run([{ ...COLLECTING, collect }]);
    expect(readdirSync(join(folder, 'out'))).toEqual([]);
  });

  test('do not replace what is there', async () => {
    mkdirSync(join(folder, 'out', 'one'), { recursive: true });
    expect(await run([COLLECTING])).toMatchObject([
      { outcome: 'failed', problem: expect.stringContaining('is there already') },
    ]);
    expect(readdirSync(join(folder, 'out', 'one'))).toEqual([]);
  });
});
