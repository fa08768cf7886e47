import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writePrivateFile } from '../../machine/state_file.ts';
import type { EngineAddress } from './sandbox.ts';

/** The file of a session's folder that outlives what else is in it, until the container is gone. */
export const CONTAINER_FILE = 'container.json';

const containerRecord = z.strictObject({
  version: z.literal(1),
  session_id: z.string(),
  /** Null before the engine has made one. */
  container_id: z.string().nullable(),
  program: z.literal('docker'),
  endpoint: z.string().startsWith('unix:///'),
});

/** Which engine has the container of a session: all that is left of it after a crash. */
export interface ContainerRecord {
  readonly sessionId: string;
  readonly containerId: string | null;
  readonly runtime: EngineAddress;
}

/** Writes `container.json` (0600), so that it is there also after a crash. */
export async function writeContainerRecord(directory: string, record: ContainerRecord): Promise<void> {
  const { program, endpoint } = record.runtime;
  const { sessionId: session_id, containerId: container_id } = record;
  const text = JSON.stringify({ version: 1, session_id, container_id, program, endpoint });
  await writePrivateFile(join(directory, CONTAINER_FILE), `${text}\n`);
}

/** What `container.json` of a session's folder says; null when there is none, or it says nothing that could be acted on. */
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
