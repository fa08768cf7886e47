import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { text as readStream } from 'node:stream/consumers';
import type { Call } from '../command_line.ts';
import { unreadableFile } from './unreadable_file.ts';

/** The text of an option: as written, `@FILE` from a file, or `@-` from stdin. */
export async function readOptionText(
  { context }: Pick<Call, 'context'>,
  option: string,
  written: string,
): Promise<string> {
  if (!written.startsWith('@')) return written;
  const file = written.slice(1);
  if (file === '-') return readStream(context.stdin);
  try {
    return readFileSync(resolve(context.workingDirectory, file), 'utf8');
  } catch (error) {
    throw unreadableFile(`${option} @${file}`, error);
  }
}
