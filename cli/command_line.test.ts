import { Readable, Writable } from 'node:stream';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { commandLine, handle, runCommandLine } from './command_line.ts';
import type { CliContext } from './context.ts';

class Text extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8');
    done();
  }
}

function contextWith(stderr: Text): CliContext {
  return {
    env: {},
    stdin: Readable.from([]),
    interactive: false,
    isInForeground: () => true,
    stdout: new Text(),
    stderr,
    userHome: '/home/u',
    workingDirectory: '/home/u',
    root: '/svc',
    version: '4.0.0',
    compileCache: '/cache',
    fetch,
    now: () => 0,
    pause: () => Promise.resolve(),
    stop: new AbortController().signal,
    renewStop: () => undefined,
  };
}

/** The exit code of a command that throws, and what it printed. */
async function runThrowing(error: Error): Promise<{ readonly code: number; readonly stderr: string }> {
  const stderr = new Text();
  const line = commandLine(contextWith(stderr), new Command());
  handle(line, line.program.command('try'), () => {
    throw error;
  });
  return { code: await runCommandLine(line, ['try']), stderr: stderr.text };
}

test.each([
  ['ENOSPC', 'the disk is full'],
  ['EROFS', 'the file system is read-only'],
  ['EACCES', 'this user may not'],
])('%s is named with its file, and without a stack', async (code, reason) => {
  const error = Object.assign(new Error('a failure'), { code, syscall: 'write', path: '/data/\u001b[2Jfile' });
  expect(await runThrowing(error)).toEqual({
    code: 1,
    stderr: `svc: cannot write /data/\\x1b[2Jfile: ${reason} (${code})\n`,
  });
});

test.each([
  [['vault', 'set'], "svc: missing required argument 'path'", 'svc vault set [options] <path>', 'svc vault set'],
  [
    ['vault', 'sets'],
    "svc: unknown command 'sets'\n     (Did you mean set?)",
    'svc vault [options] [command]',
    'svc vault',
  ],
  [
    ['vault', 'set', '--token=s3cret'],
    "svc: unknown option '--token'",
    'svc vault set [options] <path>',
    'svc vault set',
  ],
])('an error of the parser shows the usage of its command, and no value: %j', async (argv, message, usage, name) => {
  const stderr = new Text();
  const line = commandLine(contextWith(stderr), new Command('svc'));
  handle(line, line.program.command('vault').command('set').argument('<path>'), () => Promise.resolve(undefined));
  expect(await runCommandLine(line, argv)).toBe(2);
  expect(stderr.text).toBe(`${message}\n     Usage: ${usage}\n     Help:  ${name} --help\n`);
});

test('a bug of ours keeps its stack', async () => {
  await expect(runThrowing(new Error('a bug'))).rejects.toThrow('a bug');
});
