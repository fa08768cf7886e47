import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ENGINE_ENDPOINT } from '../../shared/model/settings.ts';
import { parseJson } from '../../shared/model/json.ts';
import { HOME_LABEL, homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { engineRuntime } from '../../sandbox/engine/docker_runtime.ts';
import type { CliContext } from '../context.ts';
import { listSessionFolders, readSessionText } from './session_folders.ts';

interface RemovedContainers {
  readonly removed: readonly string[];
  /** What could not be done, a line each. */
  readonly problems: readonly string[];
}

/**
 * Removes the containers of this state directory at these engines, for when no sidecar watches them. A container is touched only
 * if its label names the state directory.
 */
export async function removeLeftContainers(
  env: CliContext['env'],
  home: string,
  endpoints: readonly string[],
): Promise<RemovedContainers> {
  const removed: string[] = [];
  const problems: string[] = [];
  if (endpoints.length === 0 || !existsSync(home)) return { removed, problems };
  const label = homeLabelOf(home);
  for (const endpoint of endpoints) {
    const runtime = engineRuntime(env, endpoint);
    const listed = await runtime.listByLabel(HOME_LABEL, label);
    if (!listed.ok) problems.push(`the containers at ${endpoint} are not known: ${listed.error.message}`);
    const ours = listed.ok ? listed.value.filter((found) => found.home === label) : [];
    for (const { id } of ours) {
      const outcome = await runtime.remove(id);
      if (outcome.ok) removed.push(id);
      else problems.push(`container ${id.slice(0, 12)} could not be removed: ${outcome.error.message}`);
    }
  }
  return { removed, problems };
}

const containerRecord = z.object({ endpoint: z.string().regex(ENGINE_ENDPOINT) });

/** The engines that the records of sessions name. */
export function readEndpoints(home: string): readonly string[] {
  const found = listSessionFolders(home).map(({ path }) => {
    const text = readSessionText(join(path, 'container.json'));
    return containerRecord.safeParse(parseJson(text ?? '')).data?.endpoint;
  });
  return [...new Set(found.filter((endpoint) => endpoint !== undefined))];
}
