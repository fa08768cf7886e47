import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../shared/model/error_code.ts';
import { AGENT_NAME, AGENT_TITLES } from './agent_names.ts';

/** Where the user's own profiles are. */
export function ownFolder(home: string): string {
  return join(home, 'agents');
}

/** The names of the user's own profiles, as their files are called. Nothing is read. */
export function listOwnNames(home: string): readonly string[] {
  try {
    const files = readdirSync(ownFolder(home)).filter((name) => name.endsWith('.yaml'));
    return files
      .map((name) => name.slice(0, -'.yaml'.length))
      .filter((name) => AGENT_NAME.test(name) && !Object.hasOwn(AGENT_TITLES, name))
      .toSorted();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(errorCode(error))) return [];
    throw error;
  }
}
