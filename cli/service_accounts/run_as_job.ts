import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import type { SessionAccess } from '../../sandbox/launch/session_environment.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { runInSession } from '../launch/run_in_session.ts';
import type { RunOptions } from '../launch/run_options.ts';
import { askSidecar, type SidecarHealth } from '../up/status_command.ts';
import { Supervisor } from '../up/supervisor.ts';
import type { prepareOptions } from '../up/up_command.ts';
import { handOver, takeBack, WAITING } from './hand_over.ts';
import { sidecarProgram } from '../up/up_programs.ts';

const LOOK_AGAIN_MS = 50;
/** For the first policy, which the sidecar reads when it starts. */
const LONGEST_START_MS = 30_000;
/** For the last audit events. */
const LONGEST_DELIVERY_MS = 20_000;

/**
 * Starts the sidecar of the state directory, runs the command in a session, and stops the sidecar when its audit events are
 * delivered. Returns the command's exit status; null if a signal came before the command was started.
 */
export async function runAsJob(
  call: Call<RunOptions & { readonly control: string; readonly handOver?: string }>,
  signals: SignalSource,
  start: ReturnType<typeof prepareOptions>,
): Promise<number | null> {
  const { context, options, print } = call;
  const controlUrl = options.control;
  const supervisor = await Supervisor.open(context, start.home, (text) => print.note(`svc: ${text}`));
  try {
    const held = supervisor.holdPort(0, ['127.0.0.1']);
    const log = supervisor.openLog('sidecar');
    const sidecar = await supervisor.start(sidecarProgram(context, { ...start, held, controlUrl, log }));
    supervisor.publish({ controlUrl, proxyUrl: sidecar.url, control: null, sidecar });
    await waitForPolicy(call);
    if (context.stop.aborted) return null;
    const folder = options.handOver;
    const [command = '', ...args] = folder === undefined ? call.args : WAITING;
    const environment = (own: Record<string, string>, session: SessionAccess): Record<string, string> => {
      if (context.stop.aborted) throw new CliError(EXIT.notStarted, 'stopped before the command was started');
      if (folder !== undefined) {
        handOver(folder, session);
        print.note(`svc: the session is in ${folder} until a signal ends it`);
      }
      return own;
    };
    const { status } = await runInSession(call, signals, { command, args, environment });
    await waitForDelivery(call);
    return status;
  } finally {
    if (options.handOver !== undefined) takeBack(options.handOver);
    await supervisor.stop();
  }
}

async function waitForPolicy(call: Call): Promise<void> {
  const { context } = call;
  const isReady = await waitUntil(call, LONGEST_START_MS, (health) => health.snapshot !== null, context.stop);
  if (isReady || context.stop.aborted) return;
  const asked = await askSidecar(call);
  const why = asked.ok ? (asked.value.channel.last_error?.message ?? asked.value.channel.state) : asked.problem;
  throw new CliError(EXIT.notStarted, `the sidecar got no policy in ${LONGEST_START_MS / 1000} s: ${why}`);
}

function isDelivered({ spool, channel }: SidecarHealth): boolean {
  return spool.events === 0 || channel.state === 'revoked';
}

/** Gives up if the sidecar has ended at its control plane, which then takes no events. */
async function waitForDelivery(call: Call): Promise<void> {
  await waitUntil(call, LONGEST_DELIVERY_MS, isDelivered, new AbortController().signal);
}

/** True if the sidecar's health was as wanted in time. */
async function waitUntil(
  call: Call,
  longestMs: number,
  isWanted: (health: SidecarHealth) => boolean,
  stop: AbortSignal,
): Promise<boolean> {
  const { context } = call;
  for (let waitedMs = 0; waitedMs < longestMs && !stop.aborted; waitedMs += LOOK_AGAIN_MS) {
    const asked = await askSidecar(call);
    if (asked.ok && isWanted(asked.value)) return true;
    await context.pause(LOOK_AGAIN_MS, stop);
  }
  return false;
}
