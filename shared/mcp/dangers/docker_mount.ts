import { quoteWord, refuse, warn, type Danger } from './danger.ts';

/** Directories with the machine's secrets, sockets or system files, and everything below them. */
const SYSTEM_DIRECTORIES = [
  '/etc',
  '/proc',
  '/sys',
  '/dev',
  '/boot',
  '/root',
  '/run',
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib64',
  '/var/run',
  '/var/lib',
  '/var/spool',
  '/var/log',
  '/private/etc',
  '/private/var/run',
  '/private/var/db',
  '/system',
  '/library',
];
/** Directories with the files of all users, or of one user. */
const WHOLE_DIRECTORIES = [
  /^\/(?:var|tmp|private|volumes|media)?$/,
  /^\/(?:var|private)\/tmp$/,
  /^\/private\/var$/,
  /^(?:\/var)?\/home(?:\/[^/]+)?$/,
  /^\/users(?:\/[^/]+)?$/,
  /^\/volumes\/[^/]+$/,
  /^\/mnt(?:\/[a-z](?:\/users(?:\/[^/]+)?)?)?$/,
];
/** Directories and files in which programs keep credentials, at any location. */
const CREDENTIAL_NAMES =
  /\/(?:\.svc|\.ssh|\.aws|\.azure|\.gnupg|\.docker|\.kube|\.config|\.local|\.npmrc|\.netrc|\.git-credentials|\.pypirc|\.password-store|\.mozilla|\.cargo|\.m2|\.terraform\.d|\.claude|\.claude\.json|\.codex|\.gemini|\.cursor|\.[a-z]+_history|keychains|keyrings)(?:\/|$)|^\/users\/[^/]+\/library(?:\/|$)/;
const SOCKET = /\.sock(?:\/|$)|docker_engine|containerd|podman\.sock/;
const VOLUME_NAME = /^[a-z0-9][a-z0-9_.-]*$/i;
const VOLUME_OPTIONS = new Set(['ro', 'rw', 'z', 'Z', 'cached', 'delegated', 'consistent', 'nocopy']);
const MOUNT_KEYS = new Set([
  'type',
  'source',
  'src',
  'target',
  'destination',
  'dst',
  'readonly',
  'ro',
  'bind-recursive',
]);

/** Checks the value of `-v`. */
export function volumeDanger(value: string): Danger | null {
  const [source = '', target, options = '', ...more] = value.split(':');
  if (target === undefined) return value.startsWith('/') ? null : refuseUnreadable(value);
  if (more.length > 0 || !target.startsWith('/')) return refuseUnreadable(value);
  const odd = options.split(',').find((option) => option !== '' && !VOLUME_OPTIONS.has(option));
  if (odd !== undefined)
    return refuse('docker_mount', `mounts with the option ${quoteWord(odd)}, which is not allowed`);
  return sourceDanger(source);
}

/** Checks the value of `--mount`. */
export function mountDanger(value: string): Danger | null {
  if (value.includes('"')) return refuseUnreadable(value);
  const pairs = value.split(',').map((pair) => pair.split('='));
  const odd = pairs.find(([key = '', ...rest]) => !MOUNT_KEYS.has(key) || rest.length > 1);
  if (odd !== undefined) return refuse('docker_mount', `mounts with ${quoteWord(odd.join('='))}, which is not allowed`);
  const valueOf = (...keys: string[]) => pairs.find(([key = '']) => keys.includes(key))?.[1];
  const type = valueOf('type') ?? 'volume';
  if (type === 'tmpfs') return null;
  const source = valueOf('source', 'src') ?? '';
  const sources = pairs.filter(([key = '']) => key === 'source' || key === 'src');
  if (sources.length > 1 || !['bind', 'volume'].includes(type)) return refuseUnreadable(value);
  if (type === 'volume' && source === '') return null;
  return sourceDanger(source);
}

/** Checks whether this directory (or named volume) of the machine may be mounted into a container. */
function sourceDanger(source: string): Danger | null {
  if (VOLUME_NAME.test(source)) return null;
  if (!isAbsolutePath(source)) return refuseUnreadable(source);
  if (/(?:^|\/)\.\.(?:\/|$)/.test(source.replaceAll('\\', '/'))) {
    return refuse(
      'docker_mount',
      `mounts ${quoteWord(source)}, whose ".." hides what it is; write the directory itself`,
    );
  }
  if (isSensitive(normalise(source))) {
    return refuse(
      'docker_mount',
      `mounts ${quoteWord(source)}, which holds credentials, sockets or the system itself; mount a directory of the project`,
    );
  }
  return warn('docker_mount', `mounts ${quoteWord(source)} of this machine into the container`);
}

function isSensitive(path: string): boolean {
  if (WHOLE_DIRECTORIES.some((pattern) => pattern.test(path))) return true;
  if (CREDENTIAL_NAMES.test(path) || SOCKET.test(path)) return true;
  return SYSTEM_DIRECTORIES.some((directory) => path === directory || path.startsWith(`${directory}/`));
}

/** Lower-case, because some file systems ignore case; `C:\x` as `/x`. */
function normalise(source: string): string {
  const slashes = source
    .replace(/^[a-z]:(?=[\\/])/i, '')
    .replaceAll('\\', '/')
    .toLowerCase();
  const segments = slashes.split('/').filter((segment) => segment !== '' && segment !== '.');
  return `/${segments.join('/')}`;
}

function isAbsolutePath(source: string): boolean {
  return /^(?:\/|[a-z]:[\\/])/i.test(source) && !/[$`~*?\p{Cc}]/u.test(source);
}

function refuseUnreadable(value: string): Danger {
  return refuse(
    'docker_mount',
    `mounts ${quoteWord(value)}; write an absolute directory, or the name of a volume, and where it goes (no shell expands "~", "$" or relative paths)`,
  );
}
