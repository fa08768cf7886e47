import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { settingsOf, type CliContext, type GlobalOptions } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf, prepareHome } from '../up/home.ts';

/**
 * Creates the state directory of a job: the one that `--home` or `SVC_HOME` names, else a temporary one. All of it is deleted at
 * the end of the job, so one that holds something is refused.
 */
export function createJobHome(context: CliContext, options: GlobalOptions): string {
  if (options.home === undefined && settingsOf(context).home === undefined) {
    return mkdtempSync(join(tmpdir(), 'svc-job-'));
  }
  const home = homeOf(context, options);
  if (existsSync(home) && readdirSync(home).length > 0) {
    throw new CliError(EXIT.notStarted, `${home} is not empty: svc join deletes its state directory at the end`, [
      'Name an empty or a new directory with --home DIR, or none (and no SVC_HOME) for a temporary one.',
    ]);
  }
  prepareHome(home, process.getuid?.());
  return home;
}

/** Deletes the state directory of a job, with the keys in it. */
export function deleteJobHome(home: string): void {
  rmSync(home, { recursive: true, force: true, maxRetries: 3 });
}
