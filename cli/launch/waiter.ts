import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { constants as system } from 'node:os';
import { delimiter, resolve } from 'node:path';

/**
 * The shell of `bin/svc`, which started this process and waits for its end. A run that needs nothing of ours while its command
 * runs becomes the command, so that it is the shell's child, with the streams, the terminal and the signals of one.
 */
export interface Waiter {
  readonly pid: number;
  /** Written before this process becomes the command: then the shell has the session ended. Absolute. */
  readonly record: string;
}

/** The first argument that `bin/svc` gives: `--waiter=PID:RECORD`, or `--ended=PID:RECORD` when the command has ended. */
export function parseWaiter(name: '--waiter' | '--ended', argument: string, workingDirectory: string): Waiter | null {
  const [, option, pid, record] = /^(--\w+)=(\d+):(.+)$/s.exec(argument) ?? [];
  if (option !== name || pid === undefined || record === undefined) return null;
  return { pid: Number(pid), record: resolve(workingDirectory, record) };
}

/** Whether a process can become the command. If not, starting it as a child says why. */
export function canBecome(command: string, path: string | undefined, folder: string): boolean {
  if (command === '' || command.startsWith('-') || path === undefined || process.execve === undefined) return false;
  const folders = command.includes('/') ? [''] : path.split(delimiter);
  return folders.some((each) => isProgram(resolve(folder, each, command)));
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

interface BecomingCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly waiter: Waiter;
}

/** Node ignores these; with a handler they are as usual in what it becomes. */
const IGNORED_BY_NODE = ['SIGPIPE', 'SIGXFSZ'] as const;

/** Replaces this process by the command; does not return. A shell in between, because it reports a program that does not start. */
export function becomeCommand({ command, args, env, waiter }: BecomingCommand): never {
  flushCompileCache();
  for (const name of IGNORED_BY_NODE) process.on(name, () => undefined);
  const ignored = listIgnored(readStatus(waiter.pid));
  const script = `${ignored.length === 0 ? '' : `trap '' ${ignored.join(' ')}; `}exec "$@"`;
  process.execve?.('/bin/sh', ['sh', '-c', script, 'sh', command, ...args], env);
  throw new Error('this Node cannot become another program');
}

/** The names of the signals that a process ignores, as `nohup` and a job in the background do, without `SIG`. */
export function listIgnored(status: string): readonly string[] {
  const mask = BigInt(`0x${/^SigIgn:\s*([\da-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return Object.entries(system.signals).flatMap(([name, number]) =>
    (mask & (1n << BigInt(number - 1))) === 0n || NOT_SETTABLE.has(name) ? [] : [name.slice('SIG'.length)],
  );
}

/** Second names of signals, which a shell may not know, and those that cannot be ignored. */
const NOT_SETTABLE: ReadonlySet<string> = new Set(['SIGIOT', 'SIGPOLL', 'SIGUNUSED', 'SIGKILL', 'SIGSTOP']);

/** Empty without Linux's /proc, where this is not known. */
function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch {
    return '';
  }
}
