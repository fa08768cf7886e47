import type { Call } from '../command_line.ts';
import { readTextFile } from './read_text_file.ts';

/** The text of an option: as written, `@FILE` from a file, or `@-` from stdin. */
export async function readOptionText(
  { context }: Pick<Call, 'context'>,
  option: string,
  written: string,
): Promise<string> {
  return written.startsWith('@') ? readTextFile(context, written.slice(1), `${option} ${written}`) : written;
}
