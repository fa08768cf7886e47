import { replaceHidden } from '../../model/shown_text.ts';

/** The ways in which starting a server can be dangerous. */
const DANGER_CODES = [
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
 * One problem. `refuse`: never stored, never started. `unchecked`: it runs code that no rule here knows, and needs its own
 * consent. `warn`: shown to whoever decides.
 */
export interface Danger {
  readonly severity: 'refuse' | 'unchecked' | 'warn';
  readonly code: DangerCode;
  /** The problem and the fix for a person, as a predicate for "the server". */
  readonly message: string;
}

export function refuse(code: DangerCode, message: string): Danger {
  return { severity: 'refuse', code, message };
}

export function warn(code: DangerCode, message: string): Danger {
  return { severity: 'warn', code, message };
}

/** `what`: a predicate that continues "the server runs code that nobody checked: it". */
export function markUnchecked(what: string): Danger {
  return { severity: 'unchecked', code: 'unchecked_code', message: `runs code that nobody checked: it ${what}` };
}

const SHOWN_CHARACTERS = 80;

/** A word of a command, quoted for a message: truncated, and without terminal escapes. */
export function quoteWord(word: string): string {
  const plain = replaceHidden(word.slice(0, SHOWN_CHARACTERS), { keepsLines: false, write: () => '?' });
  return `"${plain}${word.length > SHOWN_CHARACTERS ? '...' : ''}"`;
}
