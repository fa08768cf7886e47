import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DockerEngine } from '../support/docker_engine.ts';
import { type Finished, run, runOk, shellEnvironment, SVC } from '../support/program.ts';
import { makePerson, type Person, svcOf, withCheckout } from './other_user.ts';

/** A podman with all its state in one folder, and svc beside it as the same user. */
export interface PodmanPlace {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** The same for this process, with a `podman` on the PATH that runs as the place's user. */
  readonly callers: Readonly<Record<string, string>>;
  /** The command that runs svc. */
  readonly svc: readonly [string, ...string[]];
  podman(...args: string[]): Promise<Finished>;
  /** Removes it with everything that it ran. */
  remove(): Promise<void>;
}

/** Without networks, for which podman of a user needs another program, without the right to raise a limit, and with control groups of both versions: what a machine of tests may be like. */
const SETTINGS = (runFolder: string): string => `[containers]
netns = "none"
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "${runFolder}/libpod"
`;

const STORAGE = (folder: string, driver: string): string => `[storage]
driver = "${driver}"
graphroot = "${folder}/store"
runroot = "${folder}/run/containers"
`;

/** Gives podman images of a Docker Engine, under these names. */
export async function giveImages(
  engine: DockerEngine,
  { folder, podman }: Pick<PodmanPlace, 'folder' | 'podman'>,
  images: Readonly<Record<string, string>>,
): Promise<void> {
  const archive = join(folder, 'image.tar');
  await engine.docker('save', '--output', archive, ...new Set(Object.values(images)));
  await runOk('chmod', ['644', archive]);
  const tags = Object.entries(images).map(([name, image]) => ['tag', image, name]);
  for (const args of [['load', '--input', archive], ...tags]) {
    const done = await podman(...args);
    if (done.code !== 0) throw new Error(`podman ${args.join(' ')}: ${done.stderr}`);
  }
  rmSync(archive);
}

/** Podman of root. */
export async function podmanOfRoot(): Promise<PodmanPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-podman-'));
  mkdirSync(join(folder, 'run'));
  const env = { ...shellEnvironment(), ...settingsIn(folder, 'overlay'), SVC_HOME: join(folder, 'home') };
  const podman = (...args: string[]): Promise<Finished> => run('podman', args, { env, cwd: '/' });
  return { folder, env, callers: env, svc: [SVC], podman, remove: () => removePlace(folder, podman) };
}

/** Podman of another user. */
export async function podmanOfUser(): Promise<PodmanPlace> {
  const person = await makePerson('/usr/bin', () => '');
  const { DOCKER_HOST: _, ...own }: Readonly<Record<string, string>> = person.env;
  const env: Record<string, string> = { ...own, ...settingsIn(person.folder, 'vfs'), HOME: person.folder };
  const podman = (...args: string[]): Promise<Finished> => {
    const [program, ...words] = withCheckout(person, ['podman', ...args]);
    return run(program, words, { env, cwd: '/' });
  };
  const callers = { ...env, PATH: `${writeCaller(person)}:${env['PATH'] ?? ''}` };
  const remove = (): Promise<void> => removePlace(person.folder, podman);
  return { folder: person.folder, env, callers, svc: svcOf(person), podman, remove };
}

/** A folder with a `podman` that becomes that user first. */
function writeCaller(person: Person): string {
  const folder = join(person.folder, 'caller');
  mkdirSync(folder);
  const words = withCheckout(person, ['/usr/bin/podman']).map((word) => `'${word}'`);
  writeFileSync(join(folder, 'podman'), `#!/bin/sh\ncd / && exec ${words.join(' ')} "$@"\n`, { mode: 0o755 });
  return folder;
}

function settingsIn(folder: string, driver: string): Record<string, string> {
  const [settings, storage] = [join(folder, 'containers.conf'), join(folder, 'storage.conf')];
  writeFileSync(settings, SETTINGS(join(folder, 'run')));
  writeFileSync(storage, STORAGE(folder, driver));
  return { CONTAINERS_CONF: settings, CONTAINERS_STORAGE_CONF: storage, SVC_SANDBOX_ENGINE: 'podman' };
}

async function removePlace(folder: string, podman: PodmanPlace['podman']): Promise<void> {
  await podman('rm', '--all', '--force', '--time', '0');
  // Ends the process that keeps a user's namespace.
  await podman('system', 'migrate');
  await run('umount', [join(folder, 'store', 'overlay')], {});
  rmSync(folder, { recursive: true, force: true });
}
