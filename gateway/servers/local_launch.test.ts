import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { FakeDocker } from '../../sandbox/launch/testing/fake_docker.ts';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { ok } from '../../shared/model/result.ts';
import { CurrentMask } from './current_mask.ts';
import { LocalLaunch } from './local_launch.ts';
import type { ProcessGuard } from './process_guard.ts';
import type { ProcessRecords } from '../../machine/process_records.ts';
import type { PackageStore } from '../packages/package_store.ts';
import { StderrRing } from './stderr_ring.ts';

const CONSENTED = `sha256:${'a'.repeat(64)}`;
const MOVED = `sha256:${'b'.repeat(64)}`;
const own = localServer({ command: ['docker', 'run', '-i', '--rm', '--pull=always', 'acme/mcp:1.2', 'serve'] });

let home: string;
let docker: FakeDocker;
let launch: LocalLaunch;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-launch-'));
  docker = new FakeDocker();
  await docker.listen();
  const doNothing = { add: () => undefined, remove: () => undefined, watchEngine: () => undefined };
  launch = new LocalLaunch({
    mcpHome: home,
    env: docker.env(),
    gatewayMark: 'abc',
    guard: z.custom<ProcessGuard>().parse(doNothing),
    records: z.custom<ProcessRecords>().parse(doNothing),
    images: {},
    packages: z.custom<PackageStore>().parse({}),
    findEngine: () => Promise.resolve(ok(docker.endpoint)),
    sessions: null,
  });
});
afterEach(async () => {
  await docker.remove();
  rmSync(home, { recursive: true, force: true });
});

const imageJson = (id: string) => JSON.stringify({ Id: id, Architecture: 'amd64', Config: {} });

/** An engine in which the tag names another image by now. */
function useEngine(ids: readonly string[]): void {
  const cases = [...ids, 'acme/mcp:1.2'].map((name) => {
    return `${name}) printf '%s\\n' '${imageJson(name.startsWith('sha256:') ? name : MOVED)}' ;;`;
  });
  docker.on('image', `case $6 in\n${cases.join('\n')}\n*) echo 'No such image' >&2; exit 1 ;;\nesac`);
}

async function start(image: string | null) {
  const { command, env } = own;
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
