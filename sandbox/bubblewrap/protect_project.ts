import { join, resolve } from 'node:path';
import { isAtOrBelow } from '../launch/mount_table.ts';
import type { FileView } from './file_view.ts';
import { isPlaceholder } from './placeholders.ts';
import { PROTECTED_EVEN_IF_ABSENT, PROTECTED_IN_PROJECT } from './visible_paths.ts';

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

/**
 * Keeps a project's program from writing what runs later, outside of its sandbox, when a person uses git or opens the folder in an
 * editor: in the project, and in every repository and project that is writable besides. A link cannot be a mount point, so what is
 * behind one is told.
 */
export function protectWritable(project: string, writable: readonly string[], files: FileView): ProtectedProject {
  const others = writable
    .filter((path) => path !== project)
    .map((path) => {
      if (isRepository(path, files)) return protectGitFolder(path, files);
      return files.kindOf(join(path, '.git')) === null ? NOTHING : protectProject(path, files);
    });
  return [protectProject(project, files), ...others, tellOfRepository(project, writable, files)].reduce(joinParts);
}

function protectProject(project: string, files: FileView): ProtectedProject {
  return [protectGit(project, files), ...PROTECTED_IN_PROJECT.map((name) => protectEntry(project, name, files))].reduce(
    joinParts,
  );
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

function protectEntry(project: string, name: string, files: FileView): ProtectedProject {
  const path = join(project, name);
  const kind = files.kindOf(path);
  if (PROTECTED_EVEN_IF_ABSENT.includes(name) && isToBeHeld(path, kind, files)) return placeholderAt(path);
  if (kind === 'folder' || kind === 'file') return { ...NOTHING, readOnly: [path] };
  if (kind === 'link') return { ...NOTHING, warnings: [`${path} is a link: the sandbox cannot make it read-only`] };
  return NOTHING;
}

/** True if a folder is not there, or if the end of another sandbox would remove it. */
function isToBeHeld(path: string, kind: ReturnType<FileView['kindOf']>, files: FileView): boolean {
  return kind === null || (kind === 'folder' && isPlaceholder(files.namesIn(path)));
}

function placeholderAt(path: string): ProtectedProject {
  return { ...NOTHING, readOnly: [path], placeholders: [path] };
}

function protectGit(project: string, files: FileView): ProtectedProject {
  const git = join(project, '.git');
  const kind = files.kindOf(git);
  // Of a worktree or a submodule: the repository itself is elsewhere.
  if (kind === 'file') return { ...NOTHING, readOnly: [git] };
  if (kind === 'link') return { ...NOTHING, warnings: [`${git} is a link: the sandbox cannot protect it`] };
  return kind === 'folder' ? protectGitFolder(git, files) : NOTHING;
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
