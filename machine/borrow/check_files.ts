import { createHash } from 'node:crypto';
import { createReadStream, lstatSync, readlinkSync, type Stats } from 'node:fs';
import { dirname, isAbsolute, join, normalize, parse, resolve } from 'node:path';
import type { BorrowFile } from '../../shared/borrow/borrow_grant.ts';
import { findInlineCode, type InlineCode } from './inline_code.ts';
import { isInterpreter } from '../../shared/mcp/dangers/interpreters.ts';
import { baseName, isLauncher, isShell } from '../../shared/mcp/dangers/program_names.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';

/** Who the program runs as. */
export interface RunsAs {
  readonly uid: number;
}

/** A file that was found at a path, with what stands between it and a change by others. */
interface FoundFile {
  readonly path: string;
  readonly stats: Stats;
  /** Only root can change what the path leads to. */
  readonly isSystems: boolean;
}

/** Symbolic links of one path that are followed at most, as in Linux. */
const MOST_LINKS = 40;
/** Where the system's package manager puts programs. For root, who owns everything, these stand for "the system's". */
const SYSTEM_FOLDERS = /^\/(?:usr|bin|sbin|lib|opt|snap|nix|System|Library)\//;
const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
const STICKY = 0o1000;

/**
 * The files that decide what a command does: the program, and the arguments that are code, with the hashes of those that others
 * than the system can change. Refuses, as a sentence, if somebody else could put another file there, or if one is missing.
 */
export async function checkCommand(
  program: string,
  args: readonly string[],
  as: RunsAs,
): Promise<Result<readonly BorrowFile[], string>> {
  if (!isAbsolute(program) || normalize(program) !== program) return err(`${program} is no absolute path.`);
  const inline = findInlineCode(program, args);
  if (inline !== null) return err(inlineCodeProblem(inline));
  const found = findFile(program, as);
  if (!found.ok) return found;
  if ((found.value.stats.mode & 0o111) === 0) return err(`${program} is no program: nobody may execute it.`);
  const codeFiles: FoundFile[] = [found.value];
  const runsCode = runsArguments(program);
  for (const argument of args.map((text) => fileOf(text)).filter((text) => isAbsolute(text))) {
    const named = findFile(argument, as);
    if (!named.ok) {
      if (isThere(argument)) return named;
    } else if (runsCode || (named.value.stats.mode & 0o111) !== 0) codeFiles.push(named.value);
  }
  const files: BorrowFile[] = [];
  for (const { path, isSystems } of codeFiles) {
    const hash = isSystems ? ok(null) : await hashFile(path);
    if (!hash.ok) return hash;
    files.push({ path, sha256: hash.value });
  }
  return ok(files);
}

function inlineCodeProblem({ program, option }: InlineCode): string {
  return `${program} ${option} runs code that is an argument. The programs that it starts would not be compared: write it into a script of your own, and borrow from that.`;
}

/** What an argument may name: an option names it behind its first "=", as in `--import=/opt/hook.mjs`. */
function fileOf(argument: string): string {
  return argument.startsWith('-') ? argument.slice(argument.indexOf('=') + 1) : argument;
}

/** Whether an argument of the program may be a file that it runs. */
function runsArguments(program: string): boolean {
  const name = baseName(program);
  return isInterpreter(name) || isShell(name) || isLauncher(name);
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** Walks from the root, through every link, to a regular file that nobody but root and the user can replace. */
function findFile(path: string, as: RunsAs): Result<FoundFile, string> {
  let links = 0;
  let isSystems = as.uid !== 0 || SYSTEM_FOLDERS.test(path);
  let todo = partsOf(path);
  let here = parse(path).root;
  for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
    const next = join(here, part);
    const stats = statOf(next);
    if (!stats.ok) return stats;
    const problem = exposure(next, stats.value, as);
    if (problem !== null) return err(problem);
    isSystems &&= isRootsAlone(stats.value);
    if (stats.value.isSymbolicLink()) {
      links += 1;
      if (links > MOST_LINKS) return err(`${path} leads in a circle of links.`);
      const read = readLink(next);
      if (!read.ok) return read;
      const target = resolve(dirname(next), read.value);
      isSystems &&= as.uid !== 0 || SYSTEM_FOLDERS.test(target);
      todo = [...partsOf(target), ...todo];
      here = parse(target).root;
      continue;
    }
    here = next;
    if (todo.length > 0) continue;
    if (!stats.value.isFile()) return err(`${path} is no file.`);
    return ok({ path, stats: stats.value, isSystems });
  }
  return err(`${path} is no file.`);
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function statOf(path: string): Result<Stats, string> {
  try {
    return ok(lstatSync(path));
  } catch (error) {
    return err(`${path} cannot be looked at (${errorCode(error) || 'unknown error'}).`);
  }
}

function readLink(path: string): Result<string, string> {
  try {
    return ok(readlinkSync(path));
  } catch (error) {
    return err(`${path} cannot be read (${errorCode(error) || 'unknown error'}).`);
  }
}

/** Why somebody else could put another file there; null if nobody could. */
function exposure(path: string, { uid, mode }: Stats, as: RunsAs): string | null {
  if (uid !== 0 && uid !== as.uid) {
    return `${path} belongs to another user (${uid}), who could replace what it leads to: use a program that belongs to you or to root.`;
  }
  const isLink = (mode & 0o170000) === 0o120000;
  const isSticky = (mode & STICKY) !== 0 && (mode & 0o170000) === 0o040000;
  if (isLink || isSticky || (mode & OTHERS_WRITE) === 0) return null;
  return `${path} can be changed by every user of this machine: run chmod o-w ${path}, if you trust what is there.`;
}

function isRootsAlone({ uid, mode }: Stats): boolean {
  const isLink = (mode & 0o170000) === 0o120000;
  return uid === 0 && (isLink || (mode & (OTHERS_WRITE | GROUP_WRITES)) === 0);
}

async function hashFile(path: string): Promise<Result<string, string>> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk);
    return ok(hash.digest('hex'));
  } catch (error) {
    return err(`${path} cannot be read (${errorCode(error) || 'unknown error'}).`);
  }
}
