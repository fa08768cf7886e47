import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { buildProgram } from '../program.ts';

/** The command tree for inspection, whole or as much as `argv` needs: its output is discarded. */
export async function referenceProgram(argv: readonly string[] | null = null): Promise<Command> {
  const context = {
    env: {},
    stdin: new PassThrough(),
    interactive: false,
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    userHome: '/nonexistent',
    workingDirectory: '/',
    root: '/nonexistent',
    version: '0.0.0',
    compileCache: '/nonexistent',
    fetch: () => Promise.reject(new Error('the reference makes no calls')),
    now: () => 0,
    pause: () => Promise.resolve(),
    stop: new AbortController().signal,
    isInForeground: () => true,
    renewStop: () => {},
  };
  const { program } = await buildProgram(context, new EventEmitter(), argv);
  return program;
}
