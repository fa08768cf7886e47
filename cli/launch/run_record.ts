import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isAlive } from '../../machine/process_identity.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { parseJson } from '../../shared/model/json.ts';
import { isFlag, isText, isTextList, orNull, readExactFields } from '../read_fields.ts';
import type { Call } from '../command_line.ts';
import { homeOf } from '../up/home.ts';

/** What the end of a command that a process became needs to know of its start. */
interface RunRecord {
  readonly session_id: string;
  readonly had_placeholders: boolean;
  readonly expected_hosts: readonly string[] | null;
  readonly is_counted: boolean;
  readonly home: string;
  readonly control: string | null;
  readonly json: boolean;
  readonly quiet: boolean;
}

/** How the end of a command is told. */
export interface CommandEnd {
  readonly sessionId: string;
  readonly hadPlaceholders: boolean;
  readonly expectedHosts: readonly string[] | undefined;
  readonly isCounted: boolean;
}

export function recordOf({ context, options }: Call<{ readonly quiet?: boolean }>, end: CommandEnd): RunRecord {
  return {
    session_id: end.sessionId,
    had_placeholders: end.hadPlaceholders,
    expected_hosts: end.expectedHosts === undefined ? null : [...end.expectedHosts],
    is_counted: end.isCounted,
    // Absolute: the command may remove the folder that it was started in.
    home: homeOf(context, options),
    control: options.control ?? null,
    json: options.json === true,
    quiet: options.quiet === true,
  };
}

/** Writes the record of a run; false if the state directory cannot be written. Records of shells that were killed are removed. */
export function writeRecord(path: string, record: RunRecord): boolean {
  const folder = dirname(path);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) {
      if (!isAlive(Number(name))) rmSync(join(folder, name), { force: true });
    }
    writeFileSync(path, JSON.stringify(record), { mode: 0o600, flag: 'wx' });
    return true;
  } catch (error) {
    if (!UNWRITABLE.has(errorCode(error))) throw error;
    // Half of one, on a full disk.
    if (existsSync(path)) rmSync(path);
    return false;
  }
}

/** A full disk, or a state directory that this user may only read. */
const UNWRITABLE: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'ENOTDIR']);

/** Reads and removes the record of a run; null, and nothing is removed, if it is damaged: it may be any file. */
export function takeRecord(path: string): RunRecord | null {
  const read = readExactFields<RunRecord>(parseJson(readFileSync(path, 'utf8')), {
    session_id: isText,
    had_placeholders: isFlag,
    expected_hosts: orNull(isTextList),
    is_counted: isFlag,
    home: isText,
    control: orNull(isText),
    json: isFlag,
    quiet: isFlag,
  });
  if (read !== null) rmSync(path);
  return read;
}
