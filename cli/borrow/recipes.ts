import type { BorrowedForm } from '../../shared/borrow/borrow_grant.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** How the CLI of a store is asked for one value. The person adds the last words: which one. */
interface Recipe {
  readonly program: string;
  readonly args: readonly string[];
  readonly output: BorrowedForm;
  /** What the words after `--` are; null if none are needed. */
  readonly words: string | null;
}

const TEXT: BorrowedForm = { form: 'text' };

export const RECIPES: Readonly<Record<string, Recipe>> = {
  gh: { program: 'gh', args: ['auth', 'token'], output: TEXT, words: null },
  gcloud: {
    program: 'gcloud',
    args: ['config', 'config-helper', '--format=json'],
    output: { form: 'json', value: 'credential.access_token', expires: 'credential.token_expiry' },
    words: null,
  },
  aws: {
    program: 'aws',
    args: ['configure', 'export-credentials', '--format', 'process'],
    output: { form: 'aws' },
    words: null,
  },
  az: {
    program: 'az',
    args: ['account', 'get-access-token', '--output', 'json'],
    output: { form: 'json', value: 'accessToken', expires: 'expires_on' },
    words: '--resource URL',
  },
  keyring: { program: 'secret-tool', args: ['lookup'], output: TEXT, words: 'ATTRIBUTE VALUE...' },
  'macos-keychain': {
    program: 'security',
    args: ['find-generic-password', '-w'],
    output: TEXT,
    words: '-s SERVICE -a ACCOUNT',
  },
  op: { program: 'op', args: ['read', '--no-newline'], output: TEXT, words: 'op://VAULT/ITEM/FIELD' },
  vault: { program: 'vault', args: ['kv', 'get'], output: TEXT, words: '-field=FIELD PATH' },
  bao: { program: 'bao', args: ['kv', 'get'], output: TEXT, words: '-field=FIELD PATH' },
  doppler: { program: 'doppler', args: ['secrets', 'get', '--plain'], output: TEXT, words: 'NAME' },
  infisical: { program: 'infisical', args: ['secrets', 'get', '--plain', '--silent'], output: TEXT, words: 'NAME' },
};

/** A command line: of a recipe with the words that a person adds, or what the person typed. */
export function commandOf(
  name: string | undefined,
  typed: readonly string[],
): { readonly command: readonly string[]; readonly output: BorrowedForm } {
  if (name === undefined) return { command: typed, output: TEXT };
  const recipe = Object.hasOwn(RECIPES, name) ? RECIPES[name] : undefined;
  if (recipe === undefined) {
    throw new CliError(EXIT.usage, `--recipe is none of ${Object.keys(RECIPES).join(', ')}`);
  }
  const { program, args, output, words } = recipe;
  if (words !== null && typed.length === 0) {
    throw new CliError(EXIT.usage, `the recipe ${name} needs to know which value: write -- ${words}`);
  }
  return { command: [program, ...args, ...typed], output };
}
