import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { npmEnvironment } from '../../machine/npm_environment.ts';
import { ok } from '../../shared/model/result.ts';
import { findOrBuildImage } from './agent_image.ts';
import { npmOf, trustedNpm, type Npm } from './agent_npm.ts';
import { findProfile } from './agent_profiles.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
let scratch: string;
beforeEach(() => (scratch = mkdtempSync(join(tmpdir(), 'svc-npm-'))));
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

function run(program: string, args: readonly string[], cwd: string): void {
  const { status, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
}

/** A folder with files, each a text or an object for JSON. */
function folderWith(name: string, files: Readonly<Record<string, string | object>>): string {
  const folder = join(scratch, name);
  mkdirSync(folder, { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content));
    chmodSync(join(folder, file), 0o755);
  }
  return folder;
}

function repository(name: string, files: Readonly<Record<string, string | object>>): string {
  const folder = folderWith(name, files);
  run('git', ['init', '--quiet'], folder);
  run('git', ['add', '.'], folder);
  run('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--quiet', '-m', 'a'], folder);
  return `git+file://${folder}`;
}

/** A registry with one package at one version. */
async function registryWith(manifest: {
  readonly name: string;
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}): Promise<Server> {
  folderWith(join('packed', 'package'), { 'package.json': manifest });
  run('tar', ['-czf', '../package.tgz', 'package'], join(scratch, 'packed'));
  const server = createServer(({ url }, response) => {
    if (url?.endsWith('.tgz') === true) {
      response.end(readFileSync(join(scratch, 'package.tgz')));
      return;
    }
    const tarball = `${urlOf(server)}/package.tgz`;
    const { name, version } = manifest;
    const document = {
      name,
      'dist-tags': { latest: version },
      versions: { [version]: { ...manifest, dist: { tarball } } },
    };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
const urlOf = (server: Server): string => {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
};

const notes: string[] = [];
const said =
  (version: string, packed: string | null): Npm =>
  (args, folder) => {
    if (args[0] === '--version') return Promise.resolve({ code: 0, output: `npm warn a setting\n${version}\n` });
    expect(args).toEqual(['pack', 'npm@11.19.1', '--ignore-scripts', '--loglevel=error']);
    if (packed !== null) writeFileSync(join(folder, 'npm-11.19.1.tgz'), packed);
    return Promise.resolve({ code: packed === null ? 1 : 0, output: 'the reason\n' });
  };

describe('npm on this machine', () => {
  test('runs nothing of a dependency from git, whose settings name a program', { timeout: 600_000 }, async () => {
    const started = join(scratch, 'started');
    const nested = repository('nested', { 'package.json': { name: 'nested', version: '1.0.0' } });
    const hostile = repository('hostile', {
      'package.json': {
        name: 'hostile',
        version: '1.0.0',
        scripts: { prepare: `touch ${started}` },
        dependencies: { nested },
      },
      '.npmrc': `git=${join(scratch, 'hostile', 'program')}\n`,
      program: `#!/bin/sh\ntouch ${started}\nexec git "$@"\n`,
    });
    const claude = findProfile({ root, home: '/nonexistent', uid: undefined }, 'claude').profile;
    const server = await registryWith({
      name: '@anthropic-ai/claude-code',
      version: claude.tried ?? '',
      dependencies: { hostile },
    });
    const env = {
      PATH: process.env['PATH'],
      HOME: scratch,
      npm_config_registry: urlOf(server),
      npm_config_cache: join(scratch, 'cache'),
      npm_config_allow_git: 'all',
      npm_config_audit: 'false',
    };
    const base = { id: 'sha256:base', user: '', entrypoint: [], cmd: [], env: [], workdir: '', architecture: 'amd64' };
    const runtime = {
      inspectImage: (name: string) =>
        Promise.resolve(
          name === 'node:24'
            ? ok({ ...base, labels: {} })
            : ({ ok: false, error: { reason: 'image_missing', message: 'none', fixes: [] } } as const),
        ),
      runProbe: () => Promise.resolve(ok('node=v24.1.0\nlibc=glibc\n')),
    };
    try {
      const made = findOrBuildImage(
        { context: { root, now: () => 0 }, print: { note: () => {} } },
        {
          docker: () => Promise.reject(new Error('nothing is built')),
          npm: npmOf(env, () => {}),
          uid: '1000',
          runtime,
        },
        { profile: claude, base: 'node:24', rebuild: false, stateHome: scratch },
      );
      await made.catch(() => {});
      expect(existsSync(started)).toBe(false);
      await expect(made).rejects.toMatchObject({ message: expect.stringContaining('could not be fetched') });
      await expect(made).rejects.toMatchObject({
        fixes: expect.arrayContaining([expect.stringContaining('EALLOWGIT')]),
      });
    } finally {
      server.close();
    }
  });

  test('is ended with the command that runs it', async () => {
    writeFileSync(join(scratch, 'npm'), '#!/bin/sh\necho began >&2\nexec sleep 1000\n', { mode: 0o755 });
    const stop = new AbortController();
    const npm = npmOf(
      { PATH: `${scratch}:${process.env['PATH']}` },
      () => {},
      () => stop.signal,
    );
    const ended = npm(['install'], scratch);
    stop.abort('SIGTERM');
    expect(await ended).toMatchObject({ code: 1 });
  });

  test('gets what it needs for its registry, and no other credential of the shell', () => {
    const kept = { PATH: '/bin', HOME: '/h', https_proxy: 'http://p', npm_config_registry: 'r', NPM_TOKEN: 't' };
    const others = {
      ANTHROPIC_API_KEY: 'planted',
      AWS_PROFILE: 'a',
      SVC_TOKEN: 'b',
      SSH_AUTH_SOCK: '/s',
      NODE_OPTIONS: '-r x',
    };
    expect(npmEnvironment({ ...kept, ...others })).toEqual(kept);
  });

  test("gets svc's own proxy instead of the shell's", () => {
    const shell = { PATH: '/bin', https_proxy: 'http://shell.test:1', HTTP_PROXY: 'http://shell.test:1' };
    const own = 'http://svc.test:3128';
    expect(npmEnvironment({ ...shell, SVC_UPSTREAM_PROXY: own })).toEqual({ PATH: '/bin', HTTPS_PROXY: own });
    expect(npmEnvironment({ ...shell, SVC_UPSTREAM_PROXY: 'off' })).toEqual({ PATH: '/bin' });
  });

  test.each(['11.10.0', '12.0.0'])('is used as it is if it is %s', async (version) => {
    const npm = said(version, null);
    expect(await trustedNpm(npm, scratch, expect.unreachable)).toBe(npm);
  });

  test.each(['9.2.0', '10.9.4', '11.9.0', 'nothing'])(
    'fetches a newer one if it is %s, and uses no other',
    async (version) => {
      const other = trustedNpm(said(version, 'another program'), scratch, (text) => notes.push(text));
      await expect(other).rejects.toMatchObject({
        message: 'what the registry gives as npm 11.19.1 is another program: not used',
      });
      expect(notes.at(-1)).toContain('fetching npm 11.19.1');
      rmSync(join(scratch, 'npm'), { recursive: true });
      const none = trustedNpm(said(version, null), scratch, () => {});
      await expect(none).rejects.toMatchObject({
        fixes: ['the reason', 'Or install it: npm install --global npm@11.19.1'],
      });
    },
  );
});
