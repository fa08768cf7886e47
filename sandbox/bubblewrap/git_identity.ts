import { execFile } from 'node:child_process';
import { findProgram, programFacts } from './find_program.ts';

/** What commits need of a person's own settings. The rest may name programs and files, or hold a credential. */
const SETTINGS = ['user.name', 'user.email', 'init.defaultbranch', 'core.autocrlf'];
const PATTERN = `^(${SETTINGS.map((name) => name.replace('.', String.raw`\.`)).join('|')})$`;
/** It only ends a git that hangs. */
const MOST_MS = 60_000;

/** The text of a `.gitconfig` with a person's name and address; empty if there are none, or no git. */
export function readGitIdentity(env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['config', '--global', '--includes', '--null', '--get-regexp', PATTERN];
  const git = findProgram('git', programFacts(env['PATH'] ?? ''));
  if (git === null) return Promise.resolve('');
  return new Promise((resolve) => {
    execFile(git, args, { env, cwd: '/', timeout: MOST_MS }, (error, stdout) => {
      resolve(error === null ? formatSettings(stdout) : '');
    });
  });
}

/** Writes what `git config --null` printed (`name`, a line feed, the value, NUL) as a file; of a repeated name the last counts. */
export function formatSettings(printed: string): string {
  const entries = printed.split('\0').map((entry) => entry.split(/\n(.*)/s, 2));
  const values = new Map(
    entries.flatMap(([name = '', value = '']) => (SETTINGS.includes(name) ? [[name, value]] : [])),
  );
  return [...values].map(([name, value]) => `[${name.replace('.', ']\n\t')} = ${quote(value)}\n`).join('');
}

/** A value as git-config(1) reads it back, whatever is in it. */
function quote(value: string): string {
  const escaped = value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\t', String.raw`\t`);
  return `"${escaped}"`;
}
