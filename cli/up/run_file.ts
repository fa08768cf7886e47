import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { readStateText } from './home.ts';

const runFile = z.object({
  control_url: z.string(),
  proxy_url: z.string(),
  /** Null if this machine runs only the sidecar. */
  control_pid: z.number().int().nullable(),
  sidecar_pid: z.number().int(),
  version: z.string(),
  started_at: z.string(),
});
/** `$SVC_HOME/run.json`: the addresses of the running programs, also for scripts. */
export type RunFile = z.infer<typeof runFile>;

const NAME = 'run.json';

/** The running programs of the state directory; null if there are none or the file is damaged. */
export function readRunFile(home: string): RunFile | null {
  const parsed = runFile.safeParse(parseJson(readStateText(join(home, NAME)) ?? ''));
  return parsed.success ? parsed.data : null;
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
