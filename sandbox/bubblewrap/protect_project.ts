import { join } from 'node:path';
import type { FileView } from './file_view.ts';
import { PROTECTED_EVEN_IF_ABSENT, PROTECTED_IN_PROJECT } from './visible_paths.ts';

/** What is read-only in a writable project. */
export interface ProtectedProject {
  /** Mounted writable on themselves: a mount point cannot be renamed away together with what is read-only in it. */
  readonly writable: readonly string[];
  readonly readOnly: readonly string[];
  /** Folders to make first. */
  readonly placeholders: readonly string[];
  readonly warnings: readonly string[];
}

const NOTHING: ProtectedProject = { writable: [], readOnly: [], placeholders: [], warnings: [] };

/** In a repository's folder: what git runs, and where its settings name what it runs. */
const OF_GIT = ['hooks', 'config', 'config.worktree'] as const;
/** Submodules in submodules; deeper ones are not looked for. */
const MODULE_DEPTH = 4;

/**
 * Keeps a project's program from writing what runs later, outside of its sandbox, when a person uses git or opens the folder in an
 * editor. A link cannot be a mount point, so what is behind one is told.
 */
export function protectProject(project: string, files: FileView): ProtectedProject {
  return [protectGit(project, files), ...PROTECTED_IN_PROJECT.map((name) => protectEntry(project, name, files))].reduce(
    joinParts,
  );
}

function protectEntry(project: string, name: string, files: FileView): ProtectedProject {
  const path = join(project, name);
  const kind = files.kindOf(path);
  if (kind === 'folder' || kind === 'file') return { ...NOTHING, readOnly: [path] };
  if (kind === 'link') return { ...NOTHING, warnings: [`${path} is a link: the sandbox cannot make it read-only`] };
  if (kind === 'other' || !PROTECTED_EVEN_IF_ABSENT.includes(name)) return NOTHING;
  return { ...NOTHING, readOnly: [path], placeholders: [path] };
}

function protectGit(project: string, files: FileView): ProtectedProject {
  const git = join(project, '.git');
  const kind = files.kindOf(git);
  // Of a worktree or a submodule: the repository itself is elsewhere, and is not shown.
  if (kind === 'file') return { ...NOTHING, readOnly: [git] };
  if (kind === 'link') return { ...NOTHING, warnings: [`${git} is a link: the sandbox cannot protect it`] };
  if (kind !== 'folder') return NOTHING;
  const folders = [{ path: git, isRepository: true }, ...listModules(join(git, 'modules'), MODULE_DEPTH, files)];
  const parts = folders.map(({ path, isRepository }) =>
    isRepository ? protectRepository(path, files) : { ...NOTHING, writable: [path] },
  );
  const linked = parts.find(({ warnings }) => warnings.length > 0);
  if (linked === undefined) return parts.reduce(joinParts);
  const warning = `${linked.warnings.join('; ')}: .git is read-only in the sandbox, so nothing can be committed there`;
  return { ...NOTHING, readOnly: [git], warnings: [warning] };
}

function protectRepository(folder: string, files: FileView): ProtectedProject {
  const parts = OF_GIT.map((name): ProtectedProject => {
    const path = join(folder, name);
    const kind = files.kindOf(path);
    if (kind === 'folder' || kind === 'file') return { ...NOTHING, readOnly: [path] };
    if (kind === 'link') return { ...NOTHING, warnings: [`${path} is a link`] };
    return name === 'hooks' ? { ...NOTHING, readOnly: [path], placeholders: [path] } : NOTHING;
  });
  return [{ ...NOTHING, writable: [folder] }, ...parts].reduce(joinParts);
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
