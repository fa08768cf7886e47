import { err, ok, type Result } from '../../shared/model/result.ts';
import type { LaunchProblem } from '../launch/launch_error.ts';
import { isAtOrBelow } from '../launch/mount_table.ts';
import type { VisibleFiles } from '../bubblewrap/plan_sandbox.ts';
import { PROTECTED_IN_PROJECT } from '../bubblewrap/visible_paths.ts';
import { MAC_PLACES } from './mac_places.ts';

/** What a profile of `sandbox-exec` is written from. */
export interface ProfileFacts {
  readonly visible: VisibleFiles;
  /** A folder of the sandbox's own, for temporary files; without links. */
  readonly temporary: string;
  /** Files of svc that the command reads, such as the session's roots. */
  readonly readable: readonly string[];
  /** The port of this machine at which the session's proxy listens. */
  readonly port: number;
}

/**
 * The profile of a sandbox on macOS (decision 0132), in the language of `sandbox-exec`. Nothing is allowed that is not named. Of the
 * rules that match, the last decides: the order is the system, what is shown, what is read-only in it, and last what is hidden.
 */
export function profileText(facts: ProfileFacts): Result<string, LaunchProblem> {
  const { visible, temporary, readable, port } = facts;
  const { project, shown, parts, guarded } = visible;
  const paths = [project, temporary, ...readable, ...shown.map(({ path }) => path), ...guarded.map(({ path }) => path)];
  const unwritable = [...paths, ...parts.readOnly, ...parts.writable].find((path) => !canBeWritten(path));
  if (unwritable !== undefined) {
    const message = `the path ${JSON.stringify(unwritable)} has a control character, which no profile of a sandbox can name`;
    return err({ message, fixes: ['Rename it.'] });
  }
  const writable = [...shown.filter(({ mayWrite }) => mayWrite).map(({ path }) => path), temporary];
  const read = [...MAC_PLACES.system, ...ALSO_READ, ...shown.map(({ path }) => path), temporary];
  const hidden = guarded.map(({ path }) => path).filter((path) => read.some((at) => isAtOrBelow(path, at)));
  const rules = [
    ...BASE,
    allow('file-read-metadata', [...ancestorsOf([...read, ...readable]), ...LINKS].map(literal)),
    allow('file-read* file-map-executable', [literal('/'), ...read.map(subpath)]),
    allow('file-read*', readable.map(literal)),
    allow('file-write*', writable.map(subpath)),
    // What holds the rules of its content must not be moved away.
    deny('file-write-unlink', [...writable, ...parts.writable].map(literal)),
    deny('file-write*', [...parts.readOnly.map(subpath), ...writable.flatMap((folder) => protectedIn(folder, parts))]),
    deny('file-read* file-write* file-map-executable', hidden.map(subpath)),
    `(allow network-outbound (remote ip "localhost:${port}"))`,
  ];
  return ok(`${rules.filter((rule) => rule !== '').join('\n')}\n`);
}

/** Processes, terminals and the few services that programs without windows need. No keychain, no launching of other programs, no DNS. */
const BASE = [
  '(version 1)',
  '(deny default)',
  '(allow process-exec)',
  '(allow process-fork)',
  '(allow signal (target same-sandbox))',
  '(allow process-info* (target same-sandbox))',
  '(allow sysctl-read)',
  '(allow ipc-posix-sem)',
  '(allow pseudo-tty)',
  allow('mach-lookup', [
    '(global-name "com.apple.bsd.dirhelper")',
    '(global-name "com.apple.logd")',
    '(global-name "com.apple.system.logger")',
    '(global-name "com.apple.system.notification_center")',
    '(global-name "com.apple.system.opendirectoryd.libinfo")',
    '(global-name "com.apple.system.opendirectoryd.membership")',
  ]),
  allow('file-read*', ['(literal "/dev/random")', '(literal "/dev/urandom")']),
  allow('file-read* file-write*', ['(literal "/dev/null")', '(literal "/dev/zero")', '(literal "/dev/dtracehelper")']),
  allow('file-read* file-write* file-ioctl', [
    '(literal "/dev/tty")',
    '(literal "/dev/ptmx")',
    '(subpath "/dev/fd")',
    '(regex #"^/dev/ttys[0-9]+$")',
  ]),
];

/** What `sh` is, the time zones, and which developer tools are chosen. */
const ALSO_READ = ['/private/var/select', '/private/var/db/timezone', '/private/var/db/xcode_select_link'];

/** On the way to what is shown; a program follows them. */
const LINKS = ['/etc', '/tmp', '/var', '/dev', '/private'];

/** A word of the profile's language is ended by white space, and a string by a quote: other control characters are no part of a name. */
function canBeWritten(path: string): boolean {
  return path.startsWith('/') && !/[\p{Cc}\p{Cs}]/u.test(path);
}

function quoted(path: string): string {
  return `"${path.replaceAll(/[\\"]/g, String.raw`\$&`)}"`;
}

const literal = (path: string): string => `(literal ${quoted(path)})`;
const subpath = (path: string): string => `(subpath ${quoted(path)})`;

function allow(operations: string, filters: readonly string[]): string {
  return filters.length === 0 ? '' : `(allow ${operations}\n  ${[...new Set(filters)].join('\n  ')})`;
}

function deny(operations: string, filters: readonly string[]): string {
  return filters.length === 0 ? '' : `(deny ${operations}\n  ${[...new Set(filters)].join('\n  ')})`;
}

/** Every folder above these, which programs look at when they resolve a path. */
function ancestorsOf(paths: readonly string[]): readonly string[] {
  return paths.flatMap((path) => {
    const parts = path.split('/').slice(1, -1);
    return parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
  });
}

const GIT_FILES = ['.git/hooks', '.git/config', '.git/config.worktree'];

/**
 * What runs as code outside when a person uses the folder, whether it is there or not. The file system of a Mac takes `.VSCODE` for
 * `.vscode`, so letters are matched in both cases. A folder without a repository may get one, as on Linux: `git init` writes its
 * settings.
 */
function protectedIn(folder: string, { writable, readOnly }: VisibleFiles['parts']): readonly string[] {
  const hasRepository = [...writable, ...readOnly].some((path) => isAtOrBelow(path, `${folder}/.git`));
  return [...PROTECTED_IN_PROJECT, ...(hasRepository ? GIT_FILES : [])].map((name) => {
    const caseless = name.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`).replaceAll('.', '[.]');
    return `(regex #"^${looseExpression(folder)}/${caseless}(/.*)?$")`;
  });
}

/** An expression for exactly this path, or for a few more: what has a meaning in expressions or needs quoting stands for any name. */
function looseExpression(path: string): string {
  return path.replaceAll(/[^A-Za-z0-9/_-]+/g, '[^/]+');
}
