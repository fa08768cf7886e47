import { join } from 'node:path';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { LaunchProblem } from '../launch/launch_error.ts';
import { isAtOrBelow, type MountTable } from '../launch/mount_table.ts';
import { exposesByBindMount } from '../launch/mount_policy.ts';
import type { FileView } from './file_view.ts';
import type { SharedFolder } from './private_files.ts';
import { protectWritable, type ProtectedProject } from './protect_project.ts';
import {
  homeSecrets,
  KERNEL_SETTINGS,
  PARTLY_PRIVATE,
  programFolders,
  REPLACED_FOLDERS,
  SHARED_FOLDERS,
  SYSTEM_FOLDERS,
  SYSTEM_SECRETS,
} from './visible_paths.ts';

/** A path that no sandbox shows, and what it is. */
export interface Guarded {
  readonly path: string;
  readonly name: string;
}

/** What a sandbox is asked to show. Paths are absolute; they may have links in them. */
export interface SandboxRequest {
  readonly workingDirectory: string;
  readonly home: string;
  /** Shown as they are: what the agent's profile names, and what a person typed. */
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  /** The agent that runs in it, whose own login is not hidden. */
  readonly agent: string | null;
  /** Read-only, and left out where they may not be shown: the folders of PATH and of programs. */
  readonly programs: readonly string[];
  /** The state directory, sockets of engines, other agents' logins. */
  readonly guarded: readonly Guarded[];
  readonly mountTable: MountTable | null;
  /** Files and folders of svc itself, each with its place in the sandbox. */
  readonly own: readonly { readonly source: string; readonly target: string }[];
}

export interface SandboxPlan {
  /** The arguments of bwrap up to the command. */
  readonly args: readonly string[];
  /** What is bound, besides the system. */
  readonly shown: readonly Shown[];
  /** Every path that has to be a mount point, of what is there before the start. Another program may write above it. */
  readonly mounted: readonly string[];
  /**
   * What a mount keeps from being written, or hides. The kernel takes the mount away if another program, outside, replaces or
   * removes what it is on.
   */
  readonly covered: readonly string[];
  /** Where a `.gitconfig` of the sandbox's own belongs; null if the person's is shown, or there is no home of its own. */
  readonly gitConfig: string | null;
  /** Folders that must exist before the start, and while it runs (placeholders.ts). */
  readonly placeholders: readonly string[];
  /** What could not be kept as it should be, a sentence each. */
  readonly warnings: readonly string[];
}

/** Where svc's own files are in the sandbox. */
export const OWN_FOLDER = '/run/svc';
/** In memory: what the first program in the sandbox writes for `svc mcp gateway`. */
export const ACCESS_FOLDER = `${OWN_FOLDER}/access`;

const NAMESPACES = ['user', 'pid', 'ipc', 'uts', 'net'].map((name) => `--unshare-${name}`);

export interface Shown {
  readonly path: string;
  readonly mayWrite: boolean;
}

/**
 * Decides what is visible in a sandbox (decision 0123) and writes it as arguments of bubblewrap. What is not named does not
 * exist there. Later arguments cover earlier ones, so the order is: the system, what is shown, what is read-only in it, and last
 * what is hidden.
 */
export function planSandbox(request: SandboxRequest, files: FileView): Result<SandboxPlan, LaunchProblem> {
  const visible = chooseVisible(request, files, LINUX_PLACES);
  if (!visible.ok) return visible;
  const { project, home, guarded, shown, parts } = visible.value;
  const protection = listProtection(parts, shown);
  const hidden = listHidden(shown, guarded, files);
  return ok({
    args: [
      ...NAMESPACES,
      '--unshare-cgroup-try',
      '--die-with-parent',
      '--cap-drop',
      'ALL',
      ...systemArgs(files),
      ...freshArgs(files),
      ...(home === '/' ? [] : ['--tmpfs', home]),
      ...shown.flatMap(bindArgs),
      ...protection.flatMap(bindArgs),
      ...hidden.flatMap(({ args }) => args),
      ...request.own.flatMap(({ source, target }) => ['--ro-bind', source, target]),
      // The root is a file system in memory: writing there would look as if something was kept.
      '--remount-ro',
      '/',
      '--chdir',
      project,
    ],
    shown,
    mounted: [...new Set([...shown, ...protection].map(({ path }) => path))],
    covered: [...parts.readOnly, ...hidden.map(({ path }) => path)],
    gitConfig: gitConfigOf(home, shown),
    placeholders: parts.placeholders,
    warnings: parts.warnings,
  });
}

/** Folders of the system that a sandbox shows, makes anew, and has of its own; absolute, without links. */
export interface SystemPlaces {
  readonly system: readonly string[];
  readonly replaced: readonly string[];
  readonly shared: readonly string[];
  /** Folders of the system in which what other users cannot read is covered. */
  readonly partlyPrivate: readonly SharedFolder[];
  /** Secrets of the system; those of the home are the same everywhere. */
  readonly secrets: readonly string[];
}

const LINUX_PLACES: SystemPlaces = {
  system: SYSTEM_FOLDERS,
  replaced: REPLACED_FOLDERS,
  shared: SHARED_FOLDERS,
  partlyPrivate: PARTLY_PRIVATE,
  secrets: SYSTEM_SECRETS,
};

/** What of a person's files a sandbox shows, whatever makes it. */
export interface VisibleFiles extends Ground {
  /** A parent before what is in it. */
  readonly shown: readonly Shown[];
  /** What of it is read-only. */
  readonly parts: ProtectedProject;
}

/** Decides what is visible besides the system (decision 0123); refuses a folder that would show what is guarded. */
export function chooseVisible(
  request: SandboxRequest,
  files: FileView,
  places: SystemPlaces,
): Result<VisibleFiles, LaunchProblem> {
  const project = files.realPath(request.workingDirectory);
  if (project === null) return err(problem(`the folder ${request.workingDirectory} does not exist`));
  const home = files.realPath(request.home) ?? request.home;
  const guarded = listGuarded(request, home, files, places);
  const refused = whyNoProject(project, { home, guarded, places });
  if (refused !== null) return err(refused);
  const shown = listShown(request, { project, home, guarded }, files, places);
  if (!shown.ok) return shown;
  const exposed = findExposed(shown.value, guarded, request.mountTable);
  if (exposed !== null) return err(exposed);
  const writable = shown.value.filter(({ mayWrite }) => mayWrite).map(({ path }) => path);
  const parts = protectWritable({ project, writable, agent: request.agent, home }, files);
  return ok({ project, home, guarded, shown: shown.value, parts });
}

function gitConfigOf(home: string, shown: readonly Shown[]): string | null {
  const file = join(home, '.gitconfig');
  return home === '/' || shown.some(({ path }) => isAtOrBelow(file, path)) ? null : file;
}

function systemArgs(files: FileView): readonly string[] {
  return SYSTEM_FOLDERS.flatMap((path) => {
    const kind = files.kindOf(path);
    if (kind === 'link') return ['--symlink', files.linkTarget(path), path];
    return kind === 'folder' ? ['--ro-bind', path, path] : [];
  });
}

/** What each sandbox has of its own. */
function freshArgs(files: FileView): readonly string[] {
  const settings = KERNEL_SETTINGS.filter((path) => files.kindOf(path) !== null);
  const readOnly = settings.flatMap((path) => ['--ro-bind', path, path]);
  const empty = SHARED_FOLDERS.flatMap((path) => ['--tmpfs', path]);
  return ['--proc', '/proc', ...readOnly, '--dev', '/dev', ...empty, '--dir', OWN_FOLDER, '--tmpfs', ACCESS_FOLDER];
}

/** The guarded paths that exist, also by their names without links. */
export function listGuarded(
  request: Pick<SandboxRequest, 'guarded' | 'agent' | 'programs' | 'readable' | 'writable' | 'workingDirectory'>,
  home: string,
  files: FileView,
  places: SystemPlaces = LINUX_PLACES,
): readonly Guarded[] {
  const realPaths = (paths: readonly string[]) => paths.flatMap((path) => files.realPath(path) ?? []);
  const needed = {
    programs: realPaths(request.programs),
    asked: realPaths([request.workingDirectory, ...request.readable, ...request.writable]),
  };
  const all = [
    ...request.guarded,
    ...homeSecrets(home, request.agent).map((path) => ({ path, name: 'keys and logins of other programs' })),
    ...places.secrets.map((path) => ({ path, name: 'secrets of the system' })),
    ...places.partlyPrivate
      .flatMap((folder) => files.privateIn(folder, needed))
      .map((path) => ({ path, name: 'what other users of this machine cannot read' })),
  ];
  return all.flatMap(({ path, name }) => {
    const real = files.realPath(path);
    if (real === null) return [];
    return real === path
      ? [{ path, name }]
      : [
          { path, name },
          { path: real, name },
        ];
  });
}

/** Why nobody should work in this folder with a sandbox; null if it is a project's. */
function whyNoProject(
  project: string,
  { home, guarded, places }: Pick<Ground, 'home' | 'guarded'> & { readonly places: SystemPlaces },
): LaunchProblem | null {
  const inside = guarded.find(({ path }) => isAtOrBelow(project, path));
  if (inside !== undefined) return problem(`the working directory ${project} lies in ${inside.name} (${inside.path})`);
  if (project === '/' || isAtOrBelow(home, project)) {
    const what = project === home ? 'your home' : 'a folder above your home';
    return problem(`the working directory ${project} is ${what}, all of which the sandbox would show`);
  }
  const closed = [...places.system, ...places.replaced, ...places.shared].find((path) => isAtOrBelow(path, project));
  const closedInside = ['/etc', ...places.replaced].find((path) => isAtOrBelow(project, path));
  const folder = closed ?? closedInside;
  return folder === undefined ? null : problem(`the working directory ${project} is part of the system (${folder})`);
}

function problem(message: string): LaunchProblem {
  return { message, fixes: ['Start it in the folder of one project, or without the sandbox: --no-sandbox'] };
}

interface Ground {
  readonly project: string;
  readonly home: string;
  readonly guarded: readonly Guarded[];
}

/** What is bound, a parent before what is in it. */
function listShown(
  request: SandboxRequest,
  { project, home, guarded }: Ground,
  files: FileView,
  places: SystemPlaces,
): Result<readonly Shown[], LaunchProblem> {
  const shown: Shown[] = [{ path: project, mayWrite: true }];
  const asked = [
    ...request.writable.map((path) => ({ path, mayWrite: true })),
    ...request.readable.map((path) => ({ path, mayWrite: false })),
  ];
  for (const { path, mayWrite } of asked) {
    const real = files.realPath(path);
    if (real === null) continue;
    const why = whyNotShown(real, { home, guarded }, places);
    if (why !== null) return err({ message: `the sandbox cannot show ${path}: it ${why}`, fixes: [] });
    if (!shown.some((each) => each.path === real)) shown.push({ path: real, mayWrite });
  }
  for (const path of [...programFolders(home), ...request.programs]) {
    const real = files.realPath(path);
    const isKnown = real === null || shown.some((each) => isAtOrBelow(real, each.path));
    const isOfSystem = real !== null && places.system.some((folder) => isAtOrBelow(real, folder));
    if (isKnown || isOfSystem || whyNotShown(real, { home, guarded }, places) !== null) continue;
    shown.push({ path: real, mayWrite: false });
  }
  return ok(shown.toSorted((a, b) => a.path.length - b.path.length));
}

/** Why a path is not shown; null if it may be. A guarded path inside is hidden instead. */
function whyNotShown(
  path: string,
  { home, guarded }: Pick<Ground, 'home' | 'guarded'>,
  places: SystemPlaces,
): string | null {
  if (path === '/' || isAtOrBelow(home, path)) return 'is or contains your home';
  const replaced = places.replaced.find((folder) => isAtOrBelow(path, folder) || isAtOrBelow(folder, path));
  if (replaced !== undefined) return `is part of ${replaced}`;
  if ([...places.system, ...places.shared].some((folder) => isAtOrBelow(folder, path))) {
    return 'is a folder of the system';
  }
  const inside = guarded.find((each) => isAtOrBelow(path, each.path));
  return inside === undefined ? null : `lies in ${inside.name} (${inside.path})`;
}

/** A bind mount shows a folder under a second path, at which nothing would hide it. */
function findExposed(
  shown: readonly Shown[],
  guarded: readonly Guarded[],
  mountTable: MountTable | null,
): LaunchProblem | null {
  for (const { path } of shown) {
    const found = guarded.find((each) => exposesByBindMount(path, each.path, mountTable));
    if (found === undefined) continue;
    return { message: `${path} is or contains a bind mount of ${found.name} (${found.path})`, fixes: ['Unmount it.'] };
  }
  return null;
}

/** What is shown inside of a repository comes again after the repository's own mounts, which would cover it. */
function listProtection({ writable, readOnly }: ProtectedProject, shown: readonly Shown[]): readonly Shown[] {
  const mounted = writable.filter((path) => mayWriteAt(path, shown));
  const again = shown.filter(({ path }) => mounted.some((at) => at !== path && isAtOrBelow(path, at)));
  return [
    ...mounted.map((path) => ({ path, mayWrite: true })),
    ...again,
    ...readOnly.map((path) => ({ path, mayWrite: false })),
  ];
}

/** Whether what is nearest above a path is shown writable. */
function mayWriteAt(path: string, shown: readonly Shown[]): boolean {
  return shown.findLast((each) => isAtOrBelow(path, each.path))?.mayWrite ?? false;
}

function bindArgs({ path, mayWrite }: Shown): readonly string[] {
  return [mayWrite ? '--bind' : '--ro-bind', path, path];
}

/** Covers each guarded path that is inside something visible. */
function listHidden(
  shown: readonly Shown[],
  guarded: readonly Guarded[],
  files: FileView,
): readonly { readonly path: string; readonly args: readonly string[] }[] {
  const visible = [...SYSTEM_FOLDERS, ...shown.map(({ path }) => path)];
  const hidden = new Set(guarded.map(({ path }) => path).filter((path) => visible.some((at) => isAtOrBelow(path, at))));
  // What is behind a link is guarded too.
  const there = [...hidden].filter((path) => ![null, 'link'].includes(files.kindOf(path)));
  const folders = there.filter((path) => files.kindOf(path) === 'folder');
  const outermost = there.filter((path) => !folders.some((at) => at !== path && isAtOrBelow(path, at)));
  return outermost.map((path) => ({
    path,
    args: folders.includes(path) ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path],
  }));
}
