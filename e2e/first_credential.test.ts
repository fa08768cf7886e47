import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { contentOf, entriesUnder, ifThere } from './support/files_under.ts';
import { formsOf, foundIn, plantSecret, searchFiles, searchProcesses } from './support/planted_secret.ts';
import { ROOT, runOk } from './support/program.ts';
import { Svc } from './support/svc.ts';
import { waitFor } from './support/wait_for.ts';
import { startWorld, type World } from './support/world.ts';

const HOST = 'api.example.test';
const SECRET = plantSecret();
const VAULT_KEY = randomBytes(32).toString('base64url');
const scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-first-'));
const workspace = join(scratch, 'workspace');
const temporary = join(scratch, 'tmp');
const said: string[] = [];
let world: World;

/** Runs shell lines in the checkout, as the README has them, with the secret in a variable that is not exported. */
async function shell(script: string) {
  const done = await runOk('sh', ['-ec', `S=$(cat ${join(scratch, 'secret')}); ${script}`], {
    cwd: ROOT,
    env: { SVC_HOME: world.svc.home, TMPDIR: temporary },
  });
  said.push(done.stdout, done.stderr);
  return done;
}

beforeAll(async () => {
  mkdirSync(workspace);
  mkdirSync(temporary);
  writeFileSync(join(scratch, 'secret'), SECRET, { mode: 0o600 });
  world = await startWorld([HOST], { env: { TMPDIR: temporary } });
});
afterAll(() => world.stop());

describe('the search for the secret', () => {
  it.each(formsOf(SECRET))('would find %j in a file', (form) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-planted-'));
    writeFileSync(join(folder, 'log'), `before ${form} after`);
    expect(searchFiles(folder, SECRET).holding).toEqual([join(folder, 'log')]);
    expect(searchFiles(folder, [plantSecret(), SECRET]).holding).toEqual([join(folder, 'log')]);
  });

  it('would find it in the middle of an encoded text', () => {
    for (const lead of ['', 'a', 'ab', 'abc']) {
      expect(foundIn(Buffer.from(`${lead}${SECRET}tail`).toString('base64'), SECRET)).not.toEqual([]);
    }
  });
});

describe('the search through a folder in which programs are at work', () => {
  it('skips files and folders that disappear meanwhile, and finds the others', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-walked-'));
    for (const name of ['a', 'b', 'c']) {
      mkdirSync(join(folder, name, 'within'), { recursive: true });
      writeFileSync(join(folder, name, 'within', 'file'), name);
    }
    writeFileSync(join(folder, 'd'), 'd');
    const going = new Set(['a/within/file', 'b', 'd'].map((name) => join(folder, name)));
    const seen: (string | null)[] = [];
    for (const entry of entriesUnder(folder)) {
      const path = join(entry.parentPath, entry.name);
      if (going.has(path)) rmSync(path, { recursive: true });
      if (!entry.isDirectory()) seen.push(contentOf(entry)?.bytes.toString() ?? null);
    }
    expect(seen).toHaveLength(3);
    expect(new Set(seen)).toEqual(new Set(['c', null]));
  });

  it('fails for a missing folder', () => {
    expect(() => searchFiles(join(scratch, 'nowhere'), SECRET)).toThrow('ENOENT');
  });
});

describe('the first credential', () => {
  it('reaches the upstream as the bearer with the three commands of the README', async () => {
    await shell(`printf %s "$S" | ./bin/svc secret set user/demo --stdin`);
    await shell(`./bin/svc binding add ${HOST} --scheme bearer --credential vault://user/demo`);
    const ran = await shell(`./bin/svc run -- curl -sS https://${HOST}/v1/things?page=2`);
    expect(ran.stdout).toBe('ok');
    expect(world.upstream.requests).toHaveLength(1);
    expect(world.upstream.last()).toMatchObject({ method: 'GET', target: '/v1/things?page=2' });
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
  });

  it('is in the audit log at once, without query, credential or reference', async () => {
    const listed = await shell('./bin/svc audit list --json');
    expect(listed.stdout).toContain('sandbox.proxy.binding_injected');
    expect(listed.stdout).not.toContain('page=2');
    const events = await world.svc.events();
    const injected = events.filter((event) => event.type === 'sandbox.proxy.binding_injected');
    expect(injected).toHaveLength(1);
    expect(injected[0]?.data).toMatchObject({
      'svc.proxy.upstream.host': HOST,
      'svc.proxy.upstream.path': '/v1/things',
      'svc.proxy.upstream.status': 200,
      'svc.proxy.method': 'GET',
      'svc.proxy.binding.host': HOST,
      'svc.proxy.binding.scheme': 'bearer',
      'svc.proxy.emit': 'inject',
    });
    expect(JSON.stringify(injected[0])).not.toContain('user/demo');
    await shell('./bin/svc audit verify');
  });

  it('is nowhere in the environment of the agent', async () => {
    const ran = await shell('./bin/svc run -- env');
    expect(ran.stdout).toMatch(/^HTTPS_PROXY=http:\/\/ses_[^:]+:[^@]+@127\.0\.0\.1:\d+\/?$/m);
    for (const name of [
      'HTTP_PROXY',
      'NO_PROXY',
      'https_proxy',
      'SSL_CERT_FILE',
      'NODE_EXTRA_CA_CERTS',
      'SVC_SESSION_ID',
    ]) {
      expect(ran.stdout).toMatch(new RegExp(`^${name}=.`, 'm'));
    }
    expect(foundIn(ran.stdout, SECRET)).toEqual([]);
  });

  it('is not inherited from the environment of the person either', async () => {
    const planted = {
      SVC_VAULT_KEY: VAULT_KEY,
      SVC_DATABASE_TOKEN: 'planted-token',
      CODEHOST_OAUTH_CLIENT_SECRET: 'planted-oauth',
      npm_config_token: 'planted-npm',
    };
    const seen = await world.svc.ok(['run', '--', 'env'], { env: planted });
    expect(seen).not.toContain('planted-');
    expect(seen).not.toContain(VAULT_KEY);
  });

  it('is in no argument and no environment of any process while an agent runs', async () => {
    const running = shell(
      `cd ${workspace}; ${ROOT}/bin/svc run -- sh -c 'curl -sS https://${HOST}/ > got; touch started; while [ ! -e stop ]; do sleep 0.05; done'`,
    );
    await waitFor('the agent to run', () => readdirSync(workspace).includes('started'));
    const { searched, holding } = searchProcesses(SECRET);
    writeFileSync(join(workspace, 'stop'), '');
    await running;
    expect(readFileSync(join(workspace, 'got'), 'utf8')).toBe('ok');
    expect(searched).toBeGreaterThan(6);
    expect(holding).toEqual([]);
  });

  it('is in no file of SVC_HOME, the agent or the temporary folder while svc runs', () => {
    const home = searchFiles(world.svc.home, SECRET);
    expect(home.searched).toBeGreaterThan(5);
    expect(home.holding).toEqual([]);
    expect(searchFiles(workspace, SECRET).holding).toEqual([]);
    expect(searchFiles(temporary, SECRET).holding).toEqual([]);
  });

  it('is in nothing that svc printed', () => {
    expect(foundIn([...said, world.svc.output].join('\n'), SECRET)).toEqual([]);
  });

  it('keeps every key and state file to its owner', () => {
    const files = [...entriesUnder(world.svc.home)].filter((entry) => entry.isFile() && !entry.name.endsWith('.pem'));
    const open = files
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => ((ifThere(() => statSync(path))?.mode ?? 0) & 0o077) !== 0);
    expect(files.length).toBeGreaterThan(5);
    expect(statSync(world.svc.home).mode & 0o777).toBe(0o700);
    expect(open).toEqual([]);
  });

  it('is in no file after svc has stopped, and works again on the same state', async () => {
    await world.svc.stop({ keepHome: true });
    expect(readdirSync(world.svc.home)).not.toContain('run.json');
    expect(searchFiles(world.svc.home, SECRET).holding).toEqual([]);
    const again = await Svc.up({
      home: world.svc.home,
      upstreamCaFiles: [world.ca.file],
      resolve: [`${HOST}:127.0.0.1:${world.upstream.port}`],
    });
    await waitFor('the channel to be up again', async () => (await again.health()) === 'ok');
    world.upstream.reset();
    const got = await again.ok(['run', '--', 'curl', '-sS', `https://${HOST}/again`]);
    expect(got).toBe('ok');
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    await again.ok(['audit', 'verify']);
    await again.stop();
  });
});
