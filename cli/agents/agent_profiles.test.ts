import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { CliError } from '../exit_codes.ts';
import { findProfile, loadProfiles } from './agent_profiles.ts';
import { listOwnNames } from './own_names.ts';
import { LOGIN } from '../testing/login_sample.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const uid = process.getuid?.();
const MINE = {
  name: 'mine',
  title: 'My agent',
  command: 'mine',
  install: 'make install',
  tried: null,
  source: { title: 'My notes', url: 'https://example.com/' },
  logins: [],
};

const FILE = { login: 'key', write: 'merge', json: {} };

let home: string;
let file: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-agents-'));
  mkdirSync(join(home, 'agents'), { mode: 0o700 });
  file = join(home, 'agents', 'mine.yaml');
  writeFileSync(file, stringify(MINE), { mode: 0o600 });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const find = (name: string, as = uid): unknown => findProfile({ root, home, uid: as }, name);

describe("a user's own profile", () => {
  test('is found by the name of its file', () => {
    expect(find('mine')).toMatchObject({ profile: MINE, file, own: true });
    expect(listOwnNames(home)).toEqual(['mine']);
  });

  test('is refused if another user can write it', () => {
    chmodSync(file, 0o620);
    expect(() => find('mine')).toThrow('can be written by other users (mode 0620)');
    chmodSync(file, 0o602);
    expect(() => find('mine')).toThrow('can be written by other users');
  });

  test.each([
    '~/.claude/settings.json',
    '~/.cursor/mcp.json',
    '~/.mine.json',
    '~/.minestuff/a.json',
    '~/.config/other/a.json',
  ])('is refused if it writes %s, which belongs to another program', (path) => {
    writeFileSync(file, stringify({ ...MINE, logins: [LOGIN], files: [{ ...FILE, path }] }));
    expect(() => find('mine')).toThrow(`writes to ${path}: your own profile writes only to these folders`);
  });

  test('is refused if it writes a file of another program in a container', () => {
    const container = {
      package: 'mine',
      version: '1.2.3',
      files: [{ path: '~/.claude.json', write: 'merge', json: {} }],
    };
    writeFileSync(file, stringify({ ...MINE, container }));
    expect(() => find('mine')).toThrow('writes to ~/.claude.json: your own profile writes only to these folders');
  });

  test('is refused if a variable moves the file that it writes', () => {
    const path = '~/.mine/package.json';
    writeFileSync(file, stringify({ ...MINE, logins: [LOGIN], files: [{ ...FILE, path, moved_by: 'PWD' }] }));
    expect(() => find('mine')).toThrow(`writes to ${path}`);
  });

  test.each(['~/.mine/settings.json', '~/.config/mine/a/b.json'])('may write %s', (path) => {
    writeFileSync(file, stringify({ ...MINE, logins: [LOGIN], files: [{ ...FILE, path }] }));
    expect(find('mine')).toMatchObject({ profile: { files: [{ path }] } });
  });

  test('is refused if it would move the tokens of a login', () => {
    for (const path of ['~/.mine', '~/.config/mine', '~/.mine/sub']) {
      writeFileSync(file, stringify({ ...MINE, sandbox: { writes: [{ path }] } }));
      expect(find('mine')).toMatchObject({ profile: { sandbox: { writes: [{ path }] } } });
    }
    for (const shown of [{ path: '~/.claude' }, { path: '~/.mine', moved_by: 'MINE_HOME' }, { path: '~/.config' }]) {
      writeFileSync(file, stringify({ ...MINE, sandbox: { writes: [shown] } }));
      expect(() => find('mine')).toThrow(`shows ${shown.path} in the sandbox: your own profile shows only these`);
    }
    const { account } = findProfile({ root, home, uid }, 'claude').profile;
    writeFileSync(file, stringify({ ...MINE, account }));
    expect(() => find('mine')).toThrow('has "account", which only a profile of svc may have');
  });

  test('is refused if another user can write its folder', () => {
    chmodSync(join(home, 'agents'), 0o770);
    expect(() => find('mine')).toThrow(`${join(home, 'agents')} can be written by other users`);
  });

  test('is refused if it belongs to another user', () => {
    expect(() => find('mine', (uid ?? 0) + 1)).toThrow('it could send your credential elsewhere');
  });

  test('is refused as a link, also to a file of the user', () => {
    renameSync(file, join(home, 'elsewhere.yaml'));
    symlinkSync(join(home, 'elsewhere.yaml'), file);
    expect(() => find('mine')).toThrow('is a link');
  });

  test('does not take the place of a profile of the catalog', () => {
    writeFileSync(join(home, 'agents', 'claude.yaml'), stringify({ ...MINE, name: 'claude' }), { mode: 0o600 });
    expect(find('claude')).toMatchObject({ profile: { title: 'Claude Code' }, own: false });
    expect(listOwnNames(home)).toEqual(['mine']);
  });

  test.each([
    ['another name', stringify({ ...MINE, name: 'other' }), "it must be the file's name"],
    ['an unknown field', stringify({ ...MINE, hook: 'x' }), 'is no profile of an agent'],
    ['no YAML', 'a: [', 'is not YAML'],
    ['too much', `# ${'x'.repeat(70_000)}`, 'is larger than'],
  ])('is refused with %s', (_what, text, message) => {
    writeFileSync(file, text);
    expect(() => find('mine')).toThrow(message);
  });

  test('that is refused does not hide the others', () => {
    writeFileSync(file, 'a: [');
    const problems: CliError[] = [];
    const found = loadProfiles({ root, home, uid }, (problem) => problems.push(problem));
    expect(found.map(({ profile }) => profile.name)).toContain('claude');
    expect(problems).toHaveLength(1);
  });
});

test('an unknown name gets a near match', () => {
  expect(() => find('claud')).toThrow('there is no agent "claud"');
  expect(() => find('miine')).toThrow(
    expect.objectContaining({ fixes: expect.arrayContaining(['Did you mean mine?']) }),
  );
});
