import { closeSync, mkdirSync, openSync, readdirSync, writeFileSync, writeSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'vitest';
import { pythonWith } from '../../tools/system_parts.mjs';
import { countOf } from '../support/full_counts.ts';
import { PROXY, type MatrixClient } from './client.ts';
import { HOSTS, type MatrixWorld } from './world.ts';

const MIB = 1024 * 1024;
/** More than the limit of a body that is buffered. */
const FULL_PUSH_MIB = 52;
const PUSHED_MIB = countOf(FULL_PUSH_MIB, 4);
const PUSHED_BYTES = PUSHED_MIB * MIB;

function writeRandom(path: string, mebibytes: number): void {
  const file = openSync(path, 'w');
  for (let at = 0; at < mebibytes; at += 1) writeSync(file, randomBytes(MIB));
  closeSync(file);
}

async function useGit(world: MatrixWorld): Promise<void> {
  const folder = world.folder('git');
  const remote = `https://${HOSTS.git}/project.git`;
  const env = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' };
  const settings = ['user.name=Agent', 'user.email=agent@example.test', 'core.compression=0'];
  const git = (...args: string[]): Promise<string> =>
    world.run(['git', ...settings.flatMap((setting) => ['-c', setting]), ...args], { cwd: folder, env });
  await git('clone', '-q', remote, '.');
  writeRandom(join(folder, 'large.bin'), PUSHED_MIB);
  await git('add', 'large.bin');
  await git('commit', '-q', '-m', 'Large');
  await git('push', '-q', 'origin', 'HEAD:main');
  expect(world.git.git('cat-file', '-s', 'main:large.bin').trim()).toBe(String(PUSHED_BYTES));
  await git('clone', '-q', remote, 'again');
  expect(readdirSync(join(folder, 'again'))).toContain('large.bin');
}

async function useGh(world: MatrixWorld): Promise<void> {
  const env = { GH_HOST: HOSTS.github, GH_CONFIG_DIR: world.folder('gh'), GH_PROMPT_DISABLED: '1', NO_COLOR: '1' };
  const gh = (...args: string[]): Promise<string> => world.run(['gh', 'api', ...args], { env });
  expect(await gh('user', '--jq', '.login')).toBe('octo\n');
  expect(JSON.parse(await gh('repos/octo/demo/issues', '-f', 'title=a'))).toEqual({ number: 1 });
  expect(await gh('graphql', '-f', 'query={viewer{login}}', '--jq', '.data.viewer.login')).toBe('octo\n');
}

async function useNpm(world: MatrixWorld): Promise<void> {
  const folder = world.folder('npm');
  const made = join(folder, 'made');
  mkdirSync(made);
  const settings = [
    `registry=https://${HOSTS.npm}/`,
    `//${HOSTS.npm}/:_authToken=placeholder`,
    `cache=${join(folder, 'cache')}`,
  ];
  writeFileSync(join(folder, 'npmrc'), `${settings.join('\n')}\n`);
  writeFileSync(join(made, 'package.json'), JSON.stringify({ name: 'made-here', version: '1.2.3' }));
  writeFileSync(join(made, 'data.bin'), randomBytes(2 * MIB));
  // The tests' svc names no registry to npm; this client has one.
  const env = { npm_config_registry: `https://${HOSTS.npm}/` };
  const npm = (cwd: string, ...args: string[]): Promise<string> =>
    world.run(['npm', ...args, '--userconfig', join(folder, 'npmrc'), '--no-audit', '--no-fund'], { cwd, env });
  await npm(made, 'publish');
  expect((await npm(folder, 'view', 'made-here', 'version')).trim()).toBe('1.2.3');
  await npm(folder, 'install', 'made-here', '--prefix', folder);
  expect(readdirSync(join(folder, 'node_modules', 'made-here')).toSorted()).toEqual(['data.bin', 'package.json']);
}

async function usePip(world: MatrixWorld): Promise<void> {
  const folder = world.folder('pip');
  const env = { PIP_CONFIG_FILE: '/dev/null', PIP_FIND_LINKS: '', PIP_CACHE_DIR: join(folder, 'cache') };
  const options = ['--no-deps', '--disable-pip-version-check', '-q', '-d', folder];
  const index = `https://${HOSTS.python}/simple/`;
  await world.run([PIP, '-m', 'pip', 'download', ...options, '--index-url', index, 'demo'], { env });
  expect(readdirSync(folder)).toContain('demo-1.0-py3-none-any.whl');
}

const PIP = pythonWith('pip') ?? 'python3';

export const TOOL_CLIENTS: readonly MatrixClient[] = [
  {
    name: 'git',
    probe: 'test -x "$(git --exec-path)/git-http-backend"',
    packages: 'git',
    sets: [PROXY, 'GIT_HTTP_PROXY_AUTHMETHOD', 'GIT_SSL_CAINFO'],
    tried: `clone, push of ${FULL_PUSH_MIB} MiB, clone again`,
    note: 'with `body: stream` in the binding (as in the templates), so that a push may be larger than the buffered limit',
    works: true,
    service: 'git',
    use: useGit,
  },
  {
    name: 'GitHub CLI (gh)',
    probe: 'gh --version',
    packages: 'gh',
    sets: [PROXY, 'SSL_CERT_FILE', 'GH_ENTERPRISE_TOKEN'],
    tried: 'REST GET and POST, GraphQL',
    note: 'with a placeholder for the token it insists on, which the binding hands out (in `GH_TOKEN` for github.com)',
    works: true,
    service: 'github',
    use: useGh,
  },
  {
    name: 'npm',
    probe: 'npm --version',
    packages: 'npm',
    sets: [PROXY, 'npm_config_cafile'],
    tried: 'publish, view, install',
    note: 'with any placeholder for the `_authToken` that it insists on to publish',
    works: true,
    service: 'npm',
    use: useNpm,
  },
  {
    name: 'pip',
    probe: `${PIP} -m pip --version`,
    packages: 'python3-pip',
    sets: [PROXY, 'PIP_CERT'],
    tried: 'download from an index with basic authentication',
    works: true,
    service: 'python',
    use: usePip,
  },
];
