// The programs that the end-to-end tests drive: how each is looked for, which is how the tests take it, and the Debian packages
// that bring it. Plain JavaScript: tools/test.mjs is started by the system's Node, and the tests read the same table.
import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';

/** Where a system keeps its own programs; a user's PATH may leave them out. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin'];

/** The PATH of the tests: the one given, and a system's own programs after it. */
export function withSystemFolders(path = '') {
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return [...folders, ...SYSTEM_FOLDERS.filter((folder) => !folders.includes(folder))].join(delimiter);
}

/** What the tests need of a Python by itself; Debian leaves it out of its smallest one, `python3-minimal`. */
export const STANDARD_MODULES = 'pty, ssl, urllib.request, zipfile';

/** True when a shell finds the probe to succeed. */
export function succeeds(probe) {
  const env = { ...process.env, PATH: withSystemFolders(process.env.PATH) };
  return spawnSync('sh', ['-c', probe], { stdio: 'ignore', env }).status === 0;
}

/**
 * The program as it is called: the first on the PATH, or the system's own where that one does not work, as a version manager's
 * placeholder for a version that is not in use. Null when neither works.
 */
function workingProgram(name, args) {
  return [name, `/usr/bin/${name}`].find((program) => succeeds(`${program} ${args}`)) ?? null;
}

/** The Python that has the modules, or null. */
export const pythonWith = (modules) => workingProgram('python3', `-c 'import ${modules}'`);

/** The AWS CLI, or null. */
export const awsCli = () => workingProgram('aws', '--version');

/** The Ruby that has the router of Rails and a server for it, or null. */
export const rubyWithRails = () =>
  workingProgram('ruby', `-e 'require "action_dispatch"; require "webrick"; Rack::Handler::WEBrick'`);

const found = (...programs) => programs.map((program) => `command -v ${program}`).join(' && ');

const ROOTLESS = [
  'getent passwd svc-e2e',
  'grep -q ^svc-e2e: /etc/subuid',
  'grep -q ^svc-e2e: /etc/subgid',
  found('rootlesskit', 'newuidmap'),
].join(' && ');

/** True where the user of the tests can run an engine without being root. */
export const rootlessIsThere = () => succeeds(ROOTLESS);

/**
 * Each part has a probe for a shell, or a function that looks for it; `packages` bring it on Debian, and `setup`
 * does the rest. No container can be tried without those of `containers`.
 */
const SYSTEM_PARTS = [
  {
    name: 'curl with the roots of public authorities',
    probe: 'curl --version && test -s /etc/ssl/certs/ca-certificates.crt',
    packages: ['curl', 'ca-certificates'],
  },
  { name: 'git with git-http-backend', probe: 'test -x "$(git --exec-path)/git-http-backend"', packages: ['git'] },
  { name: 'openssl', probe: 'openssl version', packages: ['openssl'] },
  { name: 'python3', isThere: () => pythonWith(STANDARD_MODULES) !== null, packages: ['python3'] },
  ...['requests', 'httpx', 'boto3', 'pip'].map((module) => ({
    name: `python3 with ${module}`,
    isThere: () => pythonWith(module) !== null,
    packages: ['python3', `python3-${module}`],
  })),
  // Servers of others, which are asked how they read a path.
  { name: 'Flask', isThere: () => pythonWith('flask') !== null, packages: ['python3-flask'] },
  {
    name: 'Django REST framework',
    isThere: () => pythonWith('rest_framework') !== null,
    packages: ['python3-djangorestframework'],
  },
  {
    name: 'the router of Rails',
    isThere: () => rubyWithRails() !== null,
    packages: ['ruby-actionpack', 'ruby-webrick'],
  },
  { name: 'nginx', probe: 'nginx -v', packages: ['nginx-light'] },
  { name: 'wget', probe: 'wget --version', packages: ['wget'] },
  { name: 'ps', probe: found('ps'), packages: ['procps'] },
  { name: 'npm', probe: 'npm --version', packages: ['npm'] },
  { name: 'gh', probe: 'gh --version', packages: ['gh'] },
  { name: 'aws', isThere: () => awsCli() !== null, packages: ['awscli'] },
  { name: 'go', probe: 'go version', packages: ['golang-go'], containers: true },
  {
    name: 'java with javac and jlink',
    probe: 'java --version && javac --version && jlink --version',
    packages: ['default-jdk-headless'],
    containers: true,
  },
  { name: 'chromium', probe: 'chromium --version', packages: ['chromium'] },
  {
    name: 'chromium-headless-shell',
    probe: 'chromium-headless-shell --version',
    packages: ['chromium-headless-shell'],
  },
  {
    name: 'a Docker engine',
    // An engine needs control groups, which a machine without an init system has not mounted.
    probe: `${found('dockerd', 'docker', 'ip')} && { grep -q ' /sys/fs/cgroup' /proc/mounts || ${found('cgroupfs-mount')}; }`,
    packages: ['docker.io', 'iproute2', 'cgroupfs-mount'],
    containers: true,
  },
  // What the images of the container tests are made of, with Go and Java.
  {
    name: 'debootstrap',
    probe: found('debootstrap', 'apt-get', 'setpriv', 'tar'),
    packages: ['debootstrap', 'util-linux', 'tar'],
    containers: true,
  },
  {
    name: 'busybox with httpd and nc',
    probe: 'busybox --list | grep -qx httpd && busybox --list | grep -qx nc',
    packages: ['busybox-static'],
    containers: true,
  },
  {
    name: 'a user svc-e2e with a rootless engine',
    probe: ROOTLESS,
    packages: ['rootlesskit', 'uidmap'],
    // A user who is made after the files are there gets a range in each.
    setup: 'touch /etc/subuid /etc/subgid && { getent passwd svc-e2e || useradd --create-home svc-e2e; }',
  },
];

const isMissing = ({ probe, isThere }) => !(isThere?.() ?? succeeds(probe));

/** The parts that are not here. */
export const missingParts = () => SYSTEM_PARTS.filter(isMissing);

/** The parts that are not here and without which no container can be tried. */
export const missingForContainers = () => SYSTEM_PARTS.filter((part) => part.containers === true && isMissing(part));
