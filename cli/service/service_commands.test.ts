import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { errorCode } from '../../shared/model/error_code.ts';
import { identify } from '../../machine/process_identity.ts';
import { runCli, type RunResult, TestHome } from '../testing/run_cli.ts';
import { findServiceManager } from './service_manager.ts';
import { findUnwritable, launchdPlist, type ServicePlan, systemdUnit } from './service_unit.ts';

const ODD = '/home/o d"d/$HOME/%h/back\\slash/<&>';
const PLAN: ServicePlan = {
  name: 'svc',
  home: ODD,
  command: ['/bin/sh', '-c', 'exit 0', `--home=${ODD}`],
  environment: { PATH: '/usr/bin:/odd "%$' },
};

const VAULT_KEY = Buffer.alloc(32, 7).toString('base64url');

let folder: string;
let home: TestHome;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-service-'));
  home = new TestHome();
});
afterEach(() => {
  home.remove();
  rmSync(folder, { recursive: true });
});

describe('a systemd unit', () => {
  test('has every text quoted, and no secret setting', () => {
    const unit = systemdUnit(PLAN);
    expect(unit).toContain(
      String.raw`ExecStart="/bin/sh" "-c" "exit 0" "--home=/home/o d\"d/$$HOME/%%h/back\\slash/<&>"`,
    );
    expect(unit).toContain(String.raw`Environment="PATH=/usr/bin:/odd \"%%$"`);
    expect(unit).toContain('\nKillMode=mixed\n');
    expect(unit).toContain('\nRestart=on-failure\n');
    expect(unit).toContain('\nWantedBy=default.target\n');
  });

  test('is one that systemd accepts, where systemd is installed', () => {
    const path = join(folder, 'svc.service');
    writeFileSync(path, systemdUnit(PLAN));
    expect(verify(path)).toMatch(/^(accepted|not installed)$/);
  });

  test.each(['\n', '\r', '\0', '\u001b'])('cannot hold a control character: %j', (character) => {
    expect(findUnwritable({ ...PLAN, command: [`a${character}b`] })).toBe(`a${character}b`);
    expect(findUnwritable(PLAN)).toBeNull();
  });
});

/** What `systemd-analyze verify` says of a unit. */
function verify(path: string): string {
  try {
    execFileSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8', stdio: 'pipe' });
    return 'accepted';
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? 'not installed' : `refused: ${String(error)}`;
  }
}

test('a launchd agent that is loaded is unloaded before it is loaded anew', () => {
  const calls = join(folder, 'calls');
  const launchctl = join(folder, 'launchctl');
  // As launchctl: what is loaded already is refused.
  const script = `#!/bin/sh
echo "$1" >> ${calls}
case $1 in bootstrap) ! test -e ${calls}.on && touch ${calls}.on ;; bootout) rm ${calls}.on ;; esac
`;
  writeFileSync(launchctl, script, { mode: 0o755 });
  const env = { PATH: `${folder}:${process.env['PATH']}` };
  const manager = findServiceManager({ env, userHome: folder }, 'svc', 'darwin');
  manager.install(PLAN);
  manager.install({ ...PLAN, command: ['/bin/sh', '-c', 'exit 1'] });
  expect(readFileSync(calls, 'utf8').split('\n')).toEqual(['bootout', 'bootstrap', 'bootout', 'bootstrap', '']);
  expect(readFileSync(manager.path, 'utf8')).toContain('exit 1');
});

test('a launchd agent has every text escaped', () => {
  const plist = launchdPlist(PLAN);
  expect(plist).toContain('<string>--home=/home/o d"d/$HOME/%h/back\\slash/&lt;&amp;&gt;</string>');
  expect(plist).toContain('<key>Label</key><string>local.svc</string>');
  expect(plist).toContain('<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>');
});

/** A `systemctl` that records its calls; `fails` names the verb that it refuses. */
function fakeSystemctl(fails = 'nothing'): void {
  const path = join(folder, 'systemctl');
  const script = `#!/bin/sh\necho "$*" >> ${folder}/calls\nif [ "$2" = "${fails}" ]; then echo no bus >&2; exit 1; fi\n`;
  writeFileSync(path, script);
  chmodSync(path, 0o755);
}

const calls = (): readonly string[] => readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
const units = (): readonly string[] => {
  const path = join(home.path, '.config', 'systemd', 'user');
  return existsSync(path) ? readdirSync(path) : [];
};
const run = (argv: readonly string[], env: Record<string, string> = {}): Promise<RunResult> =>
  runCli(home, ['service', ...argv], {
    env: { PATH: `${folder}:/usr/bin:/bin`, XDG_CONFIG_HOME: undefined, ...env },
  });

/** Installs the service; its unit, and what the command said. */
const unitFor = async (env: Record<string, string>) => {
  const { stderr } = await run(['install'], env);
  const [name = ''] = units();
  return { stderr, text: readFileSync(join(home.path, '.config', 'systemd', 'user', name), 'utf8') };
};

describe.runIf(process.platform === 'linux')('svc service', () => {
  test('install writes a unit for this state directory and starts it; uninstall removes it', async () => {
    fakeSystemctl();
    const installed = await run(['install'], { SVC_VAULT_KEY: VAULT_KEY });
    expect(installed).toMatchObject({ code: 0 });
    const [name = ''] = units();
    expect(name).toMatch(/^svc-[0-9a-f]{8}\.service$/);
    const text = readFileSync(join(home.path, '.config', 'systemd', 'user', name), 'utf8');
    expect(text).toContain(`"--home=${home.path}"`);
    expect(text).toContain('"--in-background"');
    expect(text).not.toContain(VAULT_KEY);
    expect(installed.stderr).toContain('SVC_VAULT_KEY is set here');
    const started = ['--user daemon-reload', `--user enable ${name}`, `--user restart ${name}`];
    expect(calls().slice(-3)).toEqual(started);
    expect((await run(['status'])).code).toBe(0);
    expect(await run(['uninstall'])).toMatchObject({ code: 0 });
    expect(units()).toEqual([]);
    expect(calls()).toContain(`--user disable --now ${name}`);
    expect(await run(['uninstall'])).toMatchObject({ code: 0, stdout: expect.stringContaining('not installed') });
    expect((await run(['status'])).code).toBe(1);
  });

  test('gets the upstream proxy of the shell, unless it has a password or is the one of a session', async () => {
    fakeSystemctl();
    const plain = await unitFor({ HTTPS_PROXY: 'http://proxy.test:3128', NO_PROXY: '.corp.test' });
    expect(plain.text).toContain('"HTTPS_PROXY=http://proxy.test:3128"');
    expect(plain.text).toContain('"NO_PROXY=.corp.test"');
    expect(plain.stderr).not.toContain('PROXY');
    const secret = await unitFor({ HTTPS_PROXY: 'http://worker:planted@proxy.test:3128' });
    expect(secret.text).not.toMatch(/planted|proxy.test/);
    expect(secret.stderr).toContain('HTTPS_PROXY is set here, but not for the service');
    expect(secret.stderr).not.toContain('planted');
    const session = 'http://ses_01hzy3v7q8w9x0y1z2a3b4c5d6:planted@127.0.0.1:7421';
    expect((await unitFor({ HTTPS_PROXY: session })).text).not.toMatch(/planted|_PROXY/);
  });

  test('for the default state directory has the plain name', async () => {
    fakeSystemctl();
    mkdirSync(join(home.path, '.svc'), { mode: 0o700 });
    const started = await run(['install'], { SVC_HOME: join(home.path, '.svc') });
    expect(started.code).toBe(0);
    expect(units()).toEqual(['svc.service']);
  });

  test('without a systemd of the user says so, and writes nothing', async () => {
    fakeSystemctl('show-environment');
    const { code, stderr } = await run(['install']);
    expect(code).toBe(1);
    expect(stderr).toContain('there is no systemd for this user');
    expect(stderr).toContain('no bus');
    expect(stderr).toContain('svc up --detach');
    expect(units()).toEqual([]);
  });

  test('is not installed while svc runs otherwise', async () => {
    fakeSystemctl();
    home.write('up.lock', JSON.stringify({ supervisor: identify(process.pid), programs: [] }));
    const { code, stderr } = await run(['install']);
    expect([code, units()]).toEqual([1, []]);
    expect(stderr).toContain('svc down --keep-sessions');
  });

  test('needs fixed ports', async () => {
    fakeSystemctl();
    expect((await run(['install', '--proxy-port', '0'])).code).toBe(2);
    expect(units()).toEqual([]);
  });
});
