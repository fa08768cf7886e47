import { closeSync, openSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorCode } from '../../shared/model/error_code.ts';
import { exportOwned } from '../bindings/export_command.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';

export interface DeleteOptions {
  readonly export: string | false;
  readonly yes?: boolean;
}

/** Refuses a deletion that nobody can be asked about. */
export function demandConfirmation({ context, options }: Call<DeleteOptions>): void {
  if (options.yes === true || context.interactive) return;
  throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
}

interface Deletion {
  /** What has to be typed. */
  readonly typed: string;
  readonly what: string;
  /** The file of the export, if the options name none. */
  readonly file: string;
  /** Said about what others own. */
  readonly others: string;
}

/** Exports what the caller may read, unless told not to, and asks for the name of what is deleted. */
export async function exportAndConfirm(
  { context, options, print }: Call<DeleteOptions>,
  client: HttpClient,
  { typed, what, file, others }: Deletion,
): Promise<void> {
  if (options.export === false) print.note('Nothing is exported (--no-export).');
  else {
    const path = resolve(context.workingDirectory, options.export === '' ? file : options.export);
    await exportTo(client, path);
    print.note(`Exported to ${path}, without the values of secrets.${others}`);
  }
  if (options.yes === true) return;
  const answer = await askOrStop(context, `Type ${typed} to delete ${what} for good: `);
  if (answer.trim() !== typed) throw new CliError(EXIT.failed, `that is not ${typed}: nothing was deleted`);
}

/** Writes an export into a new file that only its user can read. */
async function exportTo(client: HttpClient, file: string): Promise<void> {
  const descriptor = createPrivate(file);
  try {
    await exportOwned(client, (line) => void writeSync(descriptor, line));
  } finally {
    closeSync(descriptor);
  }
}

function createPrivate(file: string): number {
  try {
    return openSync(file, 'wx', 0o600);
  } catch (error) {
    const message = `cannot create ${file} (${errorCode(error)}): nothing was deleted`;
    throw new CliError(EXIT.failed, message, ['Name another file with --export FILE.']);
  }
}
