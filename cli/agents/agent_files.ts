import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { CliContext } from '../context.ts';
import { replaceFile } from '../up/replace_file.ts';
import type { AgentProfile } from './agent_profile.ts';

/** Where the agent's files are. */
type AgentHome = Pick<CliContext, 'env' | 'userHome' | 'now'>;
type Json = Readonly<Record<string, unknown>>;

/** Where a file of the agent is: below the home directory, or in the folder that the agent's own variable names. */
export function agentPath(
  { env, userHome }: Pick<CliContext, 'env' | 'userHome'>,
  file: { readonly path: string; readonly moved_by?: string | undefined },
): string {
  const folder = file.moved_by === undefined ? '' : (env[file.moved_by] ?? '');
  return folder === '' ? join(userHome, file.path.slice('~/'.length)) : join(folder, basename(file.path));
}

/**
 * Writes what the agent needs in its files before it accepts the placeholder. A file that has it already is not touched, and
 * one that cannot be read as JSON is left alone. Returns the paths that could not be changed, each with the reason.
 */
export async function prepareAgentFiles(
  context: AgentHome,
  profile: AgentProfile,
  login: string,
  placeholder: string,
): Promise<readonly { readonly path: string; readonly why: string }[]> {
  const failed: { path: string; why: string }[] = [];
  for (const file of profile.files.filter((each) => each.login === login)) {
    const path = agentPath(context, file);
    if (file.write === 'create' && existsSync(path)) continue;
    const isMoved = file.moved_by !== undefined && (context.env[file.moved_by] ?? '') !== '';
    const why = await writeJson(context, { path, isMoved }, fillText(file.json, placeholder));
    if (why !== null) failed.push({ path, why });
  }
  return failed;
}

/**
 * A pipe would block. A person may link a file of the home directory, but a folder that a variable names may be a project's,
 * whose links lead where its author wants.
 */
function isRegular(path: string, isMoved: boolean): boolean {
  const stats = (isMoved ? lstatSync : statSync)(path, { throwIfNoEntry: false });
  return stats === undefined || stats.isFile();
}

async function writeJson(
  context: AgentHome,
  { path, isMoved }: { readonly path: string; readonly isMoved: boolean },
  wanted: Json,
): Promise<string | null> {
  try {
    if (!isRegular(path, isMoved)) return 'is not a regular file';
    const before: unknown = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
    if (!isObject(before)) return 'is no JSON object';
    const after = mergeJson(before, wanted);
    if (JSON.stringify(after) === JSON.stringify(before)) return null;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    await replaceFile(path, `${JSON.stringify(after, null, 2)}\n`, context.now(), { keepsBackup: false });
    return null;
  } catch (error) {
    return error instanceof SyntaxError ? 'is not valid JSON' : error instanceof Error ? error.message : String(error);
  }
}

/** `{placeholder}` and `{last20}`, its last 20 characters, in any text of the JSON. */
function fillText(json: Json, placeholder: string): Json {
  const text = JSON.stringify(json)
    .replaceAll('{placeholder}', () => placeholder)
    .replaceAll('{last20}', () => placeholder.slice(-20));
  const filled: unknown = JSON.parse(text);
  return isObject(filled) ? filled : {};
}

/** The first object with the second's values: objects are merged, lists get the elements that they lack, others are replaced. */
export function mergeJson(before: Json, wanted: Json): Json {
  const merged: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(wanted)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (isObject(value)) merged[name] = mergeJson(isObject(old) ? old : {}, value);
    else if (Array.isArray(value)) merged[name] = joinLists(Array.isArray(old) ? old : [], value);
    else merged[name] = value;
  }
  return merged;
}

function joinLists(before: readonly unknown[], wanted: readonly unknown[]): readonly unknown[] {
  return [...before, ...wanted.filter((value) => !before.includes(value))];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
