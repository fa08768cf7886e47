import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { errorCode } from '../../shared/model/error_code.ts';

/** How a command ended. `not_started` has the system's error code: ENOENT, EACCES ... */
export type ChildEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'signalled'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'not_started'; readonly code: string; readonly message: string };

interface ChildCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** At a terminal, Ctrl-C reaches the command directly; forwarding would deliver it twice. */
  readonly terminal: boolean;
}

/** The source of signals: `process`, or an emitter in tests. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

const FORWARDED = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT', 'SIGWINCH'] as const;
const FROM_THE_TERMINAL = ['SIGINT', 'SIGQUIT', 'SIGWINCH', 'SIGCONT'] as const;

/**
 * Runs a command with our stdin, stdout and stderr, and forwards signals to it until it ends. Never rejects. While it runs,
 * these signals do not end the caller, so that the caller can end the session afterwards.
 */
export async function runChild(wanted: ChildCommand, signals: SignalSource): Promise<ChildEnd> {
  const started = start(wanted);
  if (started instanceof Error) return endWithoutStart(started);
  return superviseChild(
    started,
    signals,
    unlessFromTerminal(wanted.terminal, (name) => started.kill(name)),
  );
}

/** Delivers signals but those that a terminal itself delivers to the command. */
export function unlessFromTerminal(
  terminal: boolean,
  deliver: (name: NodeJS.Signals) => unknown,
): (name: NodeJS.Signals) => unknown {
  const skipped = new Set<NodeJS.Signals>(terminal ? FROM_THE_TERMINAL : []);
  return (name) => !skipped.has(name) && deliver(name);
}

/**
 * Waits for the end of a child that was just started (call it in the same event-loop turn). Until then, signals go to `deliver`
 * and do not end this process.
 */
export function superviseChild(
  child: ChildProcess,
  signals: SignalSource,
  deliver: (name: NodeJS.Signals) => unknown,
): Promise<ChildEnd> {
  const stopForwarding = forwardSignals(signals, deliver);
  return new Promise((resolve) => {
    const finish = (end: ChildEnd): void => {
      stopForwarding();
      resolve(end);
    };
    child.once('error', (error) => finish(endWithoutStart(error)));
    child.once('exit', (code, signal) =>
      finish(signal === null ? { kind: 'exited', code: code ?? 1 } : { kind: 'signalled', signal }),
    );
  });
}

function start(wanted: ChildCommand): ChildProcess | Error {
  try {
    return spawn(wanted.command, wanted.args, { env: wanted.env, cwd: wanted.cwd, stdio: 'inherit', shell: false });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function forwardSignals(signals: SignalSource, deliver: (name: NodeJS.Signals) => unknown): () => void {
  const listeners = new Map<NodeJS.Signals, () => void>();
  const names = new Set<NodeJS.Signals>([...FORWARDED, ...FROM_THE_TERMINAL]);
  for (const name of names) listeners.set(name, () => deliver(name));
  for (const [name, listener] of listeners) signals.on(name, listener);
  return () => {
    for (const [name, listener] of listeners) signals.off(name, listener);
  };
}

function endWithoutStart(error: Error): ChildEnd {
  const code = errorCode(error) || 'UNKNOWN';
  return { kind: 'not_started', code, message: error.message };
}

/** The exit status that a shell would return: the command's own, 128 + n for signal n, 127 not found, 126 not executable. */
export function exitStatusOf(end: ChildEnd): number {
  if (end.kind === 'exited') return end.code;
  if (end.kind === 'signalled') return 128 + constants.signals[end.signal];
  return end.code === 'ENOENT' ? 127 : 126;
}
