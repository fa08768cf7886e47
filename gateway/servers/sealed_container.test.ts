import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { ContainerRuntime, ContainerSpec } from '../../sandbox/engine/container_runtime.ts';
import { createArguments } from '../../sandbox/engine/docker_arguments.ts';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { ServerSessions } from '../gateway_ports.ts';
import { createSealedContainer, type SealedRun } from './sealed_container.ts';

const ID = 'c'.repeat(64);
const IMAGE = 'sha256:abc';

let home: string;
let folder: string;
/** What happened, in order. */
let steps: string[];
let specs: ContainerSpec[];
let sessions: ServerSessions;
let runtime: ContainerRuntime;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-sealed-'));
  folder = join(home, 'mcp', 'packages', '1.2.aa');
  mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true, mode: 0o700 });
  mkdirSync(join(folder, 'node_modules', 'box'), { mode: 0o700 });
  writeFileSync(join(folder, 'node_modules', 'box', 'cli.js'), '', { mode: 0o700 });
  writeFileSync(join(folder, 'node_modules', 'box', 'data.json'), '', { mode: 0o600 });
  symlinkSync('../box/cli.js', join(folder, 'node_modules', '.bin', 'box'));
  steps = [];
  specs = [];
  sessions = {
    open: ({ name }, place) => {
      steps.push(`open ${name} ${Object.values(place).join(' ')}`);
      const sentinels = [
        { env: 'API_TOKEN', value: 'placeholder-of-the-api' },
        { env: 'OWN', value: 'placeholder-of-own' },
      ];
      const proxyUrl = 'http://ses_1:token-1@127.0.0.1:7421';
      return Promise.resolve(ok({ sessionId: 'ses_1', proxyUrl, caBundlePath: `${home}/bundle.pem`, sentinels }));
    },
    recordContainer: (id, container) => (
      steps.push(`record ${id} ${container.length}`),
      Promise.resolve(ok(undefined))
    ),
    openListener: (id, pid) => (steps.push(`listen ${id} ${pid}`), Promise.resolve(ok(undefined))),
    end: (id) => (steps.push(`end ${id}`), Promise.resolve()),
  };
  const pids = [null, null, 77];
  runtime = z.custom<ContainerRuntime>().parse({
    endpoint: 'unix:///run/docker.sock',
    inspectImage: () => Promise.resolve(ok({ id: IMAGE })),
    create: (spec: ContainerSpec) => (specs.push(spec), steps.push('create'), Promise.resolve(ok(ID))),
    pidOf: () => Promise.resolve(ok(pids.shift() ?? null)),
    remove: () => (steps.push('remove'), Promise.resolve(ok(undefined))),
  });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const runOf = (more: Partial<SealedRun> = {}): SealedRun => ({
  server: localServer({ name: 'box' }),
  image: 'node:24-slim',
  command: [join(folder, 'node_modules', '.bin', 'box'), '--flag', 'a b'],
  packageFolder: folder,
  env: { OWN: 'value-of-own', MODE: 'quiet' },
  marks: { gatewayMark: 'abc', runId: 'abc.1', endpoint: 'unix:///run/docker.sock' },
  home,
  ...more,
});

const mode = (path: string) => statSync(join(folder, path)).mode & 0o777;
const inspectImage = () =>
  Promise.resolve(
    err({
      reason: 'image_missing' as const,
      message: 'the engine has no image "x"',
      fixes: ['Fetch it: docker pull x'],
    }),
  );

async function created(run = runOf()) {
  const container = await createSealedContainer(runtime, sessions, run);
  if (!container.ok) throw new Error(container.error);
  const [spec] = specs;
  if (spec === undefined) throw new Error('nothing was created');
  return { container: container.value, spec };
}

describe('the container of a server', () => {
  test('has no network, no rights, no writable place but memory, and two read-only mounts', async () => {
    const { spec } = await created();
    const line = createArguments(spec, 'docker').join(' ');
    for (const part of [
      '--network none',
      '--read-only',
      '--cap-drop ALL',
      'no-new-privileges',
      '--rm',
      '--memory 1024m',
    ])
      expect(line).toContain(part);
    expect(line).not.toMatch(/--cap-add|--privileged/);
    expect(spec).toMatchObject({ image: IMAGE, user: '65532:65532', stdin: true, tty: false });
    expect(spec.mounts).toEqual([
      { source: `${home}/bundle.pem`, target: '/etc/svc/proxy/bundle.pem', readOnly: true },
      { source: folder, target: '/opt/svc/package', readOnly: true },
    ]);
    expect(spec.labels).toMatchObject({ 'svc.mcp.gateway': 'abc', 'svc.mcp.run': 'abc.1', 'svc.session': 'ses_1' });
    expect(line).not.toContain('value-of-own');
  });

  test('has the proxy, its certificates, its own values before placeholders, and no way to the API', async () => {
    const { spec } = await created(
      runOf({ env: { OWN: 'value', HTTPS_PROXY: 'http://evil.test', SVC_X: 'x', PATH: '/evil' } }),
    );
    expect(spec.env).toMatchObject({
      OWN: 'value',
      API_TOKEN: 'placeholder-of-the-api',
      HTTPS_PROXY: 'http://ses_1:token-1@127.0.0.1:7421',
      NODE_EXTRA_CA_CERTS: '/etc/svc/proxy/bundle.pem',
      SSL_CERT_FILE: '/etc/svc/proxy/bundle.pem',
      NODE_USE_ENV_PROXY: '1',
      HOME: '/home/mcp',
    });
    expect(Object.keys(spec.env).filter((name) => /^(SVC_|PATH$)/.test(name))).toEqual([]);
  });

  test("has its package's files readable for its user, the folder last", async () => {
    await created();
    expect(mode('')).toBe(0o755);
    expect(mode('node_modules/box/cli.js') & 0o555).toBe(0o555);
    expect(mode('node_modules/box/data.json')).toBe(0o644);
    expect(mode('node_modules/.bin')).toBe(0o755);
  });

  test('starts its program only when the proxy is open, with every byte that follows', async () => {
    const { spec } = await created(runOf({ command: ['cat'], packageFolder: null }));
    const child = spawn(spec.entrypoint ?? '', [...spec.command], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.write('\n{"first":1}\n{"second":2}\n');
    child.stdin.end('rest');
    expect(await text(child.stdout)).toBe('{"first":1}\n{"second":2}\nrest');
  });

  test.each([
    [
      'its program finds those of the package last',
      'printf "%s" "$PATH"',
      `${process.env['PATH']}:/opt/svc/package/node_modules/.bin`,
    ],
    ['it keeps its arguments', 'printf "%s|" "$@"', 'a b||$HOME|'],
  ])('%s', async (_, script, expected) => {
    const { spec } = await created(runOf({ command: ['sh', '-c', script, 'sh', 'a b', '', '$HOME'] }));
    const child = spawn(spec.entrypoint ?? '', [...spec.command], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end('\n');
    expect(await text(child.stdout)).toBe(expected);
  });

  test('ends at once if nobody opens its proxy', async () => {
    const { spec } = await created(runOf({ command: ['echo', 'ran'] }));
    const child = spawn(spec.entrypoint ?? '', [...spec.command], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end();
    expect(await text(child.stdout)).toBe('');
  });

  test('runs the program of its package where the container has it', async () => {
    const { spec } = await created();
    expect(spec.command.slice(-3)).toEqual(['/opt/svc/package/node_modules/.bin/box', '--flag', 'a b']);
  });
});

describe('a run', () => {
  test('records the container before it starts, and listens before the program begins', async () => {
    const { container } = await created();
    expect(container.command.args).toEqual(expect.arrayContaining(['start', '--attach', '--interactive', ID]));
    const stdin = new PassThrough();
    expect(await container.begin(stdin, () => false)).toEqual({ ok: true, value: undefined });
    expect(stdin.read()?.toString()).toBe('\n');
    await container.end();
    const engine = 'unix:///run/docker.sock';
    expect(steps).toEqual([
      `open box container node:24-slim ${IMAGE} ${engine}`,
      'create',
      'record ses_1 64',
      'listen ses_1 77',
      'remove',
      'end ses_1',
    ]);
  });

  test('does not begin if the proxy does not open, or the container has ended', async () => {
    const { container } = await created();
    const stdin = new PassThrough();
    expect(await container.begin(stdin, () => true)).toMatchObject({ ok: false });
    sessions.openListener = () => Promise.resolve(err('no right to enter its network'));
    expect(await container.begin(stdin, () => false)).toEqual({ ok: false, error: 'no right to enter its network' });
    expect(stdin.read()).toBeNull();
  });

  test('leaves nothing behind if the container cannot be created or recorded', async () => {
    const failing = {
      ...runtime,
      create: () => Promise.resolve(err({ reason: 'engine_refused' as const, message: 'no room', fixes: [] })),
    };
    expect(await createSealedContainer(failing, sessions, runOf())).toEqual({ ok: false, error: 'no room' });
    expect(steps.at(-1)).toBe('end ses_1');
    sessions.recordContainer = () => Promise.resolve(err('the sidecar is gone'));
    expect(await createSealedContainer(runtime, sessions, runOf())).toEqual({
      ok: false,
      error: 'the sidecar is gone',
    });
    expect(steps.slice(-3)).toEqual(['create', 'remove', 'end ses_1']);
  });

  test('says which image is missing, and asks for no session', async () => {
    const done = await createSealedContainer({ ...runtime, inspectImage }, sessions, runOf());
    expect(done).toEqual({ ok: false, error: 'the engine has no image "x". Fetch it: docker pull x' });
    expect(steps).toEqual([]);
  });
});
