import { lstat, realpath } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { readRegularFile } from '../../machine/regular_file.ts';
import type { CliContext } from '../context.ts';
import type { FileFormat } from './find_credentials.ts';

/** A file in which credentials are usual. */
export interface CredentialFile {
  readonly path: string;
  readonly format: FileFormat;
  /** `home`: the user's own. `folder`: of the working directory, which somebody else may have written. */
  readonly origin: 'home' | 'folder';
}

/** Below the user's home directory. */
const OF_HOME: readonly (readonly [path: string, format: FileFormat])[] = [
  ['.npmrc', 'npmrc'],
  ['.netrc', 'netrc'],
  ['.git-credentials', 'git-credentials'],
  ['.config/git/credentials', 'git-credentials'],
  ['.config/gh/hosts.yml', 'any'],
  ['.config/glab-cli/config.yml', 'any'],
  ['.config/hub', 'any'],
  ['.aws/credentials', 'aws'],
  ['.docker/config.json', 'docker'],
  ['.pypirc', 'any'],
  ['.config/pypoetry/auth.toml', 'any'],
  ['.claude.json', 'any'],
  ['.claude/settings.json', 'any'],
  ['.codex/auth.json', 'any'],
  ['.gemini/.env', 'dotenv'],
  ['.qwen/.env', 'dotenv'],
  ['.aider.conf.yml', 'any'],
  ['.local/share/opencode/auth.json', 'any'],
  ['.config/goose/config.yaml', 'any'],
  ['.config/stripe/config.toml', 'any'],
  ['.sentryclirc', 'any'],
];
/** In the working directory. */
const OF_FOLDER: readonly (readonly [path: string, format: FileFormat])[] = [
  ['.env', 'dotenv'],
  ['.env.local', 'dotenv'],
  ['.env.development', 'dotenv'],
  ['.npmrc', 'npmrc'],
];

/** Where credentials are looked for. A file of the home directory counts as such, wherever the command was started. */
export function credentialFiles({
  userHome,
  workingDirectory,
}: Pick<CliContext, 'userHome' | 'workingDirectory'>): readonly CredentialFile[] {
  const home = OF_HOME.map(([path, format]) => ({ path: join(userHome, path), format, origin: 'home' as const }));
  const known = new Set(home.map(({ path }) => path));
  const folder = OF_FOLDER.map(([path, format]) => ({
    path: join(workingDirectory, path),
    format,
    origin: 'folder' as const,
  }));
  return [...home, ...folder.filter(({ path }) => !known.has(path))];
}

/** Larger files are not configuration. */
const MAX_FILE_BYTES = 1024 * 1024;

/** A file's text, or why it was left alone; null if there is none. */
type ReadPlace =
  | { readonly kind: 'text'; readonly text: string; readonly mode: number }
  | { readonly kind: 'left'; readonly why: string };

/**
 * Reads a regular file of the user's own without following a link: a hostile repository could otherwise show, or have
 * changed, a file elsewhere.
 */
export async function readPlace(path: string): Promise<ReadPlace | null> {
  const stats = await lstat(path).catch(() => null);
  if (stats === null) return null;
  if (stats.isSymbolicLink()) return { kind: 'left', why: 'is a symbolic link' };
  if (!stats.isFile()) return { kind: 'left', why: 'is not a regular file' };
  // Read as it is by now: a pipe or a link may have taken the file's place since.
  const file = readRegularFile(path, MAX_FILE_BYTES);
  if (!file.ok)
    return { kind: 'left', why: LEFT[file.error.reason] ?? `cannot be read (${file.error.code || 'unknown'})` };
  const { bytes, stats: opened } = file.value;
  if (process.getuid !== undefined && opened.uid !== process.getuid()) {
    return { kind: 'left', why: 'belongs to another user' };
  }
  const text = decode(bytes);
  if (text === null) return { kind: 'left', why: 'is not UTF-8 text' };
  return { kind: 'text', text, mode: opened.mode & 0o777 };
}

const LEFT: Readonly<Record<string, string>> = {
  link: 'is a symbolic link',
  not_a_file: 'is not a regular file',
  too_large: 'is larger than 1 MiB',
};

function decode(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** True if no folder between the base and the file is a link, so that the file is where its path says. */
export async function isInside(base: string, path: string): Promise<boolean> {
  try {
    const folder = dirname(path);
    const wanted = resolve(await realpath(base), relative(resolve(base), folder));
    return (await realpath(folder)) === wanted;
  } catch {
    return false;
  }
}
