import { replaceHidden } from '../../model/shown_text.ts';

/** What can be wrong with how a server is started. */
export const DANGER_CODES = [
  'program_path',
  'bad_text',
  'shell',
  'launcher',
  'inline_code',
  'remote_code',
  'runner_option',
  'docker_command',
  'docker_option',
  'docker_mount',
  'docker_network',
  'docker_publish',
  'environment_variable',
  'unpinned_version',
  'secret_in_arguments',
  'hidden_characters',
  'plain_http_registry',
  'unchecked_code',
] as const;
export type DangerCode = (typeof DANGER_CODES)[number];

/**
 * One thing that is wrong. `refuse`: never stored, never started. `unchecked`: it runs code that no rule here knows, and
 * takes a consent of its own. `warn`: told to whoever decides.
 */
export interface Danger {
  readonly severity: 'refuse' | 'unchecked' | 'warn';
  readonly code: DangerCode;
  /** The problem and the fix, for a person: the rest of a sentence that begins with "the server". */
  readonly message: string;
}

export function refuse(code: DangerCode, message: string): Danger {
  return { severity: 'refuse', code, message };
}

export function warn(code: DangerCode, message: string): Danger {
  return { severity: 'warn', code, message };
}

/** `what`: the rest of a sentence that begins with "the server runs code that nobody checked: it". */
export function markUnchecked(what: string): Danger {
  return { severity: 'unchecked', code: 'unchecked_code', message: `runs code that nobody checked: it ${what}` };
}

const SHOWN_CHARACTERS = 80;

/** A word of a command as a message quotes it: bounded, and nothing in it steers a terminal. */
export function quoteWord(word: string): string {
  const plain = replaceHidden(word.slice(0, SHOWN_CHARACTERS), { keepsLines: false, write: () => '?' });
  return `"${plain}${word.length > SHOWN_CHARACTERS ? '...' : ''}"`;
}
