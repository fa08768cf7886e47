import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientFor, engineFiles } from './docker_engine.ts';
import { isRunning } from './process.ts';
import { waitFor } from './wait_for.ts';

// Runs a Docker engine with all its state in one folder and a bridge of its own, until it is told to stop or the process it
// watches is gone; then nothing of it is left. Its arguments: the folder, the process to watch.

const [folder = '', watched = ''] = process.argv.slice(2);
const files = engineFiles(folder);
const bridge = `svce2e${randomBytes(3).toString('hex')}`;

function system(command: string, ...args: string[]): string {
  const done = spawnSync(command, args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`${command} ${args.join(' ')}: ${done.stderr}`);
  return done.stdout;
}

/**
 * The first three numbers of each IPv4 network that an interface of this machine is in, also of one that is down: a bridge
 * that a killed run left behind still has its route, and `os.networkInterfaces` does not list it.
 */
function takenSubnets(): string[] {
  const addresses = system('ip', '-4', '-oneline', 'address', 'show').matchAll(/ inet (\d+\.\d+\.\d+)\./g);
  return [...addresses].map(([, start = '']) => start);
}

/** Gives the bridge a private network that no other interface uses, not even one that another run adds meanwhile. */
function addSubnet(): void {
  for (let tries = 0; tries < 64; tries += 1) {
    const start = `10.213.${randomInt(256)}`;
    if (takenSubnets().includes(start)) continue;
    system('ip', 'address', 'add', `${start}.1/24`, 'dev', bridge);
    if (takenSubnets().filter((each) => each === start).length === 1) return;
    system('ip', 'address', 'delete', `${start}.1/24`, 'dev', bridge);
  }
  throw new Error('no network of 10.213.0.0/16 is free');
}

/** Engines need control groups; a machine without an init system may not have mounted them. */
function mountCgroups(): void {
  if (!/ \/sys\/fs\/cgroup/.test(readFileSync('/proc/mounts', 'utf8'))) spawnSync('cgroupfs-mount');
}

function startEngine(): ChildProcess {
  mountCgroups();
  system('ip', 'link', 'add', 'name', bridge, 'type', 'bridge');
  addSubnet();
  system('ip', 'link', 'set', bridge, 'up');
  writeFileSync(join(folder, 'daemon.json'), '{}');
  const state = ['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'run')];
  const names = ['--containerd-namespace', bridge, '--containerd-plugins-namespace', `${bridge}-plugins`];
  // No packet filter rule and no kernel setting is changed, so nothing has to be restored.
  const network = ['--bridge', bridge, '--iptables=false', '--ip-forward=false', '--ip-masq=false'];
  const place = ['--host', `unix://${files.socket}`, '--pidfile', join(folder, 'dockerd.pid')];
  const settings = ['--config-file', join(folder, 'daemon.json'), '--shutdown-timeout', '3', '--log-level', 'warn'];
  return spawn('dockerd', [...place, ...state, ...names, ...network, ...settings], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: process.env,
  });
}

async function untilItAnswers(engine: ChildProcess): Promise<void> {
  const client = await waitFor(
    'dockerd',
    () => {
      if (engine.exitCode !== null) throw new Error(`dockerd ended with ${engine.exitCode}`);
      return clientFor(`unix://${files.socket}`);
    },
    150_000,
  );
  symlinkSync(client, files.client);
  const written = { endpoint: `unix://${files.socket}`, keeperPid: process.pid };
  writeFileSync(files.state, JSON.stringify(written));
}

/** Every mount at or under the folder, the deepest first. */
function mounts(): string[] {
  const points = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  return points.filter((point) => point.startsWith(`${folder}/`)).toReversed();
}

async function stopEngine(engine: ChildProcess): Promise<void> {
  engine.kill('SIGTERM');
  await waitFor('dockerd to end', () => engine.exitCode !== null || engine.signalCode !== null, 20_000).catch(() =>
    engine.kill('SIGKILL'),
  );
  killAllOf(folder);
  for (const point of mounts()) spawnSync('umount', ['--lazy', point]);
  spawnSync('ip', ['link', 'delete', bridge]);
}

/** The process that a killed engine leaves running: its containerd. */
function killAllOf(place: string): void {
  try {
    process.kill(Number(readFileSync(join(place, 'run', 'containerd', 'containerd.pid'), 'utf8')), 'SIGKILL');
  } catch {
    // It has ended with its engine.
  }
}

async function keep(): Promise<void> {
  let told = false;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => (told = true));
  const engine = startEngine();
  try {
    await untilItAnswers(engine);
    const over = (): boolean => told || engine.exitCode !== null || !isRunning(Number(watched));
    while (!over()) await new Promise((resolve) => setTimeout(resolve, 200));
  } finally {
    await stopEngine(engine);
  }
  // Only after a successful start: the caller reads the log of a failed one.
  rmSync(folder, { recursive: true, force: true });
}

await keep().catch((error: unknown) => {
  // Follows the engine's own output in the log that the caller reads.
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
