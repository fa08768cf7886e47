import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli, TestHome, type RunOptions, type RunResult } from '../testing/run_cli.ts';
import { FakeVault } from '../testing/fake_vault.ts';

const TOKEN = 'not-a-known-shape-0123456789';

let home: TestHome;
let vault: FakeVault;
beforeEach(() => {
  home = new TestHome();
  vault = new FakeVault();
});
afterEach(() => home.remove());

const seal = (args: readonly string[], options: RunOptions = {}): Promise<RunResult> => {
  vault.beginCommand();
  return runCli(home, ['seal', ...args], { answer: vault.answer, stdin: TOKEN, ...options });
};
const changes = ({ calls }: RunResult): readonly string[] =>
  calls.filter(({ method }) => method !== 'GET').map(({ method, url }) => `${method} ${url.pathname}`);

describe('svc seal SERVICE', () => {
  test('stores one secret and makes every binding of the service', async () => {
    const run = await seal(['github', '--stdin', '--json']);
    expect(run.code).toBe(0);
    expect(vault.hosts()).toEqual(['api.github.com', 'github.com', 'uploads.github.com', 'ghcr.io']);
    expect(new Set(vault.bindings.map((binding) => binding['credential_ref']))).toEqual(
      new Set(['vault://user/github']),
    );
    expect(vault.values).toEqual({ 'user/github': TOKEN });
    expect(run.stdout + run.stderr).not.toContain(TOKEN);
    const created = [true, true, true, true].map((value) => ({ created: value }));
    expect(JSON.parse(run.stdout)).toMatchObject({ secret: { ref: 'vault://user/github' }, bindings: created });
  });

  test('lists what it made for a person, with the variable of each placeholder', async () => {
    const run = await seal(['github', '--from', 'TOKEN'], { env: { TOKEN }, terminal: true });
    expect(run.stdout).toContain('stored vault://user/github\n');
    expect(run.stdout).toContain('+ api.github.com (header-template, placeholder in GH_TOKEN)');
    expect(run.stdout).toContain('+ ghcr.io (basic, read, placeholder in GHCR_TOKEN)');
    expect(run.stdout + run.stderr).not.toContain(TOKEN);
  });

  test.each([1, 2, 3, 4, 5])('undoes everything if call %d fails', async (failing) => {
    vault.failAtChange = failing;
    const run = await seal(['github', '--stdin']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('nothing was changed');
    expect(vault.hosts()).toEqual([]);
    expect(vault.values).toEqual({});
  });

  test('keeps the earlier value if the last call fails', async () => {
    await seal(['github', '--stdin']);
    vault.bindings.splice(0, 1);
    vault.failAtChange = 2;
    const run = await seal(['github', '--stdin', '--yes'], { stdin: 'another-value-0123456789' });
    expect(run.code).toBe(1);
    expect(vault.values).toEqual({ 'user/github': TOKEN });
    expect(vault.hosts()).toEqual(['github.com', 'uploads.github.com', 'ghcr.io']);
  });

  test('refuses the placeholder of a binding, and keeps the credential', async () => {
    await seal(['openai', '--stdin']);
    const [binding] = vault.bindings;
    const placeholder = `sk-proj-${'a1'.repeat(24)}`;
    Object.assign(binding ?? {}, { sentinel: { value: placeholder, env: 'OPENAI_API_KEY' } });
    const run = await seal(['openai', '--from', 'KEY', '--yes'], { env: { KEY: placeholder } });
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('this is a placeholder of svc');
    expect(changes(run)).toEqual([]);
    expect(vault.values).toEqual({ 'user/openai': TOKEN });
  });

  test.each([
    [2, 'the binding of github.com'],
    [5, 'the value of user/github'],
  ])('does not claim that nothing was changed if the reply of call %d is lost', async (lost, what) => {
    vault.loseReplyOf = lost;
    const run = await seal(['github', '--stdin']);
    expect(run.code).toBe(3);
    expect(run.stderr).toContain(`${what} may have been stored`);
    expect(run.stderr).not.toContain('nothing was changed');
    vault.loseReplyOf = 0;
    expect(await seal(['github', '--stdin', '--yes'])).toMatchObject({ code: 0 });
    expect(vault.hosts()).toHaveLength(4);
    expect(new Set(vault.hosts())).toEqual(new Set(['api.github.com', 'ghcr.io', 'github.com', 'uploads.github.com']));
  });

  test('names what it could not undo', async () => {
    vault.failAtChange = 3;
    vault.failDeletes = true;
    const run = await seal(['github', '--stdin']);
    expect(run.stderr).toContain('not everything could be undone');
    expect(run.stderr).toContain('svc binding rm bnd_00000000000000000000000001');
  });

  test('replaces the value only after a confirmation, and keeps the bindings', async () => {
    await seal(['github', '--stdin']);
    const refused = await seal(['github', '--stdin'], { stdin: 'another-value-0123456789' });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('--yes');
    expect(vault.values).toEqual({ 'user/github': TOKEN });
    const replaced = await seal(['github', '--stdin', '--yes'], { stdin: 'another-value-0123456789' });
    expect(changes(replaced)).toEqual(['POST /v1/secrets']);
    expect(vault.values).toEqual({ 'user/github': 'another-value-0123456789' });
  });

  test('keeps a binding that a person has changed', async () => {
    await seal(['github', '--stdin']);
    vault.bindings[0]!['effect'] = 'read';
    vault.bindings[0]!['sentinel'] = { value: 'ghp_placeholder_of_their_own', env: 'GH_TOKEN' };
    await seal(['github', '--stdin', '--yes']);
    expect(vault.hosts()).toHaveLength(4);
    expect(vault.bindings[0]).toMatchObject({ effect: 'read' });
  });

  test('changes nothing if a host is bound to another secret', async () => {
    await seal(['github', '--stdin']);
    vault.bindings[1]!['credential_ref'] = 'vault://user/other';
    const run = await seal(['github', '--stdin', '--yes']);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('github.com is already bound to vault://user/other: nothing was changed');
    expect(run.stderr).toContain('--as user/other');
    expect(changes(run)).toEqual([]);
  });

  test('adds a second account under a path of its own, with one placeholder for all of its hosts', async () => {
    await seal(['github', '--stdin']);
    const first = structuredClone(vault.bindings);
    const added = await seal(['github', '--as', 'user/github-work', '--stdin']);
    expect(added.code).toBe(0);
    expect(vault.bindings.slice(0, 4)).toEqual(first);
    const second = vault.bindings.slice(4);
    expect(second.map((binding) => [binding['host'], binding['credential_ref'], binding['emit_mechanism']])).toEqual(
      first.map(({ host }) => [host, 'vault://user/github-work', 'sentinel-swap']),
    );
    const [value, ...others] = new Set(second.map((binding) => JSON.stringify(binding['sentinel']).split('"')[3]));
    expect([value, others]).toEqual([expect.stringMatching(/^ghp_[A-Za-z0-9]{36}$/), []]);
    expect(second.map((binding) => binding['effect'])).toEqual(first.map((binding) => binding['effect']));
    await seal(['github', '--as', 'user/github-work', '--stdin', '--yes']);
    expect(vault.bindings).toHaveLength(8);
  });

  test('gives a second account a placeholder also where the first one has its own, so that it is no default', async () => {
    await seal(['github', '--stdin']);
    for (const binding of vault.bindings) {
      Object.assign(binding, { emit_mechanism: 'sentinel-swap', sentinel: { value: 'ghp_placeholder_of_the_first' } });
    }
    const added = await seal(['github', '--as', 'user/github-work', '--stdin']);
    expect(added.code).toBe(0);
    expect(vault.bindings.slice(4).map(({ emit_mechanism: emit }) => emit)).toEqual(Array(4).fill('sentinel-swap'));
  });

  test('says before a second account is stored that requests without a placeholder lose the first one', async () => {
    const lost = 'without a placeholder will get no credential any more';
    expect((await seal(['github', '--stdin'])).stderr).not.toContain(lost);
    for (const binding of vault.bindings.slice(1)) {
      Object.assign(binding, { emit_mechanism: 'sentinel-swap', sentinel: { value: 'ghp_placeholder_of_the_first' } });
    }
    Object.assign(vault.bindings[0]!, { emit_mechanism: 'inject', sentinel: undefined });
    const hosts = vault.bindings.slice(1).map(({ host }) => host);
    const second = ['github', '--as', 'user/github-work', '--stdin'];
    const refused = await seal(second, { stdin: 'ghp_placeholder_of_the_first' });
    expect([refused.code, changes(refused)]).toEqual([2, []]);
    expect(refused.stderr).toContain(`requests to ${hosts.join(', ')} ${lost}`);
    expect((await seal(second)).code).toBe(0);
    expect((await seal(['github', '--as', 'user/github-third', '--stdin'])).stderr).not.toContain(lost);
  });

  test('needs the values that the service leaves open', async () => {
    const run = await seal(['npm', '--stdin']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('npm needs --host: the host of the registry');
    expect(changes(run)).toEqual([]);
    const sealed = await seal(['npm', '--stdin', '--host', 'registry.example.test']);
    expect(sealed.code).toBe(0);
    expect(vault.hosts()).toEqual(['registry.example.test']);
  });

  test('names the option of a value that cannot be used', async () => {
    const run = await seal(['npm', '--stdin', '--host', 'https://registry.example.test/']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('--host ');
    expect(changes(run)).toEqual([]);
  });

  test('names the nearest service', async () => {
    const run = await seal(['githb', '--stdin']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('Did you mean github?');
  });
});

describe('the value', () => {
  const OTHER = ['npm', 'a1B2'.repeat(9)].join('_');

  test("is refused if it has the shape of another service's credential", async () => {
    const run = await seal(['github', '--stdin'], { stdin: OTHER });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('looks like a credential of npm');
    expect(run.stderr).toContain('svc seal npm');
    expect(run.stderr).not.toContain(OTHER);
    expect(changes(run)).toEqual([]);
  });

  test('is refused if it is a placeholder', async () => {
    const run = await seal(['openai', '--stdin'], { stdin: 'sk-svc-stand-in-not-a-key-openai' });
    expect(run.code).toBe(2);
    expect(changes(run)).toEqual([]);
  });

  test('is refused as an argument, and not repeated', async () => {
    const run = await seal(['github', TOKEN, '--stdin']);
    expect(run.code).toBe(2);
    expect(run.stderr).not.toContain(TOKEN);
    expect(changes(run)).toEqual([]);
  });

  test('comes from a variable by name', async () => {
    const run = await seal(['github', '--from', 'MY_TOKEN'], { env: { MY_TOKEN: TOKEN }, stdin: '' });
    expect(run.code).toBe(0);
    expect(vault.values).toEqual({ 'user/github': TOKEN });
  });

  test('is not repeated if it was given in place of a variable', async () => {
    const run = await seal(['github', '--from', 'ghp-0123.456789']);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain('never the value itself');
    expect(run.stderr).not.toContain('0123');
  });
});
