import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256Hex } from '../../machine/sha256.ts';
import { parseJson } from '../../shared/model/json.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Result } from '../../shared/model/result.ts';
import { homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import type { RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import { homeVolumesAt, type HomeVolume } from '../../sandbox/engine/docker_volumes.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';

type Env = CliContext['env'];

/** The home of an agent in containers, and where its volume is. */
interface AgentHome extends HomeVolume {
  readonly endpoint: string;
}

/** What decides which volume an agent's home is in: where anything here differs, the home is another one. */
export interface HomeOwner {
  readonly stateHome: string;
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

export function homeVolumeOf({ stateHome, agent, folder, ...more }: HomeOwner): HomeVolume {
  const real = realpathSync(folder);
  const { project, ownImage, uid, target, mountPoints } = more;
  const owner = [realpathSync(stateHome), agent, real, project, ownImage, uid, target, mountPoints.toSorted()];
  const digest = sha256Hex(JSON.stringify(owner)).slice(0, 16);
  return { name: `svc-home-${agent}-${digest}`, agent, folder: real };
}

/** Creates the volume if it is not there, and remembers at which engine. */
export async function ensureHome(env: Env, stateHome: string, endpoint: string, home: HomeVolume): Promise<void> {
  const known = readEngines(stateHome);
  if (!known.includes(endpoint)) {
    writeFileSync(recordFile(stateHome), `${JSON.stringify({ endpoints: [...known, endpoint] })}\n`, { mode: 0o600 });
  }
  valueOrError(await homeVolumesAt(env, endpoint).create(home, homeLabelOf(stateHome)));
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

/** Removes a home with everything that the agent kept there. */
export async function removeHome(env: Env, { endpoint, name }: AgentHome): Promise<void> {
  valueOrError(await homeVolumesAt(env, endpoint).remove(name));
}

const record = z.object({ endpoints: z.array(z.string().startsWith('unix:///')) });

/** The engines that have had homes of this state directory; empty for most. */
function readEngines(stateHome: string): readonly string[] {
  const file = recordFile(stateHome);
  if (!existsSync(file)) return [];
  return record.safeParse(parseJson(readFileSync(file, 'utf8'))).data?.endpoints ?? [];
}

function recordFile(stateHome: string): string {
  return join(stateHome, 'agent_homes.json');
}

function valueOrError<T>(result: Result<T, RuntimeFailure>): T {
  if (result.ok) return result.value;
  throw new CliError(EXIT.failed, toPrintable(result.error.message), result.error.fixes.map(toPrintable));
}
