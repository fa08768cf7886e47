import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { contentOf, entriesUnder } from '../support/files_under.ts';
import { foundIn, plantSecret, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { waitFor } from '../support/wait_for.ts';
import { type ContainerWorld, describeContainers, startBoundContainerWorld } from './container_world.ts';

// Specification section 1.1: no raw credential in the container's environment, image layers, mounted files or arguments.

const HOST = 'api.example.test';
const SECRET = plantSecret();
const LOOP = `curl -sS https://${HOST}/running > got && touch started && while [ ! -e stop ]; do sleep 0.1; done`;
const oneContainer = z.tuple([
  z.looseObject({ Config: z.looseObject({ Env: z.array(z.string()), Cmd: z.array(z.string()) }) }),
]);
let world: ContainerWorld;
let workspace: string;
let launched: ReturnType<ContainerWorld['launch']>;
let container = '';
let token = '';

describeContainers('a secret of the vault', () => {
  beforeAll(async () => {
    world = await startBoundContainerWorld([HOST], SECRET);
    workspace = world.bench.folder('agent');
    launched = world.launch([], ['sh', '-c', LOOP], { cwd: workspace });
    launched.catch(() => undefined);
    await waitFor('the agent to have its answer', () => readdirSync(workspace).includes('started'));
    [container = ''] = await world.bench.containersOf(world.svc);
    const [{ Config }] = oneContainer.parse(JSON.parse(await world.bench.engine.docker('inspect', container)));
    token = Config.Env.find((line) => line.startsWith('SVC_TOKEN='))?.slice('SVC_TOKEN='.length) ?? '';
  });
  afterAll(async () => {
    writeFileSync(join(workspace, 'stop'), '');
    await launched;
    await world.stop();
  });

  it('reached the upstream from the container that is searched here', () => {
    expect(readFileSync(join(workspace, 'got'), 'utf8')).toBe('ok');
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    expect(token.length).toBeGreaterThan(20);
  });

  it('is in no information that the engine has about the container or its image', async () => {
    const { engine, images } = world.bench;
    for (const args of [
      ['inspect', container],
      ['image', 'inspect', images.debian],
      ['history', '--no-trunc', images.debian],
      ['top', container, '-eo', 'pid,args'],
      ['logs', container],
      ['diff', container],
    ]) {
      const said = await engine.run(args);
      expect(said.code).toBe(0);
      expect(foundIn(said.stdout + said.stderr, SECRET)).toEqual([]);
    }
  });

  it('is in no file of the container', async () => {
    const root = await world.bench.exportChanges(container);
    const { searched, holding } = searchFiles(root, SECRET);
    expect(searched).toBeGreaterThan(0);
    expect(holding).toEqual([]);
    expect(privateKeysUnder(root)).toEqual([]);
  });

  it('is in no environment and no argument of any process on this machine', () => {
    const { searched, holding } = searchProcesses(SECRET);
    expect(searched).toBeGreaterThan(10);
    expect(holding).toEqual([]);
  });

  it('is not in what ps shows inside', async () => {
    const said = await world.bench.engine.docker('exec', '--user', '0', container, 'ps', 'auxwwwe');
    expect(said).toContain('SVC_SESSION_ID=');
    expect(foundIn(said, SECRET)).toEqual([]);
  });

  it('is in no mounted folder', async () => {
    const listed = await world.bench.engine.docker(
      'inspect',
      '--format',
      '{{range .Mounts}}{{.Source}} {{.Destination}} {{.RW}}\n{{end}}',
      container,
    );
    const mounts = listed
      .trim()
      .split('\n')
      .map((line) => line.trim().split(' '));
    const places = new Set(mounts.map(([, destination]) => destination));
    expect(places).toEqual(new Set(['/etc/svc/proxy/ca.pem', '/home/agent/workspace']));
    for (const [source = '', destination, writable] of mounts) {
      const own = lstatSync(source).isDirectory()
        ? searchFiles(source, SECRET).holding
        : foundIn(readFileSync(source), SECRET);
      expect(own).toEqual([]);
      expect(writable).toBe(String(destination === '/home/agent/workspace'));
    }
  });

  it('is in no file of svc except the encrypted vault, and in no output of svc', () => {
    expect(searchFiles(world.svc.home, SECRET).holding).toEqual([]);
    expect(foundIn(world.svc.output, SECRET)).toEqual([]);
  });

  it('comes with a session token that is in no process argument, and a CA key that stays outside', async () => {
    const holding = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => readIfThere(`/proc/${pid}/cmdline`).includes(token));
    expect(holding).toEqual([]);
    const seen = await world.bench.engine.docker(
      'exec',
      '--user',
      '0',
      container,
      'sh',
      '-c',
      'ls /etc/svc/proxy; cat /etc/svc/proxy/*',
    );
    expect(seen).toMatch(/^ca\.pem\n-----BEGIN CERTIFICATE-----/);
    expect(seen).not.toContain('PRIVATE KEY');
  });

  it("is out of the agent's reach: it has no capability and cannot become root", async () => {
    const done = await world.launch(
      [],
      [
        'sh',
        '-c',
        'grep -E "^(CapEff|CapPrm|CapAmb|CapInh|NoNewPrivs)" /proc/self/status; cat /run/svc/* /proc/1/environ 2>&1; su -c id 2>&1; true',
      ],
    );
    expect(done.stdout).toMatch(/CapEff:\s+0{16}/);
    expect(done.stdout).toMatch(/CapPrm:\s+0{16}/);
    expect(done.stdout).toMatch(/NoNewPrivs:\s+1/);
    expect(done.stdout).not.toContain('uid=0');
  });
});

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function privateKeysUnder(root: string): string[] {
  const files = [...entriesUnder(root)].flatMap((entry) => contentOf(entry) ?? []);
  return files
    .filter(({ bytes }) => /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(bytes.toString('latin1')))
    .map(({ path }) => path);
}
