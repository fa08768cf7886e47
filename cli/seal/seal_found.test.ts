import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeVault } from '../testing/fake_vault.ts';
import { runCli, TestHome, type RunOptions, type RunResult } from '../testing/run_cli.ts';

const GITHUB = ['ghp', 'a1B2'.repeat(9)].join('_');
const OPENAI = ['sk', 'proj', 'a1B2'.repeat(12)].join('-');
const OF_FOLDER = ['ghp', 'z9Y8'.repeat(9)].join('_');

/** The user's home directory is the state directory's in these tests; the folder is another one. */
let home: TestHome;
let folder: string;
let vault: FakeVault;
beforeEach(() => {
  home = new TestHome();
  folder = mkdtempSync(join(tmpdir(), 'svc-seal-folder-'));
  vault = new FakeVault();
});
afterEach(() => {
  home.remove();
  rmSync(folder, { recursive: true, force: true });
});

const seal = (args: readonly string[], options: RunOptions = {}): Promise<RunResult> =>
  runCli(home, ['seal', ...args], { answer: vault.answer, workingDirectory: folder, ...options });
const atTerminal = (typed: readonly string[], env: Record<string, string> = {}): Promise<RunResult> =>
  seal([], { terminal: true, typed, env });
const listChanges = ({ calls }: RunResult): readonly string[] =>
  calls.flatMap(({ method, url }) => (method === 'GET' || url.pathname === '/v1/secrets/check' ? [] : [url.pathname]));

function plant(path: string, text: string, mode = 0o600): string {
  const full = join(home.path, path);
  mkdirSync(join(full, '..'), { recursive: true });
  writeFileSync(full, text);
  chmodSync(full, mode);
  return full;
}

describe('the list', () => {
  test('names each credential of the environment and the usual files, without its value', async () => {
    plant('.config/gh/hosts.yml', `github.com:\n    oauth_token: ${GITHUB}\n`);
    writeFileSync(join(folder, '.env'), `OPENAI_API_KEY=${OPENAI}\n`);
    const run = await seal(['--json'], { env: { GH_TOKEN: GITHUB } });
    expect(run.code).toBe(0);
    const items = [
      { service: 'github', name: 'GH_TOKEN', where: 'environment', line: null },
      { service: 'github', name: 'oauth_token', where: join(home.path, '.config/gh/hosts.yml'), line: 2 },
      { service: 'openai', name: 'OPENAI_API_KEY', where: join(folder, '.env'), line: 1, origin: 'folder' },
    ];
    expect(JSON.parse(run.stdout)).toMatchObject({ items, left: [] });
    for (const value of [GITHUB, OPENAI]) expect(run.stdout + run.stderr).not.toContain(value);
    expect(listChanges(run)).toEqual([]);
  });

  test('is not stopped by values that are too large to store, or too many for one call', async () => {
    const names = 'GH_TOKEN GITLAB_TOKEN NPM_TOKEN OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY'.split(' ');
    const many = [...names, 'NODE_AUTH_TOKEN', 'LINEAR_API_KEY', 'STRIPE_API_KEY', 'SENTRY_AUTH_TOKEN'];
    const large = Object.fromEntries(many.map((name) => [name, '"'.repeat(60_000)]));
    const run = await seal(['--json'], { env: { ...large, GITHUB_TOKEN: 'é'.repeat(40_000) } });
    const items = JSON.stringify(JSON.parse(run.stdout));
    for (const name of names) expect(items).toContain(name);
    expect(items).not.toContain('GITHUB_TOKEN');
    for (const { body } of run.calls) expect(JSON.stringify(body ?? '').length).toBeLessThan(1024 * 1024);
  });

  test('says which are stored already', async () => {
    vault.values['user/github'] = GITHUB;
    const run = await seal(['--json'], { env: { GH_TOKEN: GITHUB } });
    expect(JSON.parse(run.stdout)).toMatchObject({ items: [{ stored: 'vault://user/github' }] });
  });

  test('is all there is without a terminal', async () => {
    const path = plant('.npmrc', '//npm.example.test/:_authToken=of-no-known-shape\n');
    const run = await seal([]);
    expect(run.stderr).toContain('Nothing was changed: this asks at a terminal');
    expect(listChanges(run)).toEqual([]);
    expect(readFileSync(path, 'utf8')).toContain('of-no-known-shape');
  });

  test.each([['--yes'], ['--stdin'], ['--from=HOME'], ['--as=user/x']])('does not accept %s', async (option) => {
    const run = await seal([option]);
    expect(run).toMatchObject({ code: 2, calls: [] });
  });

  test('leaves a link alone, wherever it leads, and says so', async () => {
    const elsewhere = plant('elsewhere/secret', `TOKEN=${GITHUB}\n`);
    symlinkSync(elsewhere, join(folder, '.env'));
    symlinkSync(join(home.path, 'elsewhere'), join(home.path, '.aws'));
    plant('elsewhere/credentials', 'aws_secret_access_key = of/no+known-shape\n');
    const run = await seal(['--json']);
    expect(JSON.parse(run.stdout)).toMatchObject({
      items: [],
      left: [
        { path: join(home.path, '.aws/credentials'), why: 'is in a folder that is a symbolic link' },
        { path: join(folder, '.env'), why: 'is a symbolic link' },
      ],
    });
    expect(run.stdout).not.toContain(GITHUB);
  });

  test('escapes what a hostile file calls its credential', async () => {
    writeFileSync(join(folder, '.npmrc'), `//a\u001b[2Jb\u202e/:_authToken=of-no-known-shape\n`);
    const run = await seal([], { terminal: true, typed: [''] });
    for (const steering of ['\u001b[2J', '\u202e']) expect(run.stdout + run.stderr).not.toContain(steering);
    expect(run.stdout).toContain('\\u202e');
  });

  test('has nothing of a placeholder that has the shape of a credential', async () => {
    const run = await seal(['github', '--stdin'], { stdin: 'not-a-known-shape-0123456789' });
    expect(run.code).toBe(0);
    const [first] = vault.bindings;
    if (first !== undefined) first['sentinel'] = { value: OF_FOLDER, env: 'GH_TOKEN' };
    writeFileSync(join(folder, '.env'), `GITHUB_TOKEN=${OF_FOLDER}\nOTHER=${GITHUB}\n`);
    expect(JSON.parse((await seal(['--json'])).stdout)).toMatchObject({ items: [{ name: 'OTHER' }] });
  });

  test('has nothing of a placeholder', async () => {
    writeFileSync(join(folder, '.env'), 'OPENAI_API_KEY=sk-svc-stand-in-not-a-key-openai\n');
    expect(JSON.parse((await seal(['--json'])).stdout)).toMatchObject({ items: [] });
  });
});

describe('what is chosen at a terminal', () => {
  test('is sealed, and replaced by the placeholder of its binding, with mode and neighbours kept', async () => {
    const path = plant('.config/gh/hosts.yml', `github.com:\n    user: octo\n    oauth_token: ${GITHUB}\n`, 0o640);
    const run = await atTerminal(['1', 'r']);
    expect(vault.values).toEqual({ 'user/github': GITHUB });
    const after = 'github.com:\n    user: octo\n    oauth_token: svc-stand-in-not-a-key-github\n';
    expect(readFileSync(path, 'utf8')).toBe(after);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(readdirSync(join(path, '..'))).toEqual(['hosts.yml']);
    expect(run.stdout + run.stderr).not.toContain(GITHUB);
  });

  test('is left where it is unless a person agrees', async () => {
    const path = plant('.config/gh/hosts.yml', `oauth_token: ${GITHUB}\n`);
    const run = await atTerminal(['all', '']);
    expect(vault.values).toEqual({ 'user/github': GITHUB });
    expect(readFileSync(path, 'utf8')).toContain(GITHUB);
    expect(run.stderr).toContain('oauth_token: [the credential] would become svc-stand-in-not-a-key-github');
  });

  test('can be deleted with its line where lines are complete in themselves', async () => {
    const path = plant(
      '.git-credentials',
      `https://a:first-credential@git.example.test\nhttps://b:${GITHUB}@github.com\n`,
    );
    await atTerminal(['2', 'd']);
    expect(readFileSync(path, 'utf8')).toBe('https://a:first-credential@git.example.test\n');
  });

  test('refers to the variable of the placeholder in an .npmrc', async () => {
    const path = plant('.npmrc', 'a=b\n//npm.example.test/:_authToken=of-no-known-shape\n');
    await atTerminal(['1', 'r']);
    expect(vault.hosts()).toEqual(['npm.example.test']);
    expect(readFileSync(path, 'utf8')).toBe('a=b\n//npm.example.test/:_authToken=${NPM_TOKEN}\n');
  });

  test('of this folder is confirmed once more, because somebody else may have written it', async () => {
    writeFileSync(join(folder, '.env'), `GITHUB_TOKEN=${OF_FOLDER}\n`);
    const run = await atTerminal(['all', 'n']);
    expect(run.stderr).toContain('is from this folder, which somebody else may have written');
    expect(listChanges(run)).toEqual([]);
  });

  test('never replaces a stored value without a question of its own', async () => {
    vault.values['user/github'] = 'an earlier credential';
    writeFileSync(join(folder, '.env'), `GITHUB_TOKEN=${OF_FOLDER}\n`);
    const run = await atTerminal(['all', 'y', 'n']);
    expect(run.stderr).toContain(
      'vault://user/github is stored already. Replace its value, which is for api.github.com, ',
    );
    expect(vault.values).toEqual({ 'user/github': 'an earlier credential' });
    expect(readFileSync(join(folder, '.env'), 'utf8')).toContain(OF_FOLDER);
  });

  test('is not bound to a host that a file of this folder names', async () => {
    const token = ['npm', 'a1B2'.repeat(9)].join('_');
    writeFileSync(join(folder, '.npmrc'), `//evil.example.test/:_authToken=${token}\n`);
    const asked = await atTerminal(['all', 'own.example.test', 'n'], { NPM_TOKEN: '' });
    expect(asked.stderr).toContain('The host of the registry');
    expect(asked.stderr).toContain('may have written. Seal it for own.example.test?');
    expect(vault.hosts()).toEqual([]);
    plant('.npmrc', `//npm.example.test/:_authToken=${token}\n`);
    await atTerminal(['all', '', '']);
    expect(vault.hosts()).toEqual(['npm.example.test']);
  });

  test('does not take the place of another one that has just been sealed', async () => {
    const lines = ['one', 'two'].map((name) => `//${name}.example.test/:_authToken=the-token-of-${name}\n`);
    const path = plant('.npmrc', lines.join(''));
    const run = await atTerminal(['all', 'r', 'y', 'r']);
    expect(run.stderr).toContain('two.example.test: another npm registry credential has just been dealt with');
    expect(vault.values).toEqual({ 'user/npm': 'the-token-of-one' });
    expect(vault.hosts()).toEqual(['one.example.test']);
    expect(readFileSync(path, 'utf8')).toContain('the-token-of-two');
  });

  test('ends with the first question that is not answered', async () => {
    plant('.config/gh/hosts.yml', `oauth_token: ${GITHUB}\n`);
    plant('.codex/auth.json', `{"OPENAI_API_KEY":"${OPENAI}"}`);
    const run = await atTerminal(['all']);
    expect(run).toMatchObject({ code: 1 });
    expect(run.stderr).toContain('stopped: nothing else was changed');
    expect(run.stderr.match(/No copy is kept/g)).toHaveLength(1);
    expect(vault.values).toEqual({ 'user/github': GITHUB });
  });

  test('keeps its file if it could not be sealed', async () => {
    const path = plant('.config/gh/hosts.yml', `oauth_token: ${GITHUB}\n`);
    vault.failAtChange = 2;
    const run = await atTerminal(['1', 'r']);
    expect(run.stderr).toContain('GitHub was not sealed');
    expect(readFileSync(path, 'utf8')).toContain(GITHUB);
  });

  test('is not chosen by an answer that names none', async () => {
    plant('.config/gh/hosts.yml', `oauth_token: ${GITHUB}\n`);
    expect(listChanges(await atTerminal([''], { GH_TOKEN: GITHUB }))).toEqual([]);
  });
});
