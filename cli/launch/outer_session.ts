import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import { findLauncherAbove } from './launcher_processes.ts';
import type { SessionRecord } from './session_list.ts';

/** What a person does about a command that may not run inside a session. */
export const OUTSIDE = 'Run it in a terminal of your own.';

/** What is found once holds for a call: its processes and its session's files are read each time otherwise. */
const found = new WeakMap<CliContext, Promise<SessionRecord | null>>();

/** The session in which svc itself runs, as its variables or the processes above it say; null if there is none. Throws if it has ended. */
export function findOuterSession(call: Call): Promise<SessionRecord | null> {
  const known = found.get(call.context) ?? lookForOuterSession(call);
  found.set(call.context, known);
  return known;
}

async function lookForOuterSession(call: Call): Promise<SessionRecord | null> {
  const { context, options } = call;
  const id = context.env['SVC_SESSION_ID'];
  const launcher = findLauncherAbove(homeOf(context, options));
  if (id === undefined && launcher === null) return null;
  // Loaded on use, so that a run outside of a session starts faster.
  const { listSessions } = await import('./session_list.ts');
  const sessions = await listSessions(call);
  const outer =
    (launcher !== null && sessions.find(({ owner }) => owner?.pid === launcher.pid)) ||
    sessions.find((session) => session.session_id === id);
  if (!outer) throw new CliError(EXIT.failed, 'this runs inside a session that has ended', [OUTSIDE]);
  return outer;
}
