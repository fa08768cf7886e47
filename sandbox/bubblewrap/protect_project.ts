import { basename, dirname, join, resolve } from 'node:path';
import { isAtOrBelow } from '../launch/mount_table.ts';
import type { FileView } from './file_view.ts';
import { isPlaceholder } from './placeholders.ts';
import {
  AGENT_SETTINGS,
  AGENT_SETTINGS_IF_THERE,
  foldersRunAtLogin,
  PROTECTED_EVEN_IF_ABSENT,
  PROTECTED_IN_PROJECT,
} from './visible_paths.ts';

/** What is read-only in a writable project. */
export interface ProtectedProject {
  /** Mounted writable on themselves: a mount point cannot be renamed away together with what is read-only in it. */
  readonly writable: readonly string[];
  readonly readOnly: readonly string[];
  /** Folders to make and to hold first (placeholders.ts). */
  readonly placeholders: readonly string[];
  readonly warnings: readonly string[];
}

const NOTHING: ProtectedProject = { writable: [], readOnly: [], placeholders: [], warnings: [] };

/** In a repository's folder: what git runs, and where its settings name what it runs. */
const OF_GIT = ['hooks', 'config', 'config.worktree'] as const;
/** In the folder that a repository has for a worktree: where its settings are, and a folder that git believes it is. */
const OF_WORKTREE = ['commondir', 'gitdir', 'config.worktree'] as const;
/** Submodules in submodules; deeper ones are not looked for. */
const MODULE_DEPTH = 4;

/** What a sandbox may write, and who runs in it. */
export interface WritableProject {
  readonly project: string;
  /** Every folder and file that is writable, the project among them. */
  readonly writable: readonly string[];
  /** The agent that runs in it; its own settings are not protected. */
  readonly agent: string | null;
  /** The person's home. */
  readonly home: string;
}

/**
 * Keeps a project's program from writing what runs later, outside of its sandbox, when a person uses git, opens the folder in an
 * editor or starts another agent there: in the project, in the repositories below it, and in every repository and project that is
 * writable besides. What a person named as writable is. A link cannot be a mount point, so what is behind one is told.
 */
export function protectWritable({ project, writable, ...person }: WritableProject, files: FileView): ProtectedProject {
  const others = writable
    .filter((path) => path !== project)
    .map((path) => {
      if (isRepository(path, files)) return protectGitFolder(path, files);
      return files.kindOf(join(path, '.git')) === null ? NOTHING : protectProject(path, person, files);
    });
  const below = repositoriesBelow(project, files).map((path) => protectNested(path, person, files));
  const atLogin = foldersRunAtLogin(person.home)
    .filter((path) => writable.some((folder) => isAtOrBelow(path, folder)) && files.kindOf(dirname(path)) === 'folder')
    .map((path) => holdEntry(path, files));
  const parts = [protectProject(project, person, files), ...below, ...others, ...atLogin];
  const all = withoutAsked(
    [...parts, tellOfRepository(project, writable, files)].reduce(joinParts),
    writable.filter((path) => path !== project),
  );
  return holdParents(all, writable, files);
}

/**
 * Mounts every folder between a writable one and what is protected in it on itself: it could be renamed together with that, and another
 * one put in its place.
 */
function holdParents(parts: ProtectedProject, writable: readonly string[], files: FileView): ProtectedProject {
  const between = new Set([...parts.readOnly, ...parts.writable].flatMap((path) => foldersAbove(path, writable)));
  const links = [...between].filter((path) => files.kindOf(path) === 'link');
  const held = [...between].filter((path) => files.kindOf(path) === 'folder' && !parts.readOnly.includes(path));
  return {
    ...parts,
    // A folder before what is in it, which would be covered.
    writable: [...new Set([...held, ...parts.writable])].toSorted((a, b) => a.length - b.length),
    warnings: [
      ...parts.warnings,
      ...links.map((path) => `${path} is a link: the sandbox cannot protect what is in it`),
    ],
  };
}

/** The folders above a path, below the innermost writable one that it is in. */
function foldersAbove(path: string, writable: readonly string[]): readonly string[] {
  const root = writable
    .filter((folder) => path !== folder && isAtOrBelow(path, folder))
    .reduce((longest, folder) => (folder.length > longest.length ? folder : longest), '');
  if (root === '') return [];
  const above: string[] = [];
  for (let folder = dirname(path); folder !== root; folder = dirname(folder)) above.push(folder);
  return above;
}

function withoutAsked(parts: ProtectedProject, asked: readonly string[]): ProtectedProject {
  const isKept = (path: string): boolean => !asked.includes(path);
  const readOnly = [...new Set(parts.readOnly)].filter(isKept);
  return { ...parts, readOnly, placeholders: parts.placeholders.filter(isKept) };
}

type Person = Pick<WritableProject, 'agent' | 'home'>;

function protectProject(project: string, person: Person, files: FileView): ProtectedProject {
  const held = [...PROTECTED_EVEN_IF_ABSENT, ...ofOtherAgents(AGENT_SETTINGS, person.agent)];
  return [protectNested(project, person, files), ...held.map((name) => holdEntry(join(project, name), files))].reduce(
    joinParts,
  );
}

/** What is in a project is protected, and nothing is made in it but git's hooks: it may be one of many. */
function protectNested(project: string, { agent, home }: Person, files: FileView): ProtectedProject {
  const names = [
    ...PROTECTED_IN_PROJECT,
    ...ofOtherAgents(AGENT_SETTINGS, agent),
    ...ofOtherAgents(AGENT_SETTINGS_IF_THERE, agent),
  ];
  const entries = names.map((name) => protectEntry(join(project, name), files));
  return [protectGit(project, home, files), ...entries].reduce(joinParts);
}

function ofOtherAgents(table: Readonly<Record<string, readonly string[]>>, agent: string | null): readonly string[] {
  return Object.entries(table).flatMap(([name, paths]) => (name === agent ? [] : paths));
}

/** How far below a project repositories are looked for, and in how many folders: a project may have very many. */
const LEVELS_BELOW = 3;
const MOST_FOLDERS = 1_000;

/** The folders with a `.git` below a project. What is in them is not looked at: they may write it, but it is theirs. */
function repositoriesBelow(project: string, files: FileView): readonly string[] {
  const found: string[] = [];
  let left = MOST_FOLDERS;
  let level = [project];
  for (let depth = 0; depth < LEVELS_BELOW && level.length > 0; depth += 1) {
    const folders = level.slice(0, left).flatMap((folder) => files.foldersIn(folder).map((name) => join(folder, name)));
    left -= level.length;
    level = folders.filter((path) => {
      const name = basename(path);
      if (name.startsWith('.') || name === 'node_modules') return false;
      const isRepo = files.kindOf(join(path, '.git')) !== null;
      if (isRepo) found.push(path);
      return !isRepo;
    });
    if (left <= 0) break;
  }
  return found;
}

function isRepository(folder: string, files: FileView): boolean {
  return ['HEAD', 'config', 'objects'].every((name) => files.kindOf(join(folder, name)) !== null);
}

/** Of a worktree or a submodule, whose repository is elsewhere. */
function tellOfRepository(project: string, writable: readonly string[], files: FileView): ProtectedProject {
  const repository = repositoryOf(project, files);
  if (repository === null || writable.some((path) => isAtOrBelow(repository, path))) return NOTHING;
  const warning = `the repository of ${project} is ${repository}, which the sandbox does not show: to use git, add --sandbox-write ${repository}`;
  return { ...NOTHING, warnings: [warning] };
}

/** The repository that a `.git` file leads to; null if there is no such file, or no repository. */
function repositoryOf(project: string, files: FileView): string | null {
  const named = /^gitdir: (.+)$/m.exec(files.textOf(join(project, '.git')) ?? '')?.[1];
  const own = named === undefined ? null : files.realPath(resolve(project, named));
  if (own === null) return null;
  const common = files.textOf(join(own, 'commondir'))?.trim();
  const repository = common === undefined ? own : files.realPath(resolve(own, common));
  return repository !== null && isRepository(repository, files) ? repository : null;
}

function protectEntry(path: string, files: FileView): ProtectedProject {
  const kind = files.kindOf(path);
  if (kind === 'folder' || kind === 'file') return { ...NOTHING, readOnly: [path] };
  if (kind === 'link') return { ...NOTHING, warnings: [`${path} is a link: the sandbox cannot make it read-only`] };
  return NOTHING;
}

/** A folder that would be made: it is there, empty and read-only. */
function holdEntry(path: string, files: FileView): ProtectedProject {
  return isToBeHeld(path, files.kindOf(path), files) ? placeholderAt(path) : NOTHING;
}

/** True if a folder is not there, or if the end of another sandbox would remove it. */
function isToBeHeld(path: string, kind: ReturnType<FileView['kindOf']>, files: FileView): boolean {
  return kind === null || (kind === 'folder' && isPlaceholder(files.namesIn(path)));
}

function placeholderAt(path: string): ProtectedProject {
  return { ...NOTHING, readOnly: [path], placeholders: [path] };
}

function protectGit(project: string, home: string, files: FileView): ProtectedProject {
  const git = join(project, '.git');
  const kind = files.kindOf(git);
  // Of a worktree or a submodule: the repository itself is elsewhere.
  if (kind === 'file') return { ...NOTHING, readOnly: [git] };
  if (kind === 'link') return { ...NOTHING, warnings: [`${git} is a link: the sandbox cannot protect it`] };
  if (kind !== 'folder') return NOTHING;
  return joinParts(protectGitFolder(git, files), protectNamed(git, { project, home }, files));
}

/** In git's settings: a folder of hooks, and further files of settings (git-config(1)); also behind the name of their section. */
const NAMES_FILE = /^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(hooksPath|path)[ \t]*=[ \t]*(?:"([^"\n]+)"|([^"#;\n]+))/gim;
/** Settings that include others; more are not followed. */
const MOST_INCLUDES = 20;

type Places = Pick<WritableProject, 'project' | 'home'>;

/**
 * What a repository's settings name in the project, such as hooks that are under version control, and what the settings name that they
 * include. Settings that are not there cannot be held, so they are told.
 */
function protectNamed(git: string, places: Places, files: FileView): ProtectedProject {
  const settings = [join(git, 'config')];
  const parts: ProtectedProject[] = [];
  for (const file of settings) {
    for (const { isHooks, path } of namedIn(file, places, files)) {
      const kind = files.kindOf(path);
      if (isHooks) parts.push(kind === null ? holdIfPossible(path, files) : protectEntry(path, files));
      else if (kind === null) parts.push({ ...NOTHING, warnings: [`${file} includes ${path}, which could be made`] });
      else parts.push(protectEntry(path, files));
      if (!isHooks && settings.length < MOST_INCLUDES && !settings.includes(path)) settings.push(path);
    }
  }
  return parts.reduce(joinParts, NOTHING);
}

function holdIfPossible(path: string, files: FileView): ProtectedProject {
  return files.kindOf(dirname(path)) === 'folder' ? placeholderAt(path) : NOTHING;
}

/** Of a file of settings: the folders of hooks and the files that it names in the project. */
function namedIn(
  file: string,
  { project, home }: Places,
  files: FileView,
): readonly { readonly isHooks: boolean; readonly path: string }[] {
  return Array.from((files.textOf(file) ?? '').matchAll(NAMES_FILE), ([, key = '', quoted, bare = '']) => {
    const isHooks = key.toLowerCase() === 'hookspath';
    const named = (quoted ?? bare).trim().replace(/^~(?=\/)/, home);
    return { isHooks, path: resolve(isHooks ? project : dirname(file), named) };
  }).filter(({ path }) => path !== project && isAtOrBelow(path, project));
}

function protectGitFolder(git: string, files: FileView): ProtectedProject {
  const folders = [{ path: git, isRepository: true }, ...listModules(join(git, 'modules'), MODULE_DEPTH, files)];
  const parts = folders.map(({ path, isRepository: isOne }) =>
    isOne ? protectRepository(path, files) : { ...NOTHING, writable: [path] },
  );
  const linked = parts.find(({ warnings }) => warnings.length > 0);
  if (linked === undefined) return parts.reduce(joinParts);
  const warning = `${linked.warnings.join('; ')}: ${git} is read-only in the sandbox, so nothing can be committed there`;
  return { ...NOTHING, readOnly: [git], warnings: [warning] };
}

function protectRepository(folder: string, files: FileView): ProtectedProject {
  const parts = OF_GIT.map((name): ProtectedProject => {
    const path = join(folder, name);
    const kind = files.kindOf(path);
    if (name === 'hooks' && isToBeHeld(path, kind, files)) return placeholderAt(path);
    if (kind === 'folder' || kind === 'file') return { ...NOTHING, readOnly: [path] };
    return kind === 'link' ? { ...NOTHING, warnings: [`${path} is a link`] } : NOTHING;
  });
  return [{ ...NOTHING, writable: [folder] }, ...parts, protectWorktrees(join(folder, 'worktrees'), files)].reduce(
    joinParts,
  );
}

function protectWorktrees(folder: string, files: FileView): ProtectedProject {
  const parts = files
    .namesIn(folder)
    .map((name) => join(folder, name))
    .filter((path) => files.kindOf(path) === 'folder')
    .map((path): ProtectedProject => {
      const entries = OF_WORKTREE.map((name) => join(path, name));
      return { ...NOTHING, writable: [path], readOnly: entries.filter((entry) => files.kindOf(entry) === 'file') };
    });
  return parts.reduce(joinParts, { ...NOTHING, writable: parts.length === 0 ? [] : [folder] });
}

interface GitFolder {
  readonly path: string;
  readonly isRepository: boolean;
}

/** The repositories of submodules, which git keeps by their paths, with every folder on the way to them. */
function listModules(folder: string, depth: number, files: FileView): readonly GitFolder[] {
  if (depth === 0 || files.kindOf(folder) !== 'folder') return [];
  const below = files.namesIn(folder).flatMap((name) => {
    const path = join(folder, name);
    if (files.kindOf(path) !== 'folder') return [];
    if (files.kindOf(join(path, 'config')) === null) return listModules(path, depth - 1, files);
    return [{ path, isRepository: true }, ...listModules(join(path, 'modules'), depth - 1, files)];
  });
  return below.length === 0 ? [] : [{ path: folder, isRepository: false }, ...below];
}

function joinParts(one: ProtectedProject, other: ProtectedProject): ProtectedProject {
  return {
    writable: [...one.writable, ...other.writable],
    readOnly: [...one.readOnly, ...other.readOnly],
    placeholders: [...one.placeholders, ...other.placeholders],
    warnings: [...one.warnings, ...other.warnings],
  };
}
