import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { findProgram, programFacts } from '../bubblewrap/find_program.ts';
import { namespaceRightsAt } from './namespace_rights.ts';

/** Whose rights the users of an engine's containers have outside. */
export interface EngineUser {
  /** The engine runs in its user's own user namespace, where that user is root. */
  readonly isRootless: boolean;
  readonly uid: number;
  /** The first of the user's subordinate ids, which is user 1 of a container; null if it is not known. */
  readonly firstSubordinate: number | null;
}

export function engineUserAt(endpoint: string): EngineUser {
  const { uid, username } = userInfo();
  const isRootless = namespaceRightsAt(endpoint) === 'rootless';
  return { isRootless, uid, firstSubordinate: isRootless ? firstSubordinate(readSubordinates(), username, uid) : null };
}

/** subuid(5): `name-or-uid:first:count` lines. */
export function firstSubordinate(subuid: string, name: string, uid: number): number | null {
  for (const line of subuid.split('\n')) {
    const [owner, first = ''] = line.split(':');
    if ((owner === name || owner === String(uid)) && /^\d+$/.test(first)) return Number(first);
  }
  return null;
}

function readSubordinates(): string {
  try {
    return readFileSync('/etc/subuid', 'utf8');
  } catch {
    return '';
  }
}

/** Whether a folder's access control list lets a user write; false if that cannot be looked up. */
export function mayWriteByList(folder: string, uid: number): boolean {
  const program = findProgram('getfacl', programFacts(''));
  if (program === null) return false;
  const args = ['--omit-header', '--absolute-names', '--numeric', '--', folder];
  const { stdout } = spawnSync(program, args, { encoding: 'utf8', cwd: '/', env: {}, timeout: 10_000 });
  return new RegExp(`^user:${uid}:.w`, 'm').test(stdout ?? '');
}
