import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { foundIn, plantSecret } from './support/planted_secret.ts';
import { kill } from './support/process.ts';
import { type Finished, start, SVC } from './support/program.ts';
import { waitFor } from './support/wait_for.ts';
import { startWorld, type World } from './support/world.ts';

// Decision 0064: two accounts of one host, chosen by folder, by an option, or by placeholder.

const HOST = 'api.example.test';
const HOME = plantSecret();
const WORK = plantSecret();
const WORK_PLACEHOLDER = 'svc-stand-in-not-a-key-of-work';
const HOME_PLACEHOLDER = 'svc-stand-in-not-a-key-of-home';
const CHOSEN = 'secrets = ["user/github-work"] # the account of this project\n';

let world: World;
let root: string;
let work: string;
let elsewhere: string;

beforeAll(async () => {
  world = await startWorld([HOST]);
  await world.svc.secret('user/github', HOME);
  await world.svc.secret('user/github-work', WORK);
  const fields = { host: HOST, scheme: 'bearer' };
  const swapped = (value: string, env: string): object => ({
    ...fields,
    emit_mechanism: 'sentinel-swap',
    sentinel: { value, env },
  });
  await world.svc.binding({ ...fields, credential_ref: 'vault://user/github' });
  await world.svc.binding({ ...swapped(HOME_PLACEHOLDER, 'HOME_TOKEN'), credential_ref: 'vault://user/github' });
  await world.svc.binding({ ...swapped(WORK_PLACEHOLDER, 'GH_TOKEN'), credential_ref: 'vault://user/github-work' });
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-e2e-choice-')));
  work = join(root, 'work');
  elsewhere = join(root, 'elsewhere');
  mkdirSync(join(work, 'project'), { recursive: true });
  mkdirSync(elsewhere);
});
afterAll(async () => {
  await world.stop();
  rmSync(root, { recursive: true, force: true });
});
beforeEach(() => world.upstream.reset());

/** The file that was confirmed last, if none was removed since. */
let confirmed: string | null = null;

/** Confirms the file as a person does. Its hash is confirmed: the same file need not be again. */
async function confirm(text = CHOSEN): Promise<void> {
  rmSync(join(work, '.svc.toml'), { force: true });
  writeFileSync(join(work, '.svc.toml'), text);
  if (confirmed !== text) await world.svc.ok(['trust', '--yes', work]);
  confirmed = text;
}

async function removeConfirmation(): Promise<void> {
  if (confirmed !== null) await world.svc.ok(['trust', '--remove', work]);
  confirmed = null;
}

/** Sends a request from a folder under `svc run`, with this placeholder if any. */
function send(folder: string, { token = '', options = [] as readonly string[] } = {}): Promise<Finished> {
  const header = token === '' ? [] : ['-H', `Authorization: Bearer ${token}`];
  const curl = ['curl', '-sS', ...header, `https://${HOST}/`];
  return world.svc.cli(['run', ...options, '--', ...curl], { cwd: folder });
}

/** What the upstream got. */
const sent = (): readonly (string | undefined)[] =>
  world.upstream.requests.map((request) => request.header('authorization'));

describe('the account of a folder', () => {
  it('is used there and below it, and nowhere else, with the same command', async () => {
    await confirm();
    for (const folder of [work, join(work, 'project'), elsewhere]) expect((await send(folder)).code).toBe(0);
    expect(sent()).toEqual([`Bearer ${WORK}`, `Bearer ${WORK}`, `Bearer ${HOME}`]);
  });

  it('is the one whose placeholder the command gets', async () => {
    await confirm();
    const shown = await world.svc.ok(['run', '--', 'sh', '-c', 'echo "$GH_TOKEN ${HOME_TOKEN-none}"'], { cwd: work });
    expect(shown.trim()).toBe(`${WORK_PLACEHOLDER} none`);
  });

  it('refuses the placeholder of another account, sends nothing, and records it', async () => {
    await confirm();
    const refused = await send(work, { token: HOME_PLACEHOLDER });
    expect(refused.stdout).toContain('account_not_chosen');
    expect(refused.stdout).toContain('vault://user/github-work');
    expect(sent()).toEqual([]);
    const [event] = (await world.svc.events()).filter(({ data }) => data['svc.proxy.reason'] === 'account_not_chosen');
    expect(event?.type).toBe('sandbox.proxy.trust_denied');
  });

  it('yields to --use, which names what is bound', async () => {
    await confirm();
    await send(work, { options: ['--use', 'user/github'] });
    expect(sent()).toEqual([`Bearer ${HOME}`]);
    const wrong = await send(work, { options: ['--use', 'user/githib'] });
    expect(wrong.code).toBe(125);
    expect(wrong.stderr).toContain('no binding uses vault://user/githib: did you mean "user/github"?');
    expect(sent()).toHaveLength(1);
  });

  it('is explained, with who chose it', async () => {
    await confirm();
    const text = await world.svc.ok(['explain', 'GET', `https://${HOST}/`], { cwd: work });
    expect(text).toContain(`vault://user/github-work (chosen by the folder ${work})`);
    expect(await world.svc.ok(['explain', 'GET', `https://${HOST}/`], { cwd: elsewhere })).not.toContain('chosen by');
  });
});

describe('two accounts in one session', () => {
  it('are told apart by their placeholders, if no account is chosen or both are', async () => {
    const script = [HOME_PLACEHOLDER, WORK_PLACEHOLDER]
      .map((token) => `curl -sS -H "Authorization: Bearer ${token}" https://${HOST}/`)
      .join('; ');
    await world.svc.ok(['run', '--', 'sh', '-c', script], { cwd: elsewhere });
    await confirm('secrets = ["user/github-work", "user/github"]\n');
    await world.svc.ok(['run', '--', 'sh', '-c', `${script}; curl -sS https://${HOST}/`], { cwd: work });
    const both = [`Bearer ${HOME}`, `Bearer ${WORK}`];
    // Without a placeholder, the first one that the file names.
    expect(sent()).toEqual([...both, ...both, `Bearer ${WORK}`]);
  });
});

async function liveSession(): Promise<string | undefined> {
  const { items } = JSON.parse(await world.svc.ok(['sessions', 'list', '--json']));
  return items[0]?.session_id;
}

describe('a session', () => {
  let cli: ChildProcess | null = null;
  let said = '';

  it('keeps its account over a restart of the sidecar, and over a change of the file', async () => {
    await confirm();
    cli = start(SVC, ['run', '--', 'sh'], { cwd: work, env: { SVC_HOME: world.svc.home } });
    cli.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const ask = async (count: number): Promise<void> => {
      cli?.stdin?.write(`curl -sS --retry 5 --retry-all-errors https://${HOST}/ && echo " answered"\n`);
      await waitFor(`answer ${count} after ${said}`, () => said.split('answered').length > count);
    };
    try {
      await ask(1);
      const shown = await world.svc.ok(['sessions', 'show', (await liveSession()) ?? '']);
      expect(shown).toContain(`vault://user/github-work where a host has several, chosen by the folder ${work}`);
      writeFileSync(join(work, '.svc.toml'), 'secrets = ["user/github"]\n');
      const before = world.svc.runFile.sidecar_pid;
      kill(before, 'SIGKILL');
      await waitFor('another sidecar', async () => {
        await world.svc.ready();
        return world.svc.runFile.sidecar_pid !== before && (await world.svc.health().catch(() => '')) === 'ok';
      });
      await ask(2);
      expect(new Set(sent())).toEqual(new Set([`Bearer ${WORK}`]));
    } finally {
      cli.stdin?.end();
      await waitFor('the end of the session', () => cli?.exitCode !== null);
    }
  });

  it('cannot confirm a file, or take one back, from within', async () => {
    await removeConfirmation();
    writeFileSync(join(work, '.svc.toml'), CHOSEN);
    const inside = await world.svc.cli(['run', '--', SVC, 'trust', '--yes', work], { cwd: elsewhere });
    expect(inside.code).toBe(1);
    expect(inside.stderr).toContain('this runs inside a session, which may not change what it uses');
    expect(await world.svc.ok(['trust', '--list'])).toBe('');
  });
});

describe('a hostile .svc.toml', () => {
  it('has no effect while nobody has confirmed it, and does not hide a confirmed one above it', async () => {
    await confirm();
    const file = join(work, 'project', '.svc.toml');
    writeFileSync(file, 'secrets = ["user/github"]\n');
    const done = await send(join(work, 'project'));
    expect(done.stderr).toContain(`${file} has no effect, because nobody confirmed it here`);
    expect(sent()).toEqual([`Bearer ${WORK}`]);
    rmSync(file);
  });

  it.each([
    ['is changed', (file: string) => writeFileSync(file, 'secrets = ["user/github"]\n')],
    ['is changed in a comment only', (file: string) => writeFileSync(file, `${CHOSEN}#\n`)],
    ['is gone', (file: string) => rmSync(file)],
    [
      'becomes a link',
      (file: string) => {
        const target = join(root, 'target.toml');
        writeFileSync(target, CHOSEN);
        rmSync(file);
        symlinkSync(target, file);
      },
    ],
    ['becomes too large', (file: string) => writeFileSync(file, `${CHOSEN}${'#'.repeat(20_000)}\n`)],
  ])('starts nothing once a confirmed one %s, and says what to do', async (_what, change) => {
    await confirm();
    change(join(work, '.svc.toml'));
    const done = await send(join(work, 'project'));
    expect(done.code).toBe(125);
    expect(done.stderr).toContain(`svc trust ${work}`);
    expect(done.stderr).toContain(`svc trust --remove ${work}`);
    expect(sent()).toEqual([]);
  });

  it('is refused where it has a value, which is not printed', async () => {
    await removeConfirmation();
    const pasted = `ghp_${'a1'.repeat(18)}`;
    rmSync(join(work, '.svc.toml'), { force: true });
    writeFileSync(join(work, '.svc.toml'), `secrets = ["${pasted}"]\n`);
    const done = await world.svc.cli(['trust', '--yes', work]);
    expect(done.code).toBe(1);
    expect(done.stderr).toContain('looks like a credential');
    expect(foundIn(done.stdout + done.stderr, pasted)).toEqual([]);
    expect(existsSync(join(world.svc.home, 'trusted_folders.json'))).toBe(true);
    expect(await world.svc.ok(['trust', '--list'])).toBe('');
  });
});
