import { existsSync, lstatSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isObject, mergeJson } from '../../sandbox/image/home/prepare_home.ts';
import type { CliContext } from '../context.ts';
import { ChangedMeanwhile, replaceFile } from '../up/replace_file.ts';
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
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const outcome = await tryToWriteJson(context, { path, isMoved }, wanted);
    if (outcome !== 'changed_meanwhile') return outcome?.why ?? null;
  }
  return 'is being changed by another program';
}

/** A running agent writes its file rarely. */
const MOST_TRIES = 5;

/** Null once it is written, or needs no change. What the agent itself has written since it was read is not lost. */
async function tryToWriteJson(
  context: AgentHome,
  { path, isMoved }: { readonly path: string; readonly isMoved: boolean },
  wanted: Json,
): Promise<{ readonly why: string } | 'changed_meanwhile' | null> {
  try {
    if (!isRegular(path, isMoved)) return { why: 'is not a regular file' };
    const readText = existsSync(path) ? readFileSync(path, 'utf8') : null;
    const before: unknown = readText === null ? {} : JSON.parse(readText);
    if (!isObject(before)) return { why: 'is no JSON object' };
    const after = mergeJson(before, wanted);
    if (JSON.stringify(after) === JSON.stringify(before)) return null;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const text = `${JSON.stringify(after, null, 2)}\n`;
    await replaceFile(path, text, context.now(), { keepsBackup: false, readText });
    return null;
  } catch (error) {
    if (error instanceof ChangedMeanwhile) return 'changed_meanwhile';
    if (error instanceof SyntaxError) return { why: 'is not valid JSON' };
    return { why: error instanceof Error ? error.message : String(error) };
  }
}

/** `{placeholder}` and `{last20}`, its last 20 characters, in any text of the JSON; in a container also `{workspace}`. */
export function fillText(json: Json, placeholder: string, workspace = ''): Json {
  const text = JSON.stringify(json)
    .replaceAll('{placeholder}', () => placeholder)
    .replaceAll('{last20}', () => placeholder.slice(-20))
    .replaceAll('{workspace}', () => workspace);
  const filled: unknown = JSON.parse(text);
  return isObject(filled) ? filled : {};
}
