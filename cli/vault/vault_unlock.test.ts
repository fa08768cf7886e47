import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli, TestHome } from '../testing/run_cli.ts';

// Which commands ask for the passphrase of the vault. The program that opens it is tried in e2e/runtimes/vault_protection.test.ts.

const PROTECTED =
  '{"protection":"passphrase","version":1,"iv":"AAAA","sealed":"AAAA","salt":"AAAA","n":2,"r":1,"p":1}\n';
/** The program that opens the vault ends before it loads itself, which takes seconds from the checkout. */
const ENDS_AT_ONCE = { NODE_OPTIONS: '--import=data:text/javascript,process.exit(3)' };
const QUESTION = 'Passphrase of the vault (not shown)';
let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

test.each([
  ['a passphrase', PROTECTED, {}, true],
  ['the keyring', '{"protection":"keyring","version":1,"iv":"AAAA","sealed":"AAAA","id":"AAAA"}\n', {}, false],
  ['nothing', `${'A'.repeat(43)}\n`, {}, false],
  ['a passphrase that a setting gives', PROTECTED, { SVC_VAULT_PASSPHRASE: 'given' }, false],
  ['a passphrase in the file of a setting', PROTECTED, { SVC_VAULT_PASSPHRASE_FILE: '/nowhere' }, false],
  ['a passphrase, but the key is in a setting', PROTECTED, { SVC_VAULT_KEY: 'A'.repeat(43) }, false],
])('at a terminal, a vault behind %s asks for it if nothing gives it', async (_, text, env, asks) => {
  home.write('vault.key', text);
  const options = { terminal: true, typed: ['typed passphrase'], env: { ...ENDS_AT_ONCE, ...env } };
  const run = await runCli(home, ['vault', 'status'], options);
  expect([run.code, run.stderr.includes(QUESTION)]).toEqual([3, asks]);
  expect(run.stdout + run.stderr).not.toContain('typed passphrase');
});

test('without a terminal nobody is asked', async () => {
  home.write('vault.key', PROTECTED);
  const run = await runCli(home, ['vault', 'status'], { env: ENDS_AT_ONCE });
  expect([run.code, run.stderr.includes(QUESTION)]).toEqual([3, false]);
});

test.each([
  [['correct horse battery', 'another horse battery'], 'the two passphrases differ'],
  [['short', 'short'], 'at least 16'],
])('a new passphrase is typed twice, and long enough: %j', async (typed, message) => {
  const run = await runCli(home, ['vault', 'protect', 'passphrase'], { terminal: true, typed });
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(message)]);
});

test.each([
  [['vault', 'protect', 'passphrase'], 'stdin is not a terminal'],
  [['vault', 'protect', 'keyring', '--stdin'], 'keyring has none'],
  [['vault', 'protect', 'paper'], 'paper'],
])('svc %j is a wrong use', async (args, message) => {
  const run = await runCli(home, args);
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(message)]);
});
