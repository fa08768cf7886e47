import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ENGINE_ENDPOINT } from '../../shared/model/settings.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Result } from '../../shared/model/result.ts';
import { homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import type { RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import { homeVolumesAt, type HomeVolume } from '../../sandbox/engine/home_volumes.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { ChangedMeanwhile, replaceFile } from '../up/replace_file.ts';

type Env = CliContext['env'];

/** The home of an agent in containers, and where its volume is. */
interface AgentHome extends HomeVolume {
  readonly endpoint: string;
}

/** What decides which volume an agent's home is in: where anything here differs, the home is another one. */
export interface HomeOwner {
  /** Of the state directory, from {@link rememberEngine}. */
  readonly stateId: string;
  readonly agent: string;
  /** The folder mounted as the project, or where the command was given if there is none. */
  readonly folder: string;
  readonly project: 'rw' | 'ro' | 'none';
  /** An image of the person's own, whose home the volume begins with; null for the one that svc makes. */
  readonly ownImage: string | null;
  /** The number of the agent's user in its image, who owns what is in the volume. */
  readonly uid: number;
  /** Where the volume is mounted. */
  readonly target: string;
  /**
   * The mount points in the home. Every run with the volume has all of them, so that no agent can replace one by a link, which
   * would lead the mount of a later run elsewhere.
   */
  readonly mountPoints: readonly string[];
}

export function homeVolumeOf({ stateId, agent, folder, ...more }: HomeOwner): HomeVolume {
  const real = realpathSync(folder);
  const { project, ownImage, uid, target, mountPoints } = more;
  const owner = [stateId, agent, real, project, ownImage, uid, target, mountPoints.toSorted()];
  const digest = sha256Hex(JSON.stringify(owner)).slice(0, 16);
  return { name: `svc-home-${agent}-${digest}`, agent, folder: real };
}

/** Creates the volume if it is not there. */
export async function ensureHome(env: Env, stateHome: string, endpoint: string, home: HomeVolume): Promise<void> {
  valueOrError(await homeVolumesAt(env, endpoint).create(home, homeLabelOf(stateHome)));
}

/**
 * Remembers that the engine has homes, before the first is made. Returns the id of the state directory, which is in the names of its
 * homes: a directory that is made anew at the same path does not take over the homes of the old one, and what agents left there.
 */
export async function rememberEngine(stateHome: string, endpoint: string, now: number): Promise<string> {
  const file = recordFile(stateHome);
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const readText = existsSync(file) ? readFileSync(file, 'utf8') : null;
    const { endpoints, id: known } = parseRecord(readText);
    if (known !== undefined && endpoints.includes(endpoint)) return known;
    const id = known ?? randomBytes(16).toString('hex');
    const text = `${JSON.stringify({ id, endpoints: [...new Set([...endpoints, endpoint])] })}\n`;
    try {
      await replaceFile(file, text, now, { keepsBackup: false, readText });
    } catch (error) {
      // Another launch did the same.
      if (!(error instanceof ChangedMeanwhile)) throw error;
    }
  }
  throw new CliError(EXIT.failed, `${file} is being changed by other programs`);
}

/** Each launch writes the file once at the most. */
const MOST_TRIES = 20;

/** Whether agents of this state directory have had homes. No engine is asked. */
export function hasHomes(stateHome: string): boolean {
  return existsSync(recordFile(stateHome));
}

/** The homes of a state directory's agents; `onProblem` gets a line for each engine that does not answer. */
export async function listHomes(
  env: Env,
  stateHome: string,
  onProblem: (text: string) => void,
): Promise<readonly AgentHome[]> {
  const homes: AgentHome[] = [];
  for (const endpoint of readEngines(stateHome)) {
    const listed = await homeVolumesAt(env, endpoint).list(homeLabelOf(stateHome));
    if (listed.ok) homes.push(...listed.value.map((home) => ({ ...home, endpoint })));
    else onProblem(`the homes of agents at ${endpoint} are not known: ${toPrintable(listed.error.message)}`);
  }
  return homes;
}

/** Removes homes with everything that agents kept there. Returns their names; throws if some are still there, and says which. */
export async function removeHomes(env: Env, homes: readonly AgentHome[]): Promise<readonly string[]> {
  const kept: string[] = [];
  for (const { endpoint, name } of homes) {
    const removed = await homeVolumesAt(env, endpoint).remove(name);
    if (!removed.ok) kept.push(toPrintable(`${name}: ${removed.error.message}`));
  }
  if (kept.length === 0) return homes.map(({ name }) => name);
  throw new CliError(EXIT.failed, `${kept.length} of ${homes.length} homes could not be removed`, kept);
}

const record = z.object({ id: z.string().optional(), endpoints: z.array(z.string().regex(ENGINE_ENDPOINT)) });

/** The engines that have had homes of this state directory; empty for most. */
function readEngines(stateHome: string): readonly string[] {
  const file = recordFile(stateHome);
  return parseRecord(existsSync(file) ? readFileSync(file, 'utf8') : null).endpoints;
}

function parseRecord(text: string | null): z.output<typeof record> {
  return record.safeParse(text === null ? null : parseJson(text)).data ?? { endpoints: [] };
}

function recordFile(stateHome: string): string {
  return join(stateHome, 'agent_homes.json');
}

function valueOrError<T>(result: Result<T, RuntimeFailure>): T {
  if (result.ok) return result.value;
  throw new CliError(EXIT.failed, toPrintable(result.error.message), result.error.fixes.map(toPrintable));
}
