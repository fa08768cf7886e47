import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { waitFor } from '../../e2e/support/wait_for.ts';
import { takesConnections } from './ports.ts';

/** A program that the bench uses, and how to install it. */
export interface Tool {
  readonly name: string;
  /** A shell command that succeeds if the program is installed. */
  readonly probe: string;
  readonly install: string;
}

export function present(tool: Tool): boolean {
  return spawnSync('sh', ['-c', tool.probe], { stdio: 'ignore' }).status === 0;
}

/** A program of the bench's own that runs until it is stopped. */
export interface Running {
  readonly pid: number;
  stop(): Promise<void>;
}

const STOP_MS = 5_000;

/** Ends the program and waits for it; after a timeout it is killed. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(timer);
}

export function runningOf(child: ChildProcess): Running {
  if (child.pid === undefined) throw new Error(`${child.spawnfile} could not be started`);
  return { pid: child.pid, stop: () => stopChild(child) };
}

/** Starts a program that listens on `port`. Returns it once it accepts connections, or fails with the text of `log`. */
export async function startServer(
  command: string,
  args: readonly string[],
  { port, log }: { port: number; log: () => string },
): Promise<Running> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  child.on('error', () => undefined);
  try {
    await waitFor(`${command} to listen`, () => {
      if (child.exitCode !== null) throw new Error(`${command} ended: ${log()}`);
      return takesConnections(port);
    });
    return runningOf(child);
  } catch (error) {
    await stopChild(child);
    throw error;
  }
}

/** The text of a log file; empty if there is none. */
export function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

const firstLine = z.object({ listening: z.number().int() });

export interface Listening extends Running {
  readonly port: number;
}

/**
 * Starts one of the bench's Node programs. It reads its settings as JSON from standard input, so that no credential is on a
 * command line, and prints `{"listening": PORT}` once it is ready.
 */
export async function startNodeProgram(
  file: URL,
  settings: unknown,
  nodeFlags: readonly string[] = [],
): Promise<Listening> {
  const child = spawn(process.execPath, [...nodeFlags, file.pathname], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(settings));
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([
    once(lines, 'line').then(([text]: unknown[]) => String(text)),
    once(child, 'exit').then(() => Promise.reject(new Error(`${file.pathname} ended before it was ready`))),
  ]);
  return { ...runningOf(child), port: firstLine.parse(JSON.parse(line)).listening };
}

/** For such a program: reads its settings from standard input. */
export async function readSettings<T>(schema: z.ZodType<T>): Promise<T> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return schema.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
}

/** For such a program: reports that it is ready. */
export function announce(port: number): void {
  process.stdout.write(`${JSON.stringify({ listening: port })}\n`);
}
