import { realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isExecutable } from '../machine/is_executable.ts';
import type { CliContext } from './context.ts';

type Found = Pick<CliContext, 'root' | 'env'>;

/** The file of this command. */
export function ownProgram({ root }: Pick<CliContext, 'root'>): string {
  return join(root, 'bin', 'svc');
}

/** What a person types to call this program from any directory: `svc` where PATH leads to it, otherwise its file. */
export function typedProgram(context: Found): string {
  return isOnPath(context) ? 'svc' : ownProgram(context);
}

/** Whether `svc` on PATH is this program. */
export function isOnPath(context: Found): boolean {
  for (const directory of (context.env['PATH'] ?? '').split(delimiter)) {
    const candidate = join(directory, 'svc');
    if (directory === '' || !isExecutable(candidate)) continue;
    return realpathSync(candidate) === realpathSync(ownProgram(context));
  }
  return false;
}
