import { waitForAbort } from '../../machine/pause.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askLine, askYes, isYes } from '../terminal/ask.ts';
import { findLiveSessions, sessionLines } from './live_sessions.ts';

/** Before sessions are ended: throws `CliError` unless `--yes` is given, nothing is at stake or the person agrees. */
export async function requireAgreement(
  { context, print }: Call,
  ask: { readonly yes: boolean; readonly facts: readonly string[]; readonly question: string },
): Promise<void> {
  const { facts } = ask;
  if (ask.yes || facts.length === 0) return;
  if (!context.interactive) {
    throw new CliError(EXIT.usage, 'not confirmed: there is no terminal to ask at', [
      ...facts,
      'Add --yes to go on without being asked.',
    ]);
  }
  for (const fact of facts) print.note(fact);
  if (!(await askYes(context, ask.question))) throw new CliError(EXIT.failed, 'not confirmed: nothing was changed');
}

/** Whether the live sessions end with svc. If they are kept, the next start continues them. */
export type StopKind = 'end_sessions' | 'keep_sessions';

/**
 * Waits until `svc up` should stop. Ctrl-C ends the live sessions; at a terminal it asks first, and a second Ctrl-C stops at
 * once. SIGTERM and SIGHUP never ask and keep the sessions: service managers and closed terminals send them.
 */
export async function waitForStop(call: Call): Promise<StopKind> {
  for (;;) {
    const { stop } = call.context;
    await waitForAbort(stop);
    if (stop.reason !== 'SIGINT') return 'keep_sessions';
    if (!isAtTerminal(call.context)) return 'end_sessions';
    const kind = await askToStop(call);
    if (kind !== null) return kind;
    call.context.renewStop();
    call.print.note('svc: still running');
  }
}

/** A question needs a terminal to read from and one to be seen at. A background job of the terminal would be suspended by it. */
function isAtTerminal({ interactive, stderr, isInForeground }: CliContext): boolean {
  return interactive && stderr.isTTY === true && isInForeground();
}

/** Null if svc should continue. */
async function askToStop(call: Call): Promise<StopKind | null> {
  const { context, print } = call;
  const over = new AbortController();
  let isOpen = false;
  const asked = stopOfQuestion(context, () => isOpen, over.signal);
  try {
    const lines = sessionLines(await findLiveSessions(call, asked));
    if (asked.aborted) return kindOf(asked);
    if (lines.length === 0) return 'end_sessions';
    for (const line of lines) print.note(line);
    isOpen = true;
    const answer = await askLine(context, 'Stop svc? Ctrl-C stops it at once. [y/N] ', asked);
    if (asked.aborted) return kindOf(asked);
    return answer === null || isYes(answer) ? 'end_sessions' : null;
  } finally {
    over.abort();
  }
}

/** A second Ctrl-C ends the sessions as the first would; SIGTERM keeps them. */
function kindOf({ reason }: AbortSignal): StopKind {
  return reason === 'SIGINT' ? 'end_sessions' : 'keep_sessions';
}

/** How long after Ctrl-C npm may deliver it a second time. A person takes longer to press it again. */
const SAME_CTRL_C_MS = 500;

/**
 * Aborts at SIGTERM or SIGHUP, and at a further Ctrl-C. npm delivers each Ctrl-C a second time as a signal, so a SIGINT that
 * follows at once is ignored. Also one while the question is open: Ctrl-C is then a key, which ends the question.
 */
function stopOfQuestion(context: CliContext, isOpen: () => boolean, over: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const beganMs = context.now();
  const watch = (): void => {
    context.renewStop();
    const { stop } = context;
    const onAbort = (): void => {
      if (over.aborted) return;
      const isIgnored = isOpen() || context.now() - beganMs < SAME_CTRL_C_MS;
      if (stop.reason === 'SIGINT' && isIgnored) watch();
      else controller.abort(stop.reason);
    };
    stop.addEventListener('abort', onAbort, { once: true });
  };
  watch();
  return controller.signal;
}
