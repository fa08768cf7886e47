import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOf } from '../support/full_counts.ts';
import { runOk } from '../support/program.ts';
import { NOBODY, runAs, SVC_DIRECTLY } from './run_as.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';

// Invalid input of a launch: each is refused with the problem and the fix, and nothing is started. The unit tests of
// sandbox/launch/ have every case, so a sample of each kind is enough here.

let world: ContainerWorld;

async function expectRefused(
  flags: readonly string[],
  problem: RegExp,
  env: Readonly<Record<string, string>> = {},
  code = 125,
) {
  const done = await world.launch(flags, ['echo', 'ran'], { env });
  expect({ code: done.code, stdout: done.stdout }).toEqual({ code, stdout: '' });
  expect(done.stderr).toMatch(problem);
  expect(await world.bench.containersOf(world.svc)).toEqual([]);
  expect((await world.svc.local('GET', '/v1/sandbox-proxy/sessions')).body).toMatchObject({ items: [] });
  return done;
}

describeContainers('a launch that cannot be', () => {
  beforeAll(async () => {
    world = await startContainerWorld(['api.example.test']);
  });
  afterAll(() => world.stop());

  describe('by its mounts', () => {
    it('refuses the state directory, its contents and its parents', async () => {
      const { home } = world.svc;
      const sources = [`${home}/sidecar/..`, dirname(home), home, '/', join(home, 'sidecar'), join(home, 'control.db')];
      for (const source of sampleOf(sources, 1)) {
        await expectRefused(['--mount', `${source}:/mnt/data`], /--mount/);
      }
    });

    it('refuses symlinks to it, also chained ones and through a parent', async () => {
      const folder = world.bench.folder('links');
      symlinkSync(world.svc.home, join(folder, 'direct'));
      symlinkSync('direct', join(folder, 'chained'));
      symlinkSync(dirname(world.svc.home), join(folder, 'parent'));
      const name = world.svc.home.slice(dirname(world.svc.home).length + 1);
      const links = [`parent/${name}/sidecar`, 'chained', 'parent', 'direct', 'chained/sidecar'];
      for (const link of sampleOf(links, 1)) {
        await expectRefused(['--mount', `${join(folder, link)}:/mnt/data:ro`], /--mount/);
      }
    });

    it('refuses the working directory if it is the state directory or contains it', async () => {
      const done = await world.launch([], ['echo', 'ran'], { cwd: world.svc.home });
      expect(done).toMatchObject({ code: 125, stdout: '' });
      expect(done.stderr).toContain('--no-default-mount');
      const without = await world.launch(['--no-default-mount'], ['pwd'], { cwd: world.svc.home });
      expect(without.code).toBe(0);
    });

    it("refuses the engine's socket, symlinks to it and its folder", async () => {
      const folder = world.bench.folder('socket');
      const { socket } = world.bench.engine;
      symlinkSync(socket, join(folder, 'link'));
      for (const source of sampleOf([join(folder, 'link'), dirname(socket), socket], 1)) {
        await expectRefused(['--mount', `${source}:/mnt/docker.sock`], /engine|host itself|file system/);
      }
    });

    it("refuses the kernel's file systems, and a missing source", async () => {
      for (const source of sampleOf(['/proc/1/root', '/there/is/no/such/path', '/proc', '/sys', '/dev'], 1)) {
        await expectRefused(['--mount', `${source}:/mnt/data`], /--mount/);
      }
    });

    it.each(sampleOf(['/etc/svc/proxy', '/', '/etc', '/run/svc', '/usr/local/bin', '/usr', '/proc'], 1))(
      'refuses to cover %s of the image',
      async (target) => {
        await expectRefused(['--mount', `${world.bench.folder('cover')}:${target}`], /--mount/);
      },
    );

    const malformed = ['relative:path', ':/x', '/x', '/x:/y:rwz', ''];
    it.each(sampleOf(malformed, 1))('refuses %j as a mount: a usage error', async (text) => {
      await expectRefused(['--mount', text], /--mount/, {}, 2);
    });

    it('accepts a valid mount: read-only stays read-only', async () => {
      const folder = world.bench.folder('data');
      writeFileSync(join(folder, 'file'), 'from the host');
      const done = await world.launch(
        ['--mount', `${folder}:/mnt/data:ro`],
        ['sh', '-c', 'cat /mnt/data/file; touch /mnt/data/new'],
      );
      expect(done.stdout).toBe('from the host');
      expect(done.stderr).toContain('Read-only file system');
      expect(done.code).not.toBe(0);
    });
  });

  describe('by the engine', () => {
    it('names the program if docker is missing', async () => {
      const folder = world.bench.folder('empty');
      const env = { PATH: `${folder}:${dirname(process.execPath)}` };
      symlinkSync('/bin/sh', join(folder, 'sh'));
      for (const program of ['dirname', 'readlink', 'uname', 'env'])
        symlinkSync(`/usr/bin/${program}`, join(folder, program));
      await expectRefused([], /docker.*not on the PATH/s, env);
    });

    it('names the socket if no engine listens', async () => {
      await expectRefused([], /no Docker Engine listens at unix:\/\/\/nowhere/, {
        DOCKER_HOST: 'unix:///nowhere/docker.sock',
      });
    });

    it('names the socket if something other than an engine answers', async () => {
      const path = join(world.bench.folder('other'), 'docker.sock');
      const other = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n');
      });
      await new Promise<void>((resolve) => other.listen(path, resolve));
      await expectRefused([], /engine/i, { DOCKER_HOST: `unix://${path}` });
      other.close();
    });

    const remote = [
      'ssh://somebody:hunter2@build.example.test',
      'tcp://127.0.0.1:2375',
      'npipe:////./pipe/docker_engine',
    ];
    it.each(sampleOf(remote, 1))('refuses the remote engine %s by name', async (endpoint) => {
      const done = await expectRefused([], /Docker (Engine|context)/, { DOCKER_HOST: endpoint });
      expect(done.stderr).not.toContain('hunter2');
    });

    it('refuses a remote context by name', async () => {
      const config = join(world.bench.folder('contexts'), 'config');
      mkdirSync(config);
      // An explicitly named engine takes precedence over a context, even with an empty name.
      const { DOCKER_HOST: _, ...rest } = world.bench.engine.environment;
      const env = { ...rest, DOCKER_CONFIG: config };
      const client = (...args: string[]): Promise<unknown> => runOk('docker', ['context', ...args], { env });
      const expectRefusal = async (more: Readonly<Record<string, string>>): Promise<void> => {
        const launch = ['launch', '--no-default-mount', '--image', world.bench.images.debian, '--', 'echo', 'ran'];
        const done = await world.svc.cli(launch, { env: { ...env, ...more } });
        expect({ code: done.code, stdout: done.stdout }).toEqual({ code: 125, stdout: '' });
        expect(done.stderr).toContain('tcp://build.example.test:2376');
      };
      await client('create', 'far', '--docker', 'host=tcp://build.example.test:2376');
      await expectRefusal({ DOCKER_CONTEXT: 'far' });
      await client('use', 'far');
      await expectRefusal({});
    });

    it('says if the user may not use the socket', async () => {
      // The state directory belongs to the user who runs svc, so the other user gets their own.
      const home = join(world.bench.folder('nobody'), 'home');
      await runOk('cp', ['-r', world.svc.home, home]);
      await runOk('chown', ['-R', `${NOBODY}:${NOBODY}`, home]);
      const launch = ['launch', '--no-default-mount', '--image', world.bench.images.debian, '--', 'echo', 'ran'];
      const done = await runAs(NOBODY, [...SVC_DIRECTLY, ...launch], {
        ...world.bench.engine.environment,
        SVC_HOME: home,
      });
      expect({ code: done.code, stdout: done.stdout }).toEqual({ code: 125, stdout: '' });
      expect(done.stderr).toMatch(/may not use the Docker Engine at .* \(permission denied\)/);
    });
  });

  const usage: [string[], RegExp][] = [
    [['--image', '-v=/:/host'], /--image/],
    [['--name', '../x'], /--name/],
    [['--workdir', 'relative'], /--workdir/],
    [['--name', ''], /--name/],
    [['--ttl', 'soon'], /--ttl/],
    [['--image', ''], /--image/],
    [['--image', '--privileged'], /--image/],
  ];
  it.each(sampleOf(usage, 1))('refuses %j as a usage error', async (flags, problem) => {
    await expectRefused(flags, problem, {}, 2);
  });
});
