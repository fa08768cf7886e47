import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { type AgentServices, SERVICE_HOSTS, startServices } from '../agents/services.ts';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, SVC, systemPath } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { runAtTerminal, type TerminalReport, type TerminalStep } from '../support/terminal.ts';
import { createTestCa } from '../support/test_ca.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';

// The real Claude Code in a container, by its name: its image, its home, and where its credential is not.

const SECRET = `sk-ant-api03-${randomBytes(36).toString('base64url')}`;
const ANSWER = `answer-${randomBytes(8).toString('hex')}`;
const AGENT_ID = 1000;
/** The agent may read its packages, and change none. */
const LIST_PACKAGES = 'cd /opt/svc-agent && find "$PWD" -maxdepth 2 && touch package.json && echo written';
const oneContainer = z.tuple([
  z.looseObject({
    Image: z.string(),
    Config: z.looseObject({ Env: z.array(z.string()) }),
    HostConfig: z.looseObject({ NetworkMode: z.string() }),
    Mounts: z.array(z.looseObject({ Type: z.string(), Name: z.string().optional(), Destination: z.string() })),
  }),
]);

let bench: Bench;
let services: AgentServices;
let svc: Svc;
let project: string;
let placeholder: string;
let image = '';

/** What the engine and the machine hold while the model has not answered yet. */
interface Seen {
  readonly container: z.output<typeof oneContainer>[0];
  readonly said: string;
  readonly secret: readonly string[];
  readonly placeholder: readonly string[];
}

async function look(): Promise<Seen> {
  const [id = ''] = await bench.containersOf(svc);
  const said = await bench.engine.docker('inspect', id);
  const [container] = oneContainer.parse(JSON.parse(said));
  const [secret, replaced] = [searchProcesses(SECRET).holding, searchProcesses(placeholder).holding];
  return { container, said, secret, placeholder: replaced };
}

/** Of a person who launches an agent: npm fetches it. */
const environment = (): Record<string, string> => ({
  ...bench.engine.environment,
  PATH: [join(bench.engine.folder, 'bin'), systemPath()].join(delimiter),
});

const launch = (...args: readonly string[]): Promise<Finished> =>
  svc.cli(['launch', ...args], { cwd: project, env: environment() });

const atTerminal = (steps: readonly TerminalStep[], ...args: readonly string[]): Promise<TerminalReport> =>
  runAtTerminal(steps, [SVC, 'launch', ...args], { cwd: project, env: { ...environment(), SVC_HOME: svc.home } });

/** The folder of the one home that there is, on this machine. */
async function homeVolume(): Promise<{ readonly name: string; readonly path: string }> {
  const { homes } = z
    .object({ homes: z.array(z.object({ volume: z.string(), agent: z.string(), folder: z.string() })) })
    .parse(JSON.parse((await svc.cli(['agents', 'homes', '--json'], { env: bench.engine.environment })).stdout));
  expect(homes).toMatchObject([{ agent: 'claude', folder: project }]);
  const name = homes[0]?.volume ?? '';
  return { name, path: await bench.engine.docker('volume', 'inspect', '--format', '{{.Mountpoint}}', name) };
}

describeContainers('svc launch claude', () => {
  beforeAll(async () => {
    bench = await openBench();
    const ca = await createTestCa();
    services = await startServices(await ca.issue(SERVICE_HOSTS), { 'user/anthropic': SECRET }, ANSWER);
    const resolve = SERVICE_HOSTS.map((host) => `${host}:127.0.0.1:${services.port}`);
    svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve, env: bench.engine.environment });
    project = bench.folder('project');
    await svc.cli(['login', 'claude', '--stdin'], { input: SECRET });
    const bindings = z
      .object({ items: z.array(z.object({ sentinel: z.object({ value: z.string() }) })) })
      .parse(JSON.parse(await svc.ok(['binding', 'list', '--json'])));
    placeholder = bindings.items[0]?.sentinel.value ?? '';
  });
  afterAll(async () => {
    await svc.cli(['agents', 'homes', '--forget-all'], { env: bench.engine.environment });
    if (image !== '') await bench.engine.docker('image', 'rm', '--force', image);
    await svc.stop();
    await services.close();
    bench.clear();
  });

  it('makes the image, asks nothing at its first start, and answers, sealed', async () => {
    expect(placeholder).toMatch(/^sk-ant-api03-/);
    const looks: Promise<Seen>[] = [];
    services.onAnswer(() => {
      const seen = look();
      looks.push(seen);
      return seen;
    });
    const flags = ['--base', bench.images.debianBase, '--egress=sealed'];
    const first = await atTerminal(
      [{ expect: ANSWER }, { type: '/exit\r' }, { expect: 'svc audit list' }],
      ...flags,
      'claude',
      'say hello',
    );
    expect([first.code, first.missed, first.code === 0 ? '' : first.shown]).toEqual([0, null, '']);
    expect(first.shown).toContain('svc: making an image with Claude Code');
    expect(first.shown).toMatch(/svc: \d+ requests, [1-9]\d* with a credential, \d+ refused; svc audit list --session/);
    expect(services.refused).toEqual([]);
    expect(foundIn(first.shown, SECRET)).toEqual([]);
    const [seen] = await Promise.all(looks);
    image = seen?.container.Image ?? '';
    expect(seen?.container.HostConfig.NetworkMode).toBe('none');
    expect(seen?.container.Config.Env).toContain(`ANTHROPIC_API_KEY=${placeholder}`);
    expect(foundIn(seen?.said ?? '', SECRET)).toEqual([]);
    expect(seen?.secret).toEqual([]);
    expect(seen?.placeholder.length).toBeGreaterThan(0);
  });

  it('uses image and home again, with another reach', async () => {
    const again = await launch('--base', bench.images.debianBase, 'claude', '-p', 'say hello');
    expect(again.code === 0 ? again.stdout : again.stderr).toContain(ANSWER);
    expect(again.stderr).not.toContain('making an image');
    expect(again.stderr).toMatch(/^svc: \d+ requests, [1-9]\d* with a credential, \d+ refused; svc audit list/m);
    expect(again.code).toBe(0);
    expect(services.refused).toEqual([]);
  });

  it('keeps the home in a volume, with the placeholder where Claude Code wants it, and no credential', async () => {
    const { name, path } = await homeVolume();
    expect(name).toMatch(/^svc-home-claude-[0-9a-f]{16}$/);
    const files = searchFiles(path, SECRET);
    expect(files.searched).toBeGreaterThan(1);
    expect(files.holding).toEqual([]);
    expect(searchFiles(path, placeholder.slice(-20)).holding).toContain(join(path, '.claude.json'));
    expect(statSync(join(path, '.claude.json')).uid).toBe(AGENT_ID);
    expect(searchFiles(svc.home, SECRET).holding).toEqual([]);
  });

  it('makes an image without credentials, and without the places that its packages came from', async () => {
    for (const args of [
      ['image', 'inspect', image],
      ['history', '--no-trunc', image],
    ]) {
      expect(foundIn(await bench.engine.docker(...args), SECRET)).toEqual([]);
    }
    const found = await launch('--image', image, '--', 'sh', '-c', LIST_PACKAGES);
    expect(found.stdout).toContain('/opt/svc-agent/package.json');
    expect(found.stdout).not.toContain('lock.json');
    expect(found.stdout).not.toContain('written');
  });

  it('refuses a base without Node, and builds nothing', async () => {
    const refused = await launch('--base', bench.images.busyboxBase, 'claude');
    expect(refused).toMatchObject({ code: 125, stdout: '' });
    expect(refused.stderr).toContain('has no Node, and agents need Node 22 or newer');
  });
});

describeContainers('the home of an agent', () => {
  const PROFILE = {
    name: 'acme',
    title: 'Acme',
    command: 'sh',
    install: 'make install',
    tried: null,
    source: { title: 'Notes', url: 'https://example.com/' },
    logins: [],
    container: {
      package: 'acme',
      version: '1.0.0',
      files: [{ path: '~/.acme/settings.json', write: 'merge', json: { folder: '{workspace}' } }],
    },
  };
  let folder: string;
  const acme = (script: string): Promise<Finished> =>
    svc.cli(['launch', '--quiet', '--image', bench.images.debian, 'acme', '-c', script], {
      cwd: folder,
      env: bench.engine.environment,
    });

  beforeAll(async () => {
    bench = await openBench();
    svc = await Svc.up({ env: bench.engine.environment });
    mkdirSync(join(svc.home, 'agents'), { mode: 0o700 });
    writeFileSync(join(svc.home, 'agents', 'acme.yaml'), stringify(PROFILE), { mode: 0o600 });
    folder = bench.folder('acme');
  });
  afterAll(async () => {
    await svc.cli(['agents', 'homes', '--forget-all'], { env: bench.engine.environment });
    await svc.stop();
    bench.clear();
  });

  it('has the files of a profile of your own, also in an image of your own, and lasts', async () => {
    const first = await acme('cat .acme/settings.json ../.acme/settings.json 2>/dev/null; echo kept > ~/note; id -un');
    expect(first).toMatchObject({ code: 0, stdout: '{\n  "folder": "/home/agent/workspace"\n}\nagent\n' });
    expect((await acme('cat ~/note')).stdout).toBe('kept\n');
  });

  it('is another one in another folder', async () => {
    const kept = folder;
    folder = bench.folder('other');
    expect((await acme('cat ~/note')).code).not.toBe(0);
    folder = kept;
  });

  it('cannot lead the next start out of the container, or stop it, whatever an agent left there', async () => {
    const outside = join(bench.folder('outside'), 'target.json');
    writeFileSync(outside, '{"mine":true}');
    const poisons = [`ln -s ${outside}`, 'ln -s /etc/passwd', 'mkfifo'].map(
      (command) => `cd && rm -f .acme/settings.json && ${command} .acme/settings.json`,
    );
    for (const next of [...poisons, 'true']) {
      const started = await acme(`echo started; touch /etc/passwd 2>&1 | head -c 5; ${next}`);
      expect(started.stdout).toBe('started\ntouch');
      expect(started.code).toBe(0);
    }
    expect(readFileSync(outside, 'utf8')).toBe('{"mine":true}');
  });

  it('is listed, named when svc stops, and removed by --forget', async () => {
    const listed = await svc.cli(['agents', 'homes'], { env: bench.engine.environment });
    expect(listed.stdout).toContain(folder);
    const forgotten = await svc.cli(['launch', '--forget', 'acme'], { cwd: folder, env: bench.engine.environment });
    expect(forgotten).toMatchObject({ code: 0, stdout: `removed the home of Acme for ${folder}\n` });
    expect((await acme('cat ~/note')).code).not.toBe(0);
    const stopped = await svc.cli(['down', '--yes'], { env: bench.engine.environment });
    expect(stopped.stderr).toContain('homes of agents stay in volumes of the engine: svc agents homes');
    const removed = await svc.cli(['uninstall', '--yes', '--home', svc.home], { env: bench.engine.environment });
    const volumes = /docker volume rm ((?:svc-home-acme-\w+ ?)+)/.exec(removed.stderr)?.[1]?.trim().split(' ') ?? [];
    expect(volumes.length).toBe(2);
    await bench.engine.docker('volume', 'rm', ...volumes);
  });
});
