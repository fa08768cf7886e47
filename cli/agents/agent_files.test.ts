import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { mergeJson } from '../../sandbox/image/home/prepare_home.ts';
import { agentPath, prepareAgentFiles } from './agent_files.ts';
import { findProfile } from './agent_profiles.ts';

const PLACEHOLDER = 'sk-ant-api03-0123456789abcdefghijABCDEFGHIJ';
const LAST_20 = 'abcdefghijABCDEFGHIJ';
const root = fileURLToPath(new URL('../..', import.meta.url));

let userHome: string;
beforeEach(() => (userHome = mkdtempSync(join(tmpdir(), 'svc-agent-home-'))));
afterEach(() => rmSync(userHome, { recursive: true, force: true }));

function prepare(
  name: string,
  env: Record<string, string> = {},
  now: () => number = () => 0,
): ReturnType<typeof prepareAgentFiles> {
  const { profile } = findProfile({ root, home: '/nonexistent', uid: undefined }, name);
  const [login] = profile.logins;
  if (login === undefined) throw new Error('the profile has no login');
  return prepareAgentFiles({ env, userHome, now }, profile, login.name, PLACEHOLDER);
}
const read = (...path: string[]): unknown => JSON.parse(readFileSync(join(userHome, ...path), 'utf8'));

describe('the files of an agent', () => {
  test('get the end of the placeholder that Claude Code compares', async () => {
    expect(await prepare('claude')).toEqual([]);
    expect(read('.claude.json')).toEqual({
      hasCompletedOnboarding: true,
      customApiKeyResponses: { approved: [LAST_20] },
    });
    expect(statSync(join(userHome, '.claude.json')).mode & 0o777).toBe(0o600);
  });

  test('keep everything else, their mode, and what was approved before, and leave no copy', async () => {
    const before = { theme: 'dark', customApiKeyResponses: { approved: ['earlier'], rejected: ['no'] } };
    writeFileSync(join(userHome, '.claude.json'), JSON.stringify(before));
    chmodSync(join(userHome, '.claude.json'), 0o640);
    await prepare('claude');
    await prepare('claude');
    expect(read('.claude.json')).toEqual({
      theme: 'dark',
      hasCompletedOnboarding: true,
      customApiKeyResponses: { approved: ['earlier', LAST_20], rejected: ['no'] },
    });
    expect(statSync(join(userHome, '.claude.json')).mode & 0o777).toBe(0o640);
    expect(readdirSync(userHome)).toEqual(['.claude.json']);
  });

  test('keep what the agent writes between our reading and our writing', async () => {
    const path = join(userHome, '.claude.json');
    writeFileSync(path, JSON.stringify({ theme: 'dark' }));
    let writes = 0;
    const now = (): number => {
      if (writes < 2) writeFileSync(path, JSON.stringify({ theme: 'dark', startups: (writes += 1) }));
      return 0;
    };
    expect(await prepare('claude', {}, now)).toEqual([]);
    expect(read('.claude.json')).toMatchObject({ theme: 'dark', startups: 2, hasCompletedOnboarding: true });
    expect(readdirSync(userHome)).toEqual(['.claude.json']);
  });

  test('that change all the time are left alone, and named', async () => {
    const path = join(userHome, '.claude.json');
    let writes = 0;
    const now = (): number => {
      writeFileSync(path, JSON.stringify({ startups: (writes += 1) }));
      return 0;
    };
    expect(await prepare('claude', {}, now)).toEqual([{ path, why: 'is being changed by another program' }]);
    expect(read('.claude.json')).toEqual({ startups: writes });
  });

  test('that are no JSON are left alone, and named', async () => {
    writeFileSync(join(userHome, '.claude.json'), '{ "a": ');
    expect(await prepare('claude')).toEqual([{ path: join(userHome, '.claude.json'), why: 'is not valid JSON' }]);
    expect(readFileSync(join(userHome, '.claude.json'), 'utf8')).toBe('{ "a": ');
  });

  test('that exist are not changed where a profile only creates them', async () => {
    await prepare('codex');
    expect(read('.codex', 'auth.json')).toEqual({ auth_mode: 'apikey', OPENAI_API_KEY: PLACEHOLDER });
    writeFileSync(join(userHome, '.codex', 'auth.json'), '{"tokens":1}');
    await prepare('codex');
    expect(read('.codex', 'auth.json')).toEqual({ tokens: 1 });
  });

  test("are in the folder that the agent's own variable names", async () => {
    const folder = join(userHome, 'work');
    mkdirSync(folder);
    await prepare('claude', { CLAUDE_CONFIG_DIR: folder });
    expect(existsSync(join(userHome, '.claude.json'))).toBe(false);
    expect(read('work', '.claude.json')).toMatchObject({ hasCompletedOnboarding: true });
    expect(agentPath({ env: {}, userHome }, { path: '~/.a/b.json', moved_by: 'A_HOME' })).toBe(
      join(userHome, '.a', 'b.json'),
    );
  });
});

test('a link in a folder that a variable names is not followed, nor is another kind of file read', async () => {
  const folder = join(userHome, 'project');
  const target = join(userHome, 'package.json');
  mkdirSync(folder);
  writeFileSync(target, '{}');
  symlinkSync(target, join(folder, '.claude.json'));
  const why = 'is not a regular file';
  expect(await prepare('claude', { CLAUDE_CONFIG_DIR: folder })).toEqual([{ path: join(folder, '.claude.json'), why }]);
  expect(readFileSync(target, 'utf8')).toBe('{}');
  mkdirSync(join(userHome, '.claude.json'));
  expect(await prepare('claude')).toEqual([{ path: join(userHome, '.claude.json'), why }]);
});

test('merging reaches no prototype', () => {
  const wanted = z
    .record(z.string(), z.unknown())
    .parse(JSON.parse('{"constructor":{"y":2},"a":{"__proto__":{"x":1}}}'));
  const merged = mergeJson({}, wanted);
  expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
  expect(Object.hasOwn(merged, 'constructor')).toBe(true);
});
