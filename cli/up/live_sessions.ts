import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { endSession, listSessions, type SessionRecord } from '../launch/session_list.ts';
import { listSessionFolders } from './session_folders.ts';
import { counted } from '../../shared/model/sentence.ts';

/** Sessions that end when svc stops. If the sidecar does not answer, that is reported and nothing is known to be running. */
export async function findLiveSessions(call: Call, signal?: AbortSignal): Promise<readonly SessionRecord[]> {
  try {
    return (await listSessions(call, signal)).filter(({ state }) => state === 'live');
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    if (signal?.aborted !== true) call.print.note(`svc: the live sessions are not known: ${error.message}`);
    return [];
  }
}

/** One line for each session that would end, under a heading; none if there is no session. */
export function sessionLines(sessions: readonly SessionRecord[]): readonly string[] {
  if (sessions.length === 0) return [];
  return [
    `This ends ${counted(sessions.length, 'live session')}:`,
    ...sessions.map((session) => `  ${lineOf(session)}`),
  ];
}

function lineOf({ session_id: id, name, sandbox }: SessionRecord): string {
  const image = sandbox === null || sandbox === undefined ? '' : `, container of ${sandbox.image}`;
  return `${id}${name === null ? '' : ` (${name})`}${image}`;
}

/** Asks the sidecar to end these sessions; returns those that it did not end, with the reason. */
export async function endSessions(
  call: Call,
  sessions: readonly SessionRecord[],
  timeoutMs?: number,
): Promise<readonly { readonly id: string; readonly why: string }[]> {
  const failed = await Promise.all(
    sessions.map(async ({ session_id: id }) => {
      try {
        await endSession(call, id, timeoutMs);
        return null;
      } catch (error) {
        if (!(error instanceof CliError)) throw error;
        return { id, why: error.message };
      }
    }),
  );
  return failed.filter((each) => each !== null);
}

/** Names the container of a session, so that the next start removes it. */
const CONTAINER_FILE = 'container.json';

/**
 * Removes the keys and the saved state of every session from the state directory, so that no later start continues one. Call
 * it when no sidecar runs.
 */
export function removeSavedSessions(home: string): void {
  for (const { path } of listSessionFolders(home)) {
    if (!existsSync(join(path, CONTAINER_FILE))) rmSync(path, { recursive: true, force: true });
    else {
      const others = readdirSync(path).filter((file) => file !== CONTAINER_FILE);
      for (const file of others) rmSync(join(path, file), { recursive: true, force: true });
    }
  }
}
