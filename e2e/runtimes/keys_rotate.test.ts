import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keySet } from '../../shared/wire/tokens.ts';
import { SVC } from '../support/program.ts';
import { startNodeAt } from './programs.ts';

let home = '';
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-keys-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

function svc(args: readonly string[], settings: Record<string, string> = {}) {
  const { PATH } = process.env;
  return new Promise<{ exitCode: number | null; stdout: string; stderr: string }>((done) => {
    const options = { env: { PATH, HOME: home, SVC_HOME: home, ...settings } };
    const child = execFile(SVC, args, options, (_, stdout, stderr) =>
      done({ exitCode: child.exitCode, stdout, stderr }),
    );
  });
}

/** The ids of the keys that a control plane publishes. */
async function listPublishedKeys(url: string): Promise<string[]> {
  const reply = await fetch(`${url}/.well-known/jwks.json`);
  return keySet.parse(await reply.json()).keys.map(({ kid }) => kid);
}

test('svc keys rotate gives a serving control plane a new key, and keeps the old one for its tokens', async () => {
  const before = await startNodeAt(home);
  const [first] = await listPublishedKeys(before.url);
  const rotated = await svc(['keys', 'rotate', '--json']);
  expect([rotated.exitCode, rotated.stderr]).toEqual([0, '']);
  const { key_id: id } = JSON.parse(rotated.stdout);
  expect(JSON.parse(rotated.stdout)).toEqual({ key_id: id, published: [first, id] });
  await before.stop();
  const after = await startNodeAt(home);
  expect(await listPublishedKeys(after.url)).toEqual([first, id]);
  await after.stop();
  const dropped = await svc(['keys', 'rotate', '--at-once']);
  expect(dropped.stdout).toMatch(/^access tokens are signed with \S+ from now on\n$/);
});

test('svc keys rotate needs the database and its vault key', async () => {
  expect(await svc(['keys', 'rotate'])).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no database') });
  await (await startNodeAt(home)).stop();
  const wrong = await svc(['keys', 'rotate'], { SVC_VAULT_KEY: randomBytes(32).toString('base64url') });
  expect(wrong).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('wrong vault key') });
});
