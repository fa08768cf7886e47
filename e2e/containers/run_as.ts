import { join } from 'node:path';
import { type Finished, ROOT, run } from '../support/program.ts';

export const NOBODY = 65_534;

/** `svc` without its shell script, which checks as the user itself what it may read. */
export const SVC_DIRECTLY = [process.execPath, join(ROOT, 'cli', 'main.ts')] as const;

/**
 * The command that starts a program as another user. It may read root's files, because the checkout and the tests' folders may
 * belong to root. It may not write there, and may only connect to sockets that are open to it.
 */
export function asUser(uid: number, groups: readonly number[] = []): readonly [string, ...string[]] {
  const may = ['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search'];
  const besides = groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`;
  return ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, besides, ...may, '--'];
}

export function runAs(
  uid: number,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Finished> {
  const [setpriv, ...words] = asUser(uid);
  return run(setpriv, [...words, ...command], { env, cwd: '/' });
}
