import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { FakeDocker, imageReply } from '../../sandbox/launch/testing/fake_docker.ts';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { err, ok } from '../../shared/model/result.ts';
import { CurrentMask } from './current_mask.ts';
import { LocalLaunch } from './local_launch.ts';
import type { ProcessGuard } from './process_guard.ts';
import type { ProcessRecords } from '../../machine/process_records.ts';
import type { PackageStore } from '../packages/package_store.ts';
import type { StartSlot } from './start_slots.ts';
import { StderrRing } from './stderr_ring.ts';

const CONSENTED = `sha256:${'a'.repeat(64)}`;
const MOVED = `sha256:${'b'.repeat(64)}`;
const own = localServer({ command: ['docker', 'run', '-i', '--rm', '--pull=always', 'acme/mcp:1.2', 'serve'] });

let home: string;
let docker: FakeDocker;
let launch: LocalLaunch;

function openLaunch(env: Readonly<Record<string, string>>, endpoint: string, packages: object = {}): LocalLaunch {
  const doNothing = { add: () => undefined, remove: () => undefined, watchEngine: () => undefined };
  return new LocalLaunch({
    mcpHome: home,
    env,
    gatewayMark: 'abc',
    guard: z.custom<ProcessGuard>().parse(doNothing),
    records: z.custom<ProcessRecords>().parse(doNothing),
    images: {},
    packages: z.custom<PackageStore>().parse(packages),
    findEngine: () => Promise.resolve(ok(endpoint)),
    sessions: null,
  });
}

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-launch-'));
  docker = new FakeDocker();
  await docker.listen();
  launch = openLaunch(docker.env(), docker.endpoint);
});
afterEach(async () => {
  await docker.remove();
  rmSync(home, { recursive: true, force: true });
});

/** An engine in which the tag names another image by now. */
function useEngine(ids: readonly string[]): void {
  for (const name of [...ids, 'acme/mcp:1.2']) {
    const id = name.startsWith('sha256:') ? name : MOVED;
    docker.replies(`GET /images/${name}/json`, 200, imageReply(id));
  }
}

async function start(image: string | null, env: Readonly<Record<string, string>> = own.env) {
  const { command } = own;
  const filled = { values: { command, env, url: null, headers: {} }, mask: new CurrentMask([], null), bearer: null };
  const signal = new AbortController().signal;
  const started = await launch.start({ server: own, image, stderr: new StderrRing(), signal }, filled);
  if (started.ok) await started.value.ended;
  const run = docker.commands().find(([word]) => word === 'run') ?? null;
  return { started, run };
}

describe("a server's own docker run", () => {
  test('starts exactly the image that was consented to, and fetches none', async () => {
    useEngine([CONSENTED, MOVED]);
    const { started, run } = await start(CONSENTED);
    expect(started.ok).toBe(true);
    expect(run?.slice(-5)).toEqual(['--rm', '--pull=always', '--pull=never', CONSENTED, 'serve']);
  });

  test('does not start if that image is gone, even if the tag names another', async () => {
    useEngine([MOVED]);
    const { started, run } = await start(CONSENTED);
    const message = `the engine does not have the image that was consented to any more (${CONSENTED}): svc mcp consent demo`;
    expect([started, run]).toEqual([{ ok: false, error: { reason: 'consent_needed', message } }, null]);
  });

  test('does not start without a consented image', async () => {
    useEngine([MOVED]);
    const { started, run } = await start(null);
    expect(started).toMatchObject({ ok: false, error: { reason: 'consent_needed' } });
    expect(run).toBeNull();
  });
});

test("podman gets its caller's folders, and of the server only its own variables", async () => {
  const podman = new FakeDocker('podman').on('image', `echo '${JSON.stringify(imageReply(CONSENTED))}'`);
  const caller = { CONTAINERS_CONF: '/etc/own.conf', XDG_RUNTIME_DIR: '/run/user/7', SVC_VAULT_KEY: 'planted' };
  launch = openLaunch({ PATH: `${podman.folder}:/usr/bin:/bin`, HOME: '/home/ada', ...caller }, 'podman:/store');
  const { started } = await start(CONSENTED, { TOKEN: 'of the server' });
  expect(started.ok).toBe(true);
  const run = podman.uses().find(({ args }) => args[0] === 'run');
  expect(run?.args.slice(1, 2)).toEqual(['--http-proxy=false']);
  expect(run?.args.slice(-2)).toEqual([CONSENTED, 'serve']);
  const { SVC_VAULT_KEY: _, ...folders } = caller;
  expect(run?.env).toMatchObject({ ...folders, HOME: '/home/ada', TOKEN: 'of the server' });
  for (const name of ['SVC_VAULT_KEY', 'XDG_DATA_HOME', 'XDG_CONFIG_HOME']) expect(run?.env).not.toHaveProperty(name);
  await podman.remove();
});

test('an install does not hold the slot of a start', async () => {
  const steps: string[] = [];
  const packages = {
    find: () => null,
    install: () => {
      steps.push('install');
      return Promise.resolve(err('no registry in this test'));
    },
  };
  launch = openLaunch(docker.env(), docker.endpoint, packages);
  const slot: StartSlot = {
    async leave(work) {
      steps.push('leave');
      const done = await work();
      steps.push('return');
      return done;
    },
  };
  const server = localServer({ command: ['npx', '-y', 'demo-mcp'], isolation: 'process' });
  const values = { command: server.command, env: {}, url: null, headers: {} };
  const filled = { values, mask: new CurrentMask([], null), bearer: null };
  const { signal } = new AbortController();
  const started = await launch.start({ server, slot, stderr: new StderrRing(), signal }, filled);
  expect([started.ok, steps]).toEqual([false, ['leave', 'install', 'return']]);
});
