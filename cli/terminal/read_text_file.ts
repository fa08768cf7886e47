import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { text as readStream } from 'node:stream/consumers';
import type { CliContext } from '../context.ts';
import { unreadableFile } from './unreadable_file.ts';

/** The text of a file that a person named, or of stdin for `-`. `shown` names it in the error. */
export async function readTextFile(context: CliContext, file: string, shown = file): Promise<string> {
  if (file === '-') return readStream(context.stdin);
  try {
    return readFileSync(resolve(context.workingDirectory, file), 'utf8');
  } catch (error) {
    throw unreadableFile(shown, error);
  }
}
