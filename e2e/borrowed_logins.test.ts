import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { succeeds } from '../tools/system_parts.mjs';
import { plantSecret, searchFiles } from './support/planted_secret.ts';
import { SVC } from './support/program.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import { verifySigV4 } from './support/sigv4_verifier.ts';
import { startWorld, type World } from './support/world.ts';

// Borrowing from the real programs, in the environment that svc gives them: secret-tool asks a gnome-keyring over D-Bus, and gh and the
// AWS CLI read their logins in the user's home. The home and the bus are the test's own, by mounts that only svc sees.

const HOSTS = { keyring: 'keyring.example.test', gh: 'gh.example.test' } as const;
const AWS_HOST = 's3.example.test';
const OWN_LOGINS = fileURLToPath(new URL('support/programs/own_logins.sh', import.meta.url));
const ACCESS_KEY = 'AKIAE2EBORROWED00001';
const [inKeyring, secretKey, sessionToken] = [plantSecret(), plantSecret(), plantSecret()];
const ofGh = `gho_${plantSecret()}`;
const PROGRAMS = 'secret-tool gnome-keyring-daemon dbus-daemon dbus-send gh unshare nsenter getent';
/** `export-credentials` is of version 2, and only root mounts. */
const canTry = succeeds(
  `for each in ${PROGRAMS}; do command -v $each || exit 1; done; /usr/bin/aws --version | grep -q ^aws-cli/2 && unshare --mount mount -t tmpfs tmpfs /run/user`,
);

let world: World;
let logins: string;

/** By the system's programs: a version manager's would not be there in the fixed environment. */
async function cli(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await world.svc.cli(args, {
    env: { PATH: `/usr/bin:${process.env['PATH'] ?? ''}` },
  });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

function borrow(path: string, recipe: string, more: readonly string[]): Promise<string> {
  return cli(['secret', 'borrow', 'add', path, '--recipe', recipe, '--yes', ...more]);
}

async function send(host: string): Promise<number> {
  const session = await world.svc.session();
  const client = await connectThroughProxy(session, host);
  const { status } = await client.exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  client.close();
  await session.end();
  return status;
}

async function expectNoTrace(secret: string): Promise<void> {
  expect(searchFiles(world.svc.home, secret).holding).toEqual([]);
  expect(JSON.stringify(await world.svc.events())).not.toContain(secret);
}

/** Runs a program with the mounts of svc, at the bus of its programs. */
function atItsBus(command: readonly string[]): void {
  const bus = `DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/${userInfo().uid}/bus`;
  execFileSync('nsenter', ['--mount', '--target', String(world.svc.process.pid), 'env', bus, ...command]);
}

describe.skipIf(!canTry)('a borrowed secret of a real program', () => {
  beforeAll(async () => {
    logins = mkdtempSync(join(tmpdir(), 'svc-logins-'));
    const keys = [
      `aws_access_key_id = ${ACCESS_KEY}`,
      `aws_secret_access_key = ${secretKey}`,
      `aws_session_token = ${sessionToken}`,
    ];
    const gh = ['github.com:', '    user: octocat', `    oauth_token: ${ofGh}`, '    git_protocol: https'];
    for (const folder of ['aws', 'gh']) mkdirSync(join(logins, folder));
    writeFileSync(join(logins, 'aws', 'credentials'), ['[work]', ...keys, ''].join('\n'));
    writeFileSync(join(logins, 'gh', 'hosts.yml'), [...gh, ''].join('\n'), { mode: 0o600 });
    writeFileSync(join(logins, 'keyring'), inKeyring);
    world = await startWorld([...Object.values(HOSTS), AWS_HOST], {
      command: ['unshare', '--mount', OWN_LOGINS, logins, SVC, 'up'],
    });
  });
  afterAll(async () => {
    await world.stop();
    process.kill(Number(readFileSync(join(logins, 'bus.pid'), 'utf8')));
    rmSync(logins, { recursive: true, force: true });
  });
  beforeEach(() => world.upstream.reset());

  it.each([
    ['keyring', ['--', 'service', 'demo', 'account', 'ci'], inKeyring],
    ['gh', [], ofGh],
  ] as const)(
    'of the recipe %s is in the requests of its binding, and in no file of svc',
    async (recipe, words, value) => {
      const host = HOSTS[recipe];
      await borrow(`user/${recipe}`, recipe, ['--host', host, '--scheme', 'bearer', ...words]);
      expect(await cli(['secret', 'borrow', 'test', `user/${recipe}`])).toContain('a value without an end of its own');
      await world.svc.binding({ host, scheme: 'bearer', effect: 'read', credential_ref: `vault://user/${recipe}` });
      expect(await send(host)).toBe(200);
      expect(world.upstream.last().header('authorization')).toBe(`Bearer ${value}`);
      await expectNoTrace(value);
    },
  );

  it('of the AWS CLI is a key set, which signs the requests of its binding', async () => {
    await borrow('user/aws', 'aws', ['--host', AWS_HOST, '--scheme', 'sigv4-resign', '--', '--profile', 'work']);
    const bind = ['binding', 'add', AWS_HOST, '--scheme', 'sigv4-resign', '--credential', 'vault://user/aws'];
    const signed = ['--access-key-id', 'minted', '--region', 'eu-north-1', '--service', 's3', '--effect', 'read'];
    await cli([...bind, ...signed]);
    expect(await send(AWS_HOST)).toBe(200);
    const { method, target, body, ...request } = world.upstream.last();
    const headers = (name: string) => request.headers(name);
    const keys = new Map([[ACCESS_KEY, secretKey]]);
    const verdict = verifySigV4({ method, target, headers, body: body.data }, keys, Date.now());
    expect(verdict).toMatchObject({ ok: true, accessKeyId: ACCESS_KEY, region: 'eu-north-1', service: 's3' });
    expect(request.headers('x-amz-security-token')).toEqual([sessionToken]);
    for (const secret of [secretKey, sessionToken]) await expectNoTrace(secret);
  });

  it('that its program does not find is none, and what the program says is shown', async () => {
    await borrow('user/none', 'aws', ['--host', AWS_HOST, '--scheme', 'sigv4-resign', '--', '--profile', 'nobody']);
    const { code, stderr } = await world.svc.cli(['secret', 'borrow', 'test', 'user/none']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('The config profile (nobody) could not be found')]);
  });

  it('of a keyring that is locked is none, and nothing waits for a person', async () => {
    const service = ['--dest=org.freedesktop.secrets', '/org/freedesktop/secrets'];
    const login = 'array:objpath:/org/freedesktop/secrets/collection/login';
    atItsBus(['dbus-send', '--session', '--print-reply', ...service, 'org.freedesktop.Secret.Service.Lock', login]);
    const { code, stderr } = await world.svc.cli(['secret', 'borrow', 'test', 'user/keyring']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('secret-tool ended with status 1')]);
  });
});
