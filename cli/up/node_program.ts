import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { RotatingLog } from './rotating_log.ts';
import type { ProgramExit, ProgramHandle } from './supervised_program.ts';
import { parseJson } from '../../shared/model/json.ts';

interface NodeProgram {
  /** The file to run. */
  readonly file: string;
  /** A module to load before it. */
  readonly preloaded: string | null;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: RotatingLog;
  /** Sockets that it gets as its descriptors from 3 on. */
  readonly inherited?: readonly number[];
}

const listeningLine = z.object({ listening: z.url({ protocol: /^http$/ }) });
const logLine = z.object({ level: z.unknown().optional(), msg: z.string().optional(), message: z.string().optional() });

const KEPT_LINES = 20;
const SHOWN_LINES = 5;

/**
 * Starts one of our programs under this Node in its own process group, so that Ctrl-C reaches only the supervisor, which ends
 * the programs in order. The program prints `{"listening": url}` on stdout when ready; all other output goes to its log.
 */
export function startNodeProgram(program: NodeProgram): ProgramHandle {
  const imports = program.preloaded === null ? [] : ['--import', pathToFileURL(program.preloaded).href];
  // bin/svc gives a command room for its start; a program that keeps running would keep it too.
  const flags = process.execArgv.filter((flag) => !flag.startsWith('--min-semi-space-size='));
  const child = spawn(process.execPath, [...flags, ...imports, program.file, ...program.args], {
    env: program.env,
    stdio: ['ignore', 'pipe', 'pipe', ...(program.inherited ?? [])],
    detached: true,
  });
  const last: string[] = [];
  const record = (line: string): void => {
    program.log.write(line);
    last.push(line);
    if (last.length > KEPT_LINES) last.shift();
  };
  const exited = exitOf(child, record);
  if (child.stderr !== null) readLines(child.stderr, record);
  const ready = new Promise<string>((resolve) => {
    if (child.stdout === null) return;
    readLines(child.stdout, (line) => {
      const url = parseListeningUrl(line);
      if (url === null) record(line);
      else resolve(url);
    });
  });
  return {
    pid: child.pid ?? 0,
    ready,
    exited,
    kill: (signal) => {
      child.kill(signal);
    },
    readLastWords: () => parseLastWords(last),
  };
}

/** Settles when the program has ended and its last lines were read. */
function exitOf(child: ChildProcess, record: (line: string) => void): Promise<ProgramExit> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      record(error.message);
      if (child.pid === undefined) resolve({ code: 127, signal: null });
    });
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
}

export function readLines(stream: Readable, take: (line: string) => void): void {
  createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', take);
}

function parseListeningUrl(line: string): string | null {
  const parsed = listeningLine.safeParse(parseJson(line));
  return parsed.success ? new URL(parsed.data.listening).origin : null;
}

/** Lines to skip: empty lines, stack frames, and Node's version line after them. */
const NO_NEWS = /^\s*$|^\s+at |^Node\.js v/;

/** The messages of the last log lines; a line that is not JSON (such as an uncaught error) is kept unchanged. */
export function parseLastWords(lines: readonly string[]): readonly string[] {
  const messages = lines.flatMap((line) => {
    const parsed = logLine.safeParse(parseJson(line));
    if (!parsed.success) return NO_NEWS.test(line) ? [] : [line];
    const text = parsed.data.message ?? parsed.data.msg;
    return text === undefined ? [line] : [text];
  });
  return messages.slice(-SHOWN_LINES);
}

/** The message of a log line that reports progress; null for any other line. */
export function progressOf(line: string): string | null {
  const parsed = logLine.safeParse(parseJson(line));
  return parsed.success && parsed.data.level === 'info' ? (parsed.data.message ?? null) : null;
}
