import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { HOME_LABEL, homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { dockerRuntime } from '../../sandbox/engine/docker_runtime.ts';
import type { CliContext } from '../context.ts';

/**
 * Removes the containers of sessions that the sidecar did not end, because nothing else watches them now. Call it when no
 * sidecar runs. A container is touched only if its label names this state directory. Returns what could not be done.
 */
export async function removeLeftContainers(env: CliContext['env'], home: string): Promise<readonly string[]> {
  const problems = await Promise.all(endpointsIn(home).map((endpoint) => removeAt(env, endpoint, homeLabelOf(home))));
  return problems.flat();
}

async function removeAt(env: CliContext['env'], endpoint: string, label: string): Promise<readonly string[]> {
  const runtime = dockerRuntime(env, endpoint);
  const listed = await runtime.listByLabel(HOME_LABEL, label);
  if (!listed.ok) return [`the containers at ${endpoint} are not known: ${listed.error.message}`];
  const problems: string[] = [];
  for (const { id } of listed.value.filter(({ home }) => home === label)) {
    const removed = await runtime.remove(id);
    if (!removed.ok) problems.push(`container ${id.slice(0, 12)} could not be removed: ${removed.error.message}`);
  }
  return problems;
}

const containerRecord = z.object({ endpoint: z.string().startsWith('unix:///') });
const MAX_BYTES = 64 * 1024;

/** The engines that the records of sessions name. */
function endpointsIn(home: string): readonly string[] {
  const directory = join(home, 'sessions');
  const found = namesIn(directory).map((name) => endpointOf(join(directory, name, 'container.json')));
  return [...new Set(found.filter((endpoint) => endpoint !== null))];
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Null if there is no record that can be acted on. */
function endpointOf(path: string): string | null {
  try {
    const found = lstatSync(path);
    if (!found.isFile() || found.size > MAX_BYTES) return null;
    return containerRecord.safeParse(parseJson(readFileSync(path, 'utf8'))).data?.endpoint ?? null;
  } catch {
    return null;
  }
}
