import type { Command } from 'commander';
import { withSecretSource } from '../command_options.ts';
import type { SecretSource as KeyInput } from '../terminal/read_secret.ts';

export interface AddSourceOptions extends KeyInput {
  readonly set?: readonly string[];
  readonly value?: unknown;
  readonly description?: string;
  readonly dryRun?: true;
}

/** The options of a command that stores a source. */
export function withSourceOptions(command: Command): Command {
  return withSecretSource(
    command.option(
      '--set <field=value...>',
      'a field of the source, such as scopes=a,b or permissions=contents=read; without --set, the fields of the kind are listed',
    ),
  )
    .option('--description <text>', 'what it is for')
    .option('--dry-run', 'say what would be minted; store nothing and ask no provider');
}
