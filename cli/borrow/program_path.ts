import { existsSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { isExecutable } from '../../machine/is_executable.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** The absolute path of the program that a person typed: by the PATH of the terminal, in which nothing relative counts. */
export function programPath(context: CliContext, typed: string): string {
  if (typed.includes('/')) return resolve(context.workingDirectory, typed);
  const folders = (context.env['PATH'] ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  const found = folders.map((folder) => join(folder, typed)).find((path) => isFile(path) && isExecutable(path));
  if (found !== undefined) return found;
  throw new CliError(EXIT.failed, `there is no program ${JSON.stringify(typed)} on this machine`, [
    'Install it, or give its absolute path.',
  ]);
}

/** The program runs in `/`, so a file that is named from here would be another one there. */
export function requireAbsoluteFiles(context: CliContext, args: readonly string[]): void {
  const relative = args.find((word) => !isAbsolute(word) && isFile(resolve(context.workingDirectory, word)));
  if (relative === undefined) return;
  const absolute = resolve(context.workingDirectory, relative);
  throw new CliError(EXIT.usage, `the program runs in /, where ${JSON.stringify(relative)} is no file`, [
    `Write ${absolute}`,
  ]);
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
