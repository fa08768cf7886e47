import { waitForAbort } from '../../machine/pause.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { listSessions, type SessionRecord } from '../launch/session_list.ts';
import { askLine, askYes, isYes } from '../terminal/ask.ts';

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

/** One line for each session that would end, under a heading; none if there is no session. */
export function sessionLines(sessions: readonly SessionRecord[]): readonly string[] {
  if (sessions.length === 0) return [];
  const count = sessions.length === 1 ? '1 live session' : `${sessions.length} live sessions`;
  return [`This ends ${count}:`, ...sessions.map((session) => `  ${lineOf(session)}`)];
}

function lineOf({ session_id: id, name, sandbox }: SessionRecord): string {
  const image = sandbox === null || sandbox === undefined ? '' : `, container of ${sandbox.image}`;
  return `${id}${name === null ? '' : ` (${name})`}${image}`;
}

/**
 * Waits until `svc up` should stop. After Ctrl-C at a terminal with live sessions it asks first; a second Ctrl-C stops at once.
 * SIGTERM and SIGHUP never ask.
 */
export async function waitForStop(call: Call): Promise<void> {
  for (;;) {
    const { stop } = call.context;
    await waitForAbort(stop);
    if (stop.reason !== 'SIGINT' || !isAtTerminal(call.context)) return;
    if (await agreesToStop(call)) return;
    call.context.renewStop();
    call.print.note('svc: still running');
  }
}

/** A question needs a terminal to read from and one to be seen at. A background job of the terminal would be suspended by it. */
function isAtTerminal({ interactive, stderr, isInForeground }: CliContext): boolean {
  return interactive && stderr.isTTY === true && isInForeground();
}

async function agreesToStop(call: Call): Promise<boolean> {
  const { context, print } = call;
  const over = new AbortController();
  let isOpen = false;
  const asked = stopOfQuestion(context, () => isOpen, over.signal);
  try {
    const lines = sessionLines(await findLiveSessions(call, asked));
    if (lines.length === 0 || asked.aborted) return true;
    for (const line of lines) print.note(line);
    isOpen = true;
    const answer = await askLine(context, 'Stop svc? Ctrl-C stops it at once. [y/N] ', asked);
    return answer === null || isYes(answer);
  } finally {
    over.abort();
  }
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
      else controller.abort();
    };
    stop.addEventListener('abort', onAbort, { once: true });
  };
  watch();
  return controller.signal;
}
