import { waitForAbort } from '../../machine/pause.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { listSessions, type SessionRecord } from '../launch/session_list.ts';
import { askLine, askYes, isYes } from '../terminal/ask.ts';

/** Sessions that end when svc stops. If the sidecar does not answer, that is reported and nothing is known to be running. */
export async function findLiveSessions(call: Call): Promise<readonly SessionRecord[]> {
  try {
    return (await listSessions(call)).filter(({ state }) => state === 'live');
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    call.print.note(`svc: the live sessions are not known: ${error.message}`);
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

/** A question needs a terminal to read from and one to be seen at. */
function isAtTerminal({ interactive, stderr }: CliContext): boolean {
  return interactive && stderr.isTTY === true;
}

async function agreesToStop(call: Call): Promise<boolean> {
  const { context, print } = call;
  const over = new AbortController();
  const asked = stopOfQuestion(context, over.signal);
  try {
    const lines = sessionLines(await findLiveSessions(call));
    if (lines.length === 0 || asked.aborted) return true;
    for (const line of lines) print.note(line);
    const answer = await askLine(context, 'Stop svc? Ctrl-C stops it at once. [y/N] ', asked);
    return answer === null || isYes(answer);
  } finally {
    over.abort();
  }
}

/**
 * Aborts at SIGTERM or SIGHUP. Not at SIGINT: npm delivers each Ctrl-C a second time as a signal, while the next Ctrl-C at the
 * terminal is a key that ends the question.
 */
function stopOfQuestion(context: CliContext, over: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const watch = (): void => {
    context.renewStop();
    const { stop } = context;
    const onAbort = (): void => {
      if (over.aborted) return;
      if (stop.reason === 'SIGINT') watch();
      else controller.abort();
    };
    stop.addEventListener('abort', onAbort, { once: true });
  };
  watch();
  return controller.signal;
}
