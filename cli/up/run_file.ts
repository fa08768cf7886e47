import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from '../../shared/model/json.ts';
import { isText, isWholeNumber, orNull, readFields } from '../read_fields.ts';
import { readStateText } from './home.ts';

/** `$SVC_HOME/run.json`: the addresses of the running programs, also for scripts. */
export interface RunFile {
  readonly control_url: string;
  readonly proxy_url: string;
  /** Null if this machine runs only the sidecar. */
  readonly control_pid: number | null;
  readonly sidecar_pid: number;
  readonly version: string;
  readonly started_at: string;
}

const NAME = 'run.json';

/** The running programs of the state directory; null if there are none or the file is damaged. */
export function readRunFile(home: string): RunFile | null {
  return readFields<RunFile>(parseJson(readStateText(join(home, NAME)) ?? ''), {
    control_url: isText,
    proxy_url: isText,
    control_pid: orNull(isWholeNumber),
    sidecar_pid: isWholeNumber,
    version: isText,
    started_at: isText,
  });
}

/** Writes the file atomically: a reader sees the old content or the new. */
export function writeRunFile(home: string, value: RunFile): void {
  const temporary = join(home, `${NAME}.${process.pid}`);
  writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, join(home, NAME));
}

export function removeRunFile(home: string): void {
  rmSync(join(home, NAME), { force: true });
}
