// The programs that the end-to-end tests use: how each is found, and the Debian packages that install it. Plain JavaScript,
// because the system's Node starts tools/test.mjs; the tests read the same table.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The system's program folders; a user's PATH may lack them. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin'];

/** The PATH of the tests: the caller's, then the system's program folders. */
export function withSystemFolders(path = '') {
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return [...folders, ...SYSTEM_FOLDERS.filter((folder) => !folders.includes(folder))].join(delimiter);
}

/**
 * The PATH with the folder of Python itself before that of a version manager's script, which looks for it at each start: that
 * takes longer than most programs of the tests.
 */
export function withRealPython(path = '') {
  const folders = path.split(delimiter);
  const at = folders.findIndex((folder) => existsSync(join(folder, 'python3')));
  if (at === -1) return path;
  const program = join(folders[at], 'python3');
  if (readFileSync(program).subarray(0, 2).toString() !== '#!') return path;
  const found = spawnSync(program, ['-c', 'import os, sys; print(os.path.dirname(sys.executable))'], {
    encoding: 'utf8',
    env: { ...process.env, PATH: path },
  });
  return found.status === 0 ? folders.toSpliced(at, 0, found.stdout.trim()).join(delimiter) : path;
}

/** Standard modules of Python that the tests need; Debian's `python3-minimal` lacks them. */
export const STANDARD_MODULES = 'pty, ssl, urllib.request, zipfile';

/** True if the probe succeeds in a shell. */
export function succeeds(probe) {
  const env = { ...process.env, PATH: withSystemFolders(process.env.PATH) };
  return spawnSync('sh', ['-c', probe], { stdio: 'ignore', env }).status === 0;
}

/**
 * The program to call: the first on the PATH, or the system's if that one does not work, such as a version manager's
 * placeholder for a version that is not selected. Null if neither works.
 */
function workingProgram(name, args) {
  return [name, `/usr/bin/${name}`].find((program) => succeeds(`${program} ${args}`)) ?? null;
}

/** The Python with the modules, or null. */
export const pythonWith = (modules) => workingProgram('python3', `-c 'import ${modules}'`);

/** The AWS CLI, or null. */
export const awsCli = () => workingProgram('aws', '--version');

/** The uploader of Python packages, or null. */
export const twine = () => workingProgram('twine', '--version');

/** The Ruby with the router of Rails and a server for it, or null. */
export const rubyWithRails = () =>
  workingProgram('ruby', `-e 'require "action_dispatch"; require "webrick"; Rack::Handler::WEBrick'`);

const found = (...programs) => programs.map((program) => `command -v ${program}`).join(' && ');

const ROOTLESS = [
  'getent passwd svc-e2e',
  'grep -q ^svc-e2e: /etc/subuid',
  'grep -q ^svc-e2e: /etc/subgid',
  found('rootlesskit', 'newuidmap'),
].join(' && ');

/** True if the user of the tests can run a rootless engine. */
export const rootlessIsThere = () => succeeds(ROOTLESS);

/**
 * Each part has a shell probe or a function that finds it; `packages` install it on Debian, and `setup` completes it. The
 * container tests need every part with `containers`.
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
  ...['requests', 'boto3', 'pip'].map((module) => ({
    name: `python3 with ${module}`,
    isThere: () => pythonWith(module) !== null,
    packages: ['python3', `python3-${module}`],
  })),
  {
    name: 'python3 with google-auth',
    isThere: () => pythonWith('google.auth, requests') !== null,
    packages: ['python3-google-auth', 'python3-requests'],
  },
  {
    name: 'python3 with httpx for HTTP/2',
    isThere: () => pythonWith('httpx, h2') !== null,
    packages: ['python3-httpx', 'python3-h2'],
  },
  { name: 'python3 with grpc', isThere: () => pythonWith('grpc') !== null, packages: ['python3-grpcio'] },
  { name: 'nghttp and h2load', probe: found('nghttp', 'h2load'), packages: ['nghttp2-client'] },
  { name: 'socat', probe: found('socat'), packages: ['socat'] },
  {
    name: 'gnome-keyring with secret-tool',
    probe: found('secret-tool', 'gnome-keyring-daemon', 'dbus-daemon'),
    packages: ['libsecret-tools', 'gnome-keyring', 'dbus-daemon'],
  },
  {
    name: 'gRPC for Go',
    probe: 'test -d /usr/share/gocode/src/google.golang.org/grpc',
    packages: ['golang-google-grpc-dev'],
  },
  // Third-party servers, which show how they read a path.
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
  {
    name: 'SimpleSAMLphp',
    probe: 'php --version && test -d /usr/share/simplesamlphp/www',
    // Without the first and nginx, which the packages of PHP and of SimpleSAMLphp also take, apt would install Apache.
    packages: ['php-cgi', 'php-cli', 'php-xml', 'nginx-light', 'simplesamlphp'],
  },
  { name: 'squid', probe: `${found('squid')} && test -x /usr/lib/squid/basic_ncsa_auth`, packages: ['squid'] },
  { name: 'tinyproxy', probe: found('tinyproxy'), packages: ['tinyproxy'] },
  { name: 'ip', probe: found('ip'), packages: ['iproute2'] },
  { name: 'bubblewrap', probe: 'bwrap --version', packages: ['bubblewrap'] },
  { name: 'wget', probe: 'wget --version', packages: ['wget'] },
  { name: 'ps', probe: found('ps'), packages: ['procps'] },
  { name: 'ssh-keygen', probe: found('ssh-keygen'), packages: ['openssh-client'] },
  { name: 'npm', probe: 'npm --version', packages: ['npm'] },
  { name: 'twine', isThere: () => twine() !== null, packages: ['twine'] },
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
  { name: 'firefox-esr', probe: 'firefox-esr --version', packages: ['firefox-esr'] },
  {
    name: 'a Docker engine',
    // An engine needs control groups, which are not mounted on a machine without an init system.
    probe: `${found('dockerd', 'docker', 'ip')} && { grep -q ' /sys/fs/cgroup' /proc/mounts || ${found('cgroupfs-mount')}; }`,
    packages: ['docker.io', 'iproute2', 'cgroupfs-mount'],
    containers: true,
  },
  {
    name: 'podman',
    // `--init` of a container is a program of its own.
    probe: `${found('podman', 'runc')} && test -x /usr/libexec/podman/catatonit -o -x /usr/bin/catatonit`,
    packages: ['podman', 'catatonit', 'runc'],
    containers: true,
  },
  // Parts of the images of the container tests, with Go and Java.
  {
    name: 'mmdebstrap',
    probe: found('mmdebstrap', 'apt-get', 'setpriv', 'tar'),
    packages: ['mmdebstrap', 'util-linux', 'tar'],
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
    // A user that is created after these files exist gets a range in each.
    setup: 'touch /etc/subuid /etc/subgid && { getent passwd svc-e2e || useradd --create-home svc-e2e; }',
  },
];

const isMissing = ({ probe, isThere }) => !(isThere?.() ?? succeeds(probe));

/** The Debian packages of all parts. */
export const PACKAGES = SYSTEM_PARTS.flatMap(({ packages }) => packages);

/** The missing parts. */
export const missingParts = () => SYSTEM_PARTS.filter(isMissing);

/** The missing parts that the container tests need. */
export const missingForContainers = () => SYSTEM_PARTS.filter((part) => part.containers === true && isMissing(part));
