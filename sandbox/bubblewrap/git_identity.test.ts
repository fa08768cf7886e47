import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { formatSettings, readGitIdentity } from './git_identity.ts';

const home = mkdtempSync(join(tmpdir(), 'svc-git-identity-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
const hasGit = spawnSync('git', ['--version']).status === 0;

test.each([
  ['', ''],
  ['user.name\nAnn\0', '[user]\n\tname = "Ann"\n'],
  ['user.name\nAnn\0user.name\nBea\0', '[user]\n\tname = "Bea"\n'],
  ['user.name\nA "b" \\ \n[core]\n\tpager = evil\0', '[user]\n\tname = "A \\"b\\" \\\\ \\n[core]\\n\\tpager = evil"\n'],
  ['credential.helper\nstore\0', ''],
])('%j is written as %j', (printed, text) => {
  expect(formatSettings(printed)).toBe(text);
});

test.skipIf(!hasGit)('name and address are read as git reads them, and nothing else', async () => {
  writeFileSync(
    join(home, '.gitconfig'),
    '[user]\n\tname = Ann "the" Example\n\temail = ann@example.test\n\tsigningkey = ABC\n' +
      '[credential]\n\thelper = store\n[url "https://token@git.example.test/"]\n\tinsteadOf = https://git.example.test/\n',
  );
  const text = await readGitIdentity({ PATH: process.env['PATH'], HOME: home });
  expect(text).toBe('[user]\n\tname = "Ann the Example"\n[user]\n\temail = "ann@example.test"\n');
  expect(await readGitIdentity({ PATH: '/usr/bin', HOME: join(home, 'nobody') })).toBe('');
});
