import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ONLY_FULL, sampleOf } from '../support/full_counts.ts';
import { listening, refusalOf, runDeno, runNode, startDenoAt, startNodeAt, until } from './programs.ts';

let parent = '';
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'svc-files-'));
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

describe.each([
  ['Node', startNodeAt],
  ['Deno', startDenoAt],
])('the home of a control worker on %s', (_, startAt) => {
  test('is private while the worker runs, with all its files', async () => {
    const home = join(parent, 'home');
    const control = await startAt(home);
    const headers = { authorization: `Bearer ${control.localKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ path: 'user/demo', value: 'v' });
    expect((await fetch(`${control.url}/v1/secrets`, { method: 'POST', headers, body })).status).toBe(201);
    const files = await readdir(home);
    expect(files).toEqual(expect.arrayContaining(['control.db', 'control.db-wal', 'local.key', 'vault.key']));
    expect(await modeOf(home)).toBe(0o700);
    for (const file of files) expect([file, await modeOf(join(home, file))]).toEqual([file, 0o600]);
    await control.stop();
  });

  test.each(startAt === startNodeAt ? [''] : ONLY_FULL)(
    'removes the access of others to a database that was open to them%s',
    async () => {
      await writeFile(join(parent, 'control.db'), '', { mode: 0o644 });
      const control = await startAt(parent);
      expect(await modeOf(join(parent, 'control.db'))).toBe(0o600);
      await control.stop();
    },
  );
});

/** All but Deno's own cache. */
const listCreated = async (folder: string) => (await readdir(folder)).filter((name) => name !== '.cache');
/** The message does not quote the value. */
const NO_LOCAL_KEY =
  'SVC_LOCAL_KEY is not a local key: set it to svc_local_ and 43 characters (32 random bytes as base64url)';
const newKey = () => randomBytes(32).toString('base64url');

describe.each([
  ['Node', runNode],
  ['Deno', (flags: readonly string[], settings: Record<string, string>) => runDeno(flags, settings, ['--allow-write'])],
])('a control worker on %s without a home', (_, runWith) => {
  test('refuses to start hosted without a database, and creates nothing', async () => {
    const refusal = await refusalOf(runWith([], { HOME: parent, SVC_VAULT_KEY: newKey() }));
    const message = 'no database: set SVC_DATABASE_URL, or give --home';
    expect(refusal).toMatchObject({ exitCode: 2, log: { code: 'invalid_setting', message } });
    expect(await listCreated(parent)).toEqual([]);
  });

  test.each(sampleOf(['svc_local_short', '', newKey()], 1))(
    'refuses a local key that is not one (%#), and creates nothing',
    async (key) => {
      const settings = {
        HOME: parent,
        SVC_VAULT_KEY: newKey(),
        SVC_DATABASE_URL: `file:${parent}/x.db`,
        SVC_LOCAL_KEY: key,
      };
      const { exitCode, log } = await refusalOf(runWith(['--local'], settings));
      expect({ exitCode, log }).toMatchObject({ exitCode: 2, log: { code: 'invalid_setting', message: NO_LOCAL_KEY } });
      expect(await listCreated(parent)).toEqual([]);
    },
  );
});

test.each(sampleOf(['../home/x%20y.db', 'x.db', 'data/x.db'], 1))(
  'creates a database in a home that does not exist yet: file:HOME/%s',
  async (name) => {
    const home = join(parent, 'home');
    const settings = { SVC_HOME: home, SVC_VAULT_KEY: newKey(), SVC_DATABASE_URL: `file:${home}/${name}` };
    const program = runNode([], settings);
    await until(program, listening(program));
    const file = join(home, decodeURIComponent(name));
    expect(await Promise.all([home, join(file, '..'), file].map(modeOf))).toEqual([0o700, 0o700, 0o600]);
    await program.stop();
  },
);
