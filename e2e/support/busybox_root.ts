import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DockerEngine } from './docker_engine.ts';
import { runOk } from './program.ts';

const FOLDERS = [
  'bin',
  'sbin',
  'usr/bin',
  'usr/sbin',
  'usr/local/bin',
  'etc/ssl/certs',
  'opt/clients',
  'dev',
  'proc',
  'sys',
];
const PEOPLE = ['root:x:0:0:root:/root:/bin/sh', 'nobody:x:65534:65534:nobody:/:/sbin/nologin'];

/** Only BusyBox, with users, folders and a trust store laid out like Alpine's, and the Go program. */
export async function buildBusyboxRoot(root: string, engine: DockerEngine, debianBase: string): Promise<void> {
  for (const folder of [...FOLDERS, 'home', 'root', 'run', 'var', 'usr/local/share/ca-certificates']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  mkdirSync(join(root, 'tmp'));
  await runOk('chmod', ['1777', join(root, 'tmp')]);
  await installBusybox(root);
  writeFileSync(join(root, 'etc', 'passwd'), `${PEOPLE.join('\n')}\n`);
  writeFileSync(join(root, 'etc', 'group'), 'root:x:0:root\nnogroup:x:65534:\n');
  writeFileSync(join(root, 'etc', 'shells'), '/bin/sh\n');
  writeFileSync(join(root, 'etc', 'alpine-release'), '3.20.0\n');
  writeFileSync(join(root, 'etc', 'os-release'), 'ID=alpine\nVERSION_ID=3.20.0\nPRETTY_NAME="Alpine-like"\n');
  await copyFromImage(engine, debianBase, {
    '/etc/ssl/certs/ca-certificates.crt': join(root, 'etc', 'ssl', 'certs', 'ca-certificates.crt'),
    '/opt/clients/items': join(root, 'opt', 'clients', 'items'),
  });
  symlinkSync('certs/ca-certificates.crt', join(root, 'etc', 'ssl', 'cert.pem'));
}

async function installBusybox(root: string): Promise<void> {
  const program = (await runOk('sh', ['-c', 'command -v busybox'])).stdout.trim();
  copyFileSync(program, join(root, 'bin', 'busybox'));
  await copyLibraries(program, root);
  const applets = (await runOk(program, ['--list-full'])).stdout.trim().split('\n');
  for (const applet of applets) {
    const path = join(root, applet);
    if (applet === 'bin/busybox') continue;
    mkdirSync(join(path, '..'), { recursive: true });
    symlinkSync('/bin/busybox', path);
  }
}

/** A BusyBox that is not static needs its libraries. */
async function copyLibraries(program: string, root: string): Promise<void> {
  const listed = await runOk('sh', ['-c', `ldd '${program}' 2>/dev/null | grep -o '/[^ ]*' || true`]);
  for (const library of listed.stdout.split('\n').filter((path) => path.startsWith('/'))) {
    mkdirSync(join(root, library, '..'), { recursive: true });
    copyFileSync(library, join(root, library));
  }
}

async function copyFromImage(engine: DockerEngine, image: string, files: Record<string, string>): Promise<void> {
  const container = await engine.docker('create', '--network', 'none', image, '/bin/true');
  for (const [from, to] of Object.entries(files)) await engine.docker('cp', `${container}:${from}`, to);
  await engine.docker('rm', container);
}
