import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, runOk } from './program.ts';

const PROGRAMS = join(ROOT, 'e2e', 'matrix', 'programs');
/** What is installed beside the smallest system: what every Debian has, and the clients that play the agent. */
const INSTALLED = ['ca-certificates', 'curl', 'iproute2', 'procps', 'git', 'python3', 'python3-requests', 'awscli'];
const UNREAD = ['doc', 'man', 'locale', 'info', 'lintian'];
const SCRIPTS = ['items_fetch.mjs', 'items_requests.py', 'items_urllib.py'];

/** Everything that the content of the Debian root depends on. */
export async function describeDebianRoot(): Promise<string> {
  const own = [import.meta.filename, ...[...SCRIPTS, 'items.go', 'Items.java'].map((name) => join(PROGRAMS, name))];
  const go = await runOk('go', ['version']);
  const java = await runOk('java', ['--version']);
  const sources = own.map((path) => readFileSync(path, 'utf8'));
  return [await suite(), process.version, go.stdout, java.stdout, ...sources].join('\n');
}

export async function buildDebianRoot(root: string): Promise<void> {
  const clients = mkdtempSync(join(tmpdir(), 'svc-e2e-clients-'));
  // Concurrently: one waits for packages, the other compiles.
  await Promise.all([installDebian(root), buildClients(clients)]);
  await runOk('cp', ['-a', `${clients}/.`, root]);
  rmSync(clients, { recursive: true });
}

async function installDebian(root: string): Promise<void> {
  const include = `--include=${INSTALLED.join(',')}`;
  const settings = { env: await proxies() };
  const folder = ['--format=directory', '--mode=root'];
  await runOk('mmdebstrap', ['--variant=minbase', ...folder, include, await suite(), root, await mirror()], settings);
  for (const left of ['var/cache/apt/archives', 'var/lib/apt/lists']) {
    await runOk('find', [join(root, left), '-type', 'f', '-delete']);
  }
  for (const name of UNREAD) rmSync(join(root, 'usr', 'share', name), { recursive: true, force: true });
}

async function suite(): Promise<string> {
  const name = (await runOk('sh', ['-c', '. /etc/os-release && echo "$ID $VERSION_CODENAME"'])).stdout.trim();
  if (!name.startsWith('debian ')) throw new Error(`the images are made from Debian, and this is ${name}`);
  return name.slice('debian '.length);
}

/** Where this machine gets its packages of that suite from, which is known before any list of packages was fetched. */
async function mirror(): Promise<string> {
  const format = ['indextargets', '--format', '$(SITE) $(RELEASE) $(CODENAME) $(COMPONENT)', 'Created-By: Packages'];
  const lines = (await runOk('apt-get', format)).stdout.split('\n').map((line) => line.split(' '));
  const name = await suite();
  const found = lines.find((fields) => fields.slice(1, 3).includes(name) && fields[3] === 'main')?.[0];
  if (found === undefined) throw new Error(`apt has no source of ${name} main`);
  return found;
}

/** The proxies that apt takes its packages through: mmdebstrap does not read the machine's settings. */
async function proxies(): Promise<Record<string, string>> {
  const script =
    'eval "$(apt-config shell HTTP Acquire::http::Proxy HTTPS Acquire::https::Proxy)"; echo "$HTTP"; echo "$HTTPS"';
  const { http_proxy, https_proxy } = process.env;
  const [http = '', https = ''] = (await runOk('sh', ['-c', `HTTP= HTTPS=; ${script}`])).stdout.split('\n');
  const wanted = { http_proxy: http || http_proxy, https_proxy: https || https_proxy };
  return Object.fromEntries(Object.entries(wanted).filter((pair): pair is [string, string] => Boolean(pair[1])));
}

/** The locked Node, a small JVM, and one program for each client that is a library, in their places under a root. */
async function buildClients(root: string): Promise<void> {
  const bin = join(root, 'usr', 'local', 'bin');
  const clients = join(root, 'opt', 'clients');
  for (const folder of [bin, clients]) mkdirSync(folder, { recursive: true });
  await runOk('cp', ['--dereference', join(ROOT, 'node_modules', '.bin', 'node'), join(bin, 'node')]);
  chmodSync(join(bin, 'node'), 0o755);
  const modules = 'java.base,java.net.http,jdk.crypto.ec';
  const small = ['--strip-java-debug-attributes', '--no-man-pages', '--no-header-files'];
  await runOk('jlink', ['--add-modules', modules, ...small, '--output', join(root, 'opt', 'java')]);
  symlinkSync('/opt/java/bin/java', join(bin, 'java'));
  await runOk('javac', ['-d', clients, join(PROGRAMS, 'Items.java')]);
  await buildGoProgram(join(clients, 'items'));
  for (const name of SCRIPTS) copyFileSync(join(PROGRAMS, name), join(clients, name));
  // Only its owner can read the root folder, which becomes the container's `/`.
  chmodSync(root, 0o755);
}

/** A static program, which runs in any root. */
async function buildGoProgram(to: string): Promise<void> {
  const env = { CGO_ENABLED: '0', GOCACHE: `${to}-cache`, GOFLAGS: '-buildvcs=false' };
  await runOk('go', ['build', '-o', to, join(PROGRAMS, 'items.go')], { env });
  await runOk('rm', ['-rf', `${to}-cache`]);
}
