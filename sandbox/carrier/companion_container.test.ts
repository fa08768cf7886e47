import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { ContainerSpec } from '../engine/container_runtime.ts';
import { ok } from '../../shared/model/result.ts';
import { type CompanionEngine, startCompanion } from './companion_container.ts';
import { listNodeFiles } from './node_files.ts';

const SESSION = 'ses_01';
const SOCKETS = '/home/person/.svc/sessions/ses_01/companion';
const COMPANION = {
  sessionId: SESSION,
  labels: { 'svc.session': SESSION },
  containerId: 'c'.repeat(64),
  socketFolder: SOCKETS,
  ports: [7421],
  user: '1000:1000',
};

function unused(): never {
  throw new Error('not used');
}

async function specOf(): Promise<ContainerSpec> {
  const created: ContainerSpec[] = [];
  const engine: CompanionEngine = {
    create: (spec) => {
      created.push(spec);
      return Promise.resolve(ok('id'));
    },
    startDetached: () => Promise.resolve(ok(undefined)),
    inspect: unused,
    remove: unused,
    makeEmptyImage: unused,
  };
  expect(await startCompanion(engine, COMPANION, listNodeFiles())).toEqual({ ok: true, value: { isNew: true } });
  const [spec] = created;
  if (spec === undefined) throw new Error('nothing was created');
  return spec;
}

it('has the network of the one container, and no right beyond that of its user', async () => {
  expect(await specOf()).toMatchObject({
    network: { container: COMPANION.containerId },
    user: '1000:1000',
    hardening: { capabilities: [], seccompProfile: expect.stringMatching(/agent_seccomp\.json$/) },
    // Without folders in memory everything is read-only.
    confinement: { tmpfs: [] },
    tty: false,
    stdin: false,
  });
});

it("consists of the sockets, svc's two files, and what Node needs: all read-only, of no image and without a secret", async () => {
  const { mounts, env, image, volumes } = await specOf();
  expect(mounts.every(({ readOnly }) => readOnly)).toBe(true);
  const ours = mounts.filter(({ target }) => target.startsWith('/run/svc/'));
  expect(ours.map(({ target }) => target).toSorted()).toEqual([
    '/run/svc/carry.cjs',
    '/run/svc/companion.cjs',
    '/run/svc/node',
    '/run/svc/sockets',
  ]);
  expect(ours.find(({ target }) => target === '/run/svc/sockets')?.source).toBe(SOCKETS);
  const libraries = mounts.filter((mount) => !ours.includes(mount));
  expect(libraries.filter(({ target }) => !/\.so(\.|$)/.test(target))).toEqual([]);
  expect([Object.keys(env), image, volumes]).toEqual([['LD_LIBRARY_PATH'], 'svc-companion:empty', undefined]);
});

it("knows this Node's files by their names and where they are", () => {
  const { program, libraries, libraryFolders } = listNodeFiles();
  expect(program).toBe(process.execPath);
  expect(libraries.length > 0 || !readFileSync('/proc/self/maps', 'utf8').includes('.so')).toBe(true);
  for (const { source, target } of libraries)
    expect([existsSync(source), realpathSync(target)]).toEqual([true, source]);
  expect(libraries.filter(({ target }) => !libraryFolders.includes(target.replace(/\/[^/]+$/, '')))).toEqual([]);
});
