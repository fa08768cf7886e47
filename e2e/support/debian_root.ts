import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, runOk } from './program.ts';

const PROGRAMS = join(ROOT, 'e2e', 'matrix', 'programs');
/** What debootstrap installs with the smallest system, so that its set-up runs as on any Debian. */
const INSTALLED = ['ca-certificates', 'curl', 'iproute2', 'procps'];
/** What is copied from this machine, which has it for the other tests: installing it anew takes minutes. */
const COPIED = ['git', 'python3', 'python3-requests', 'awscli'];
const SCRIPTS = ['items_fetch.mjs', 'items_requests.py', 'items_urllib.py'];

/** All that the content of the Debian root depends on. */
export async function describeDebianRoot(): Promise<string> {
  const own = [import.meta.filename, ...[...SCRIPTS, 'items.go', 'Items.java'].map((name) => join(PROGRAMS, name))];
  const versions = await runOk('dpkg-query', ['-W', '-f', '${Package} ${Version}\n', ...COPIED, 'libc6', 'golang-go']);
  const java = await runOk('java', ['--version']);
  const sources = own.map((path) => readFileSync(path, 'utf8'));
  return [await suite(), process.version, versions.stdout, java.stdout, ...sources].join('\n');
}

export async function buildDebianRoot(root: string): Promise<void> {
  const clients = mkdtempSync(join(tmpdir(), 'svc-e2e-clients-'));
  // Side by side: one waits for packages, the other compiles.
  await Promise.all([installDebian(root), buildClients(clients)]);
  await copyPackages(root);
  await runOk('cp', ['-a', `${clients}/.`, root], { timeoutMs: 120_000 });
  rmSync(clients, { recursive: true });
}

async function installDebian(root: string): Promise<void> {
  const include = `--include=${INSTALLED.join(',')}`;
  const { mirror } = await archive();
  await runOk('debootstrap', ['--variant=minbase', include, await suite(), root, mirror], { timeoutMs: 300_000 });
  for (const left of ['var/cache/apt/archives', 'var/lib/apt/lists']) {
    await runOk('find', [join(root, left), '-type', 'f', '-delete']);
  }
}

async function suite(): Promise<string> {
  return (await runOk('sh', ['-c', '. /etc/os-release && echo "$VERSION_CODENAME"'])).stdout.trim();
}

/** Where this machine gets its packages of that suite from. */
async function archive(): Promise<{ mirror: string }> {
  const format = ['indextargets', '--format', '$(SITE) $(RELEASE) $(COMPONENT)', 'Created-By: Packages'];
  const lines = (await runOk('apt-get', format)).stdout.split('\n').map((line) => line.split(' '));
  const name = await suite();
  const mirror = lines.find(([, release, component]) => release === name && component === 'main')?.[0];
  if (mirror === undefined) throw new Error(`apt has no source of ${name} main`);
  return { mirror };
}

/** The files of the packages, and of all they need, that the root does not have. */
async function copyPackages(root: string): Promise<void> {
  const recurse = [
    '--no-suggests',
    '--no-recommends',
    '--no-conflicts',
    '--no-breaks',
    '--no-replaces',
    '--no-enhances',
  ];
  const tree = await runOk('apt-cache', ['depends', '--recurse', '--installed', ...recurse, ...COPIED]);
  const there = await runOk('dpkg-query', ['--admindir', join(root, 'var', 'lib', 'dpkg'), '-W', '-f', '${Package}\n']);
  const has = new Set(there.stdout.split('\n'));
  const needed = tree.stdout.split('\n').filter((line) => /^[a-z0-9]/.test(line) && !has.has(line));
  const listed = await runOk('dpkg-query', ['-L', ...new Set(needed)]);
  const unread = /^\/usr\/share\/(doc|man|locale|info|lintian)\/|^\/\.$/;
  const files = [...new Set(listed.stdout.split('\n'))].filter((path) => path.startsWith('/') && !unread.test(path));
  const list = join(root, 'tmp', 'files');
  writeFileSync(list, `${files.join('\n')}\n`);
  const from = `tar -C / --no-recursion --ignore-failed-read -cf - --files-from '${list}' 2>/dev/null`;
  await runOk('sh', ['-c', `${from} | tar -C '${root}' --keep-directory-symlink -xf - && rm '${list}'`]);
}

/** The locked Node, a small JVM, and one program for each client that is a library, in their places under a root. */
async function buildClients(root: string): Promise<void> {
  const bin = join(root, 'usr', 'local', 'bin');
  const clients = join(root, 'opt', 'clients');
  for (const folder of [bin, clients]) mkdirSync(folder, { recursive: true });
  await runOk('cp', ['--dereference', join(ROOT, 'node_modules', '.bin', 'node'), join(bin, 'node')]);
  chmodSync(join(bin, 'node'), 0o755);
  const modules = 'java.base,java.net.http,jdk.crypto.ec';
  const small = ['--strip-debug', '--no-man-pages', '--no-header-files'];
  await runOk('jlink', ['--add-modules', modules, ...small, '--output', join(root, 'opt', 'java')]);
  symlinkSync('/opt/java/bin/java', join(bin, 'java'));
  await runOk('javac', ['-d', clients, join(PROGRAMS, 'Items.java')]);
  await buildGoProgram(join(clients, 'items'));
  for (const name of SCRIPTS) copyFileSync(join(PROGRAMS, name), join(clients, name));
  // The root is its owner's alone, and becomes the container's `/`.
  chmodSync(root, 0o755);
}

/** A program without libraries, which runs on any root. */
async function buildGoProgram(to: string): Promise<void> {
  const env = { CGO_ENABLED: '0', GOCACHE: `${to}-cache`, GOFLAGS: '-buildvcs=false' };
  await runOk('go', ['build', '-o', to, join(PROGRAMS, 'items.go')], { env, timeoutMs: 120_000 });
  await runOk('rm', ['-rf', `${to}-cache`]);
}
