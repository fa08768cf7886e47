import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ENGINES } from '../../sandbox/engine/engine_address.ts';
import { ENGINE_ENDPOINT } from '../../shared/model/settings.ts';
import { writePrivateFile } from '../../machine/state_file.ts';
import type { EngineAddress } from './sandbox.ts';

/** The one file of a session's folder that stays until the container is removed. */
export const CONTAINER_FILE = 'container.json';

const containerRecord = z.strictObject({
  version: z.literal(1),
  session_id: z.string(),
  /** Null before the engine has created one. */
  container_id: z.string().nullable(),
  program: z.enum(ENGINES),
  endpoint: z.string().regex(ENGINE_ENDPOINT),
});

/** Identifies the engine and the container of a session; after a crash this is all that is left. */
interface ContainerRecord {
  readonly sessionId: string;
  readonly containerId: string | null;
  readonly runtime: EngineAddress;
}

/** Writes `container.json` (0600), so that it survives a crash. */
export async function writeContainerRecord(directory: string, record: ContainerRecord): Promise<void> {
  const { program, endpoint } = record.runtime;
  const { sessionId: session_id, containerId: container_id } = record;
  const text = JSON.stringify({ version: 1, session_id, container_id, program, endpoint });
  await writePrivateFile(join(directory, CONTAINER_FILE), `${text}\n`);
}

/** Reads `container.json` of a session's folder; null if there is none, or if it cannot be acted on. */
export async function readContainerRecord(directory: string): Promise<ContainerRecord | null> {
  try {
    const parsed = containerRecord.safeParse(JSON.parse(await readFile(join(directory, CONTAINER_FILE), 'utf8')));
    if (!parsed.success) return null;
    const { session_id: sessionId, container_id: containerId, program, endpoint } = parsed.data;
    return { sessionId, containerId, runtime: { program, endpoint } };
  } catch {
    return null;
  }
}

/** Removes everything in a folder but one file. */
export async function removeAllBut(directory: string, kept: string): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  const others = names.filter((name) => name !== kept);
  await Promise.all(others.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}
