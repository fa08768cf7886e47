import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { listHomes } from '../agents/agent_homes.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf, requireOwnHome } from './home.ts';
import { endLeftOvers } from './supervisor.ts';
import { pause } from '../../machine/pause.ts';
import { isRunning, type ProcessIdentity } from '../../machine/process_identity.ts';
import { readEndpoints, removeLeftContainers } from './left_containers.ts';
import { counted } from '../../shared/model/sentence.ts';
import { endSessions, findLiveSessions, removeSavedSessions, sessionLines } from './live_sessions.ts';
import { requireAgreement } from './stop_question.ts';
import { UpLock } from './up_lock.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** The supervisor gives each of its two programs five seconds, and the rest to a busy machine. */
export const LONGEST_STOP_MS = 30_000;
const LOOK_AGAIN_MS = 50;
const SAY_SO_AFTER_MS = 1_000;

interface DownOptions {
  readonly yes?: boolean;
  readonly keepSessions?: boolean;
}

/** `svc down`. */
export function addDownCommand(line: CommandLine): void {
  const down = line.program
    .command('down')
    .description('stop what `svc up` started on this state directory, and wait until it has ended')
    .option('--yes', 'also end live sessions, without asking')
    .option('--keep-sessions', 'let live sessions continue when svc is started again');
  handle<DownOptions>(line, down, stopEverything);
}

async function stopEverything(call: Call<DownOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  requireOwnHome(home, process.getuid?.());
  const keepsSessions = options.keepSessions === true;
  const sessions = UpLock.readRunning(home) === null ? [] : await findLiveSessions(call);
  if (keepsSessions) {
    if (sessions.length > 0)
      print.note(`svc: ${counted(sessions.length, 'live session')} will continue when svc is started again`);
  } else {
    const facts = sessionLines(sessions);
    await requireAgreement(call, { yes: options.yes === true, facts, question: 'Stop svc and end them?' });
    for (const { id, why } of await endSessions(call, sessions)) print.warn(`${id} could not be ended in time: ${why}`);
  }
  const stopped = await stopSvc(call, home);
  if (!keepsSessions) await forgetSessions(call, home);
  await tellOfHomes(call, home);
  print.line({ home, stopped }, stopped ? `stopped svc on ${home}` : `svc is not running on ${home}`);
}

async function tellOfHomes({ context, print }: Call, home: string): Promise<void> {
  const homes = await listHomes(context.env, home, () => undefined);
  if (homes.length > 0) print.note('svc: homes of agents stay in volumes of the engine: svc agents homes');
}

/** Under the lock, so that no sidecar that starts meanwhile has restored the sessions whose files are removed. */
async function forgetSessions({ context, print }: Call, home: string): Promise<void> {
  if (!existsSync(join(home, 'sessions'))) return;
  const outcome = UpLock.take(home, process.pid);
  if (outcome.kind !== 'taken') {
    print.warn('svc was started again meanwhile: sessions that were not ended continue');
    return;
  }
  try {
    removeSavedSessions(home);
    const { problems } = await removeLeftContainers(context.env, home, readEndpoints(home));
    for (const problem of problems) print.warn(problem);
  } finally {
    outcome.lock.release();
  }
}

/** Stops svc on the state directory and waits until all its programs have ended. Returns false if nothing was running. */
export async function stopSvc(call: Call, home: string): Promise<boolean> {
  const running = UpLock.readRunning(home);
  if (running !== null) await endSupervisor(call, home, running.supervisor);
  const leftOver = await endLeftOvers(home, (text) => call.print.note(`svc: ${text}`));
  return running !== null || leftOver > 0;
}

async function endSupervisor(call: Call, home: string, supervisor: ProcessIdentity): Promise<void> {
  const { context, print } = call;
  sendTerm(home, supervisor);
  for (let waitedMs = 0; isRunning(supervisor); waitedMs += LOOK_AGAIN_MS) {
    if (waitedMs === SAY_SO_AFTER_MS) print.note('svc: waiting for the programs to end');
    if (waitedMs >= LONGEST_STOP_MS || context.stop.aborted) throw stillRunningError(home, supervisor.pid);
    await pause(LOOK_AGAIN_MS, context.stop);
  }
}

function sendTerm(home: string, { pid }: ProcessIdentity): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return;
    throw new CliError(EXIT.failed, `svc on ${home} (process ${pid}) cannot be stopped (${errorCode(error)})`, [
      'Run the command as the user who started it.',
    ]);
  }
}

export function stillRunningError(home: string, pid: number): CliError {
  return new CliError(EXIT.failed, `svc on ${home} (process ${pid}) is still stopping`, [
    `Look into its logs with "svc logs"; "kill -9 ${pid}" and then "svc down" end it and its programs.`,
  ]);
}
