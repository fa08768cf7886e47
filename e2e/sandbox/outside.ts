import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { AGENT_SETTINGS } from '../../sandbox/bubblewrap/visible_paths.ts';
import { runOk } from '../support/program.ts';

/** What a program in a sandbox must not reach: a home, sockets, and a process of the same user. */
export interface Outside {
  readonly home: string;
  readonly project: string;
  /** The file that tells `escapes.py` where everything is. */
  readonly targets: string;
  /** A file with the secret, for a descriptor that a program inherits. */
  readonly secretFile: string;
  stop(): Promise<void>;
}

const SHM = 'import ctypes,sys; sys.exit(ctypes.CDLL(None).shmget(int(sys.argv[1]), 16, 0o1666) < 0)';

/** Where agents of a project have settings that name programs. */
const AGENT_FOLDERS = Object.values(AGENT_SETTINGS).flat();

/** Makes it all for a user. */
export async function makeOutside(uid: number): Promise<Outside> {
  const root = mkdtempSync(join(tmpdir(), 'svc-e2e-outside-'));
  const home = join(root, 'home');
  const project = join(home, 'project');
  const secret = randomBytes(16).toString('hex');
  const write = (name: string, text = secret): string => {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), `${text}\n`);
    return join(root, name);
  };
  for (const name of ['.ssh/id_ed25519', 'notes.txt', '.codex/auth.json', '.local/share/keyrings/login.keyring']) {
    write(`home/${name}`);
  }
  for (const name of ['config', 'hooks/x', 'HEAD']) write(`home/project/.git/${name}`, '');
  for (const name of ['.envrc', '.vscode/x', '.idea/x', ...AGENT_FOLDERS.map((folder) => `${folder}/x`)]) {
    write(`home/project/${name}`, '');
  }
  for (const name of ['config', 'hooks/x', 'HEAD']) write(`home/project/app/.git/${name}`, '');
  symlinkSync(join(home, '.ssh/id_ed25519'), join(project, 'link'));
  const [state, neighbour, temporary] = [write('state/host.token'), write('neighbour/file'), write('temporary')];
  const shm = `/dev/shm/svc-e2e-${randomBytes(6).toString('hex')}`;
  writeFileSync(shm, secret);
  const shmKey = randomInt(1, 2 ** 30);
  const servers = await startServers(root);
  await runOk('python3', ['-c', SHM, String(shmKey)]);
  const process = spawn('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--', 'sleep', '3600'], {
    env: { PATH: '/usr/bin:/bin', SECRET: secret },
    stdio: 'ignore',
  });
  const targets = write(
    'home/project/targets.json',
    JSON.stringify({
      ...servers.targets,
      home,
      project,
      secret,
      state,
      neighbour,
      temporary,
      shm,
      neighbour_folder: dirname(neighbour),
      shm_key: shmKey,
      pid: process.pid,
    }),
  );
  giveTo(root, uid);
  chownSync(shm, uid, uid);
  return {
    home,
    project,
    targets,
    secretFile: state,
    stop: async () => {
      await stopProcess(process);
      await servers.stop();
      await runOk('ipcrm', ['-M', String(shmKey)]);
      for (const path of [root, shm]) rmSync(path, { recursive: true, force: true });
    },
  };
}

function answeringServer(): Server {
  return createServer((socket) => socket.on('error', () => undefined).end('outside'));
}

async function startServers(root: string): Promise<{ readonly targets: object; stop(): Promise<void> }> {
  const abstract = `svc-e2e-${randomBytes(6).toString('hex')}`;
  const [docker, bus, other] = ['docker.sock', 'bus', 'proxy.sock'].map((name) => join(root, name));
  const servers: Server[] = [];
  const listen = async (where: object): Promise<number> => {
    const server = answeringServer();
    servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(where, resolve);
    });
    const at = server.address();
    return typeof at === 'object' && at !== null ? at.port : 0;
  };
  const tcp = await listen({ port: 0, host: '127.0.0.1' });
  const tcp6 = await listen({ port: 0, host: '::1' }).catch(() => 0);
  for (const path of [`\0${abstract}`, docker, bus, other]) await listen({ path });
  const udp = createSocket('udp4');
  udp.on('message', (_, { port, address }) => udp.send('outside', port, address));
  await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
  const stop = async (): Promise<void> => {
    udp.close();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  };
  return { targets: { tcp, tcp6, udp: udp.address().port, abstract, docker, bus, other }, stop };
}

async function stopProcess(process: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => process.once('exit', resolve));
  process.kill('SIGKILL');
  await ended;
}

function giveTo(root: string, uid: number): void {
  chmodSync(root, 0o755);
  chownSync(root, uid, uid);
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) chownSync(join(entry.parentPath, entry.name), uid, uid);
  }
}
