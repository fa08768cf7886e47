import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startDenoAt, startNodeAt } from './programs.ts';

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
  test('is private while the worker runs, with all that is in it', async () => {
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

  test('takes the rights of others away from a database that was open to them', async () => {
    await writeFile(join(parent, 'control.db'), '', { mode: 0o644 });
    const control = await startAt(parent);
    expect(await modeOf(join(parent, 'control.db'))).toBe(0o600);
    await control.stop();
  });
});
