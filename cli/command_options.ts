import { Option, type Command } from 'commander';
import { parseSize } from '../shared/model/quotas/byte_size.ts';
import { OWNERS } from '../shared/model/host_binding.ts';
import type { Result } from '../shared/model/result.ts';
import { CliError, EXIT } from './exit_codes.ts';

export interface OwnerOption {
  readonly owner?: string;
}

/** `--owner`. By default for a command that names a thing which both the enterprise and the caller may have. */
export function ownerOption(description = 'owner, if both you and the enterprise have one'): Option {
  return new Option('--owner <owner>', description).choices(OWNERS);
}

/** `--owner`, for a list. */
export function ownerFilter(): Option {
  return ownerOption('only what this owner has');
}

/** The ways to give a credential. The command refuses one on the command line, with the reason. */
export function withSecretSource(command: Command): Command {
  return command
    .option('--stdin', 'read the value from stdin')
    .option('--file <file>', 'read the value from a file')
    .option('--keep-newline', 'keep a trailing line break (by default, one is dropped)')
    .addOption(new Option('--value [refused]').hideHelp())
    .allowExcessArguments();
}

/** How the secret of an OAuth client is sent to its provider. */
export const SECRET_WAYS = {
  choices: ['post', 'basic'],
  description: 'how the secret is sent (default: post, in the request body)',
};
/** A client may also prove who it is with a private key. */
export const SECRET_AND_KEY_WAYS = {
  choices: [...SECRET_WAYS.choices, 'private_key_jwt'],
  description:
    'how the secret is sent (default: post, in the request body); private_key_jwt: it is a private key in PEM, which is not sent',
};

/** How an OAuth client proves itself to its provider. */
export function withClientAuthentication(command: Command, { choices, description } = SECRET_WAYS): Command {
  return command
    .option('--client-secret-stdin', "read the client's secret from stdin (default: prompt; a public client has none)")
    .option('--public-client', 'the client has no secret')
    .addOption(new Option('--client-authentication <way>', description).choices(choices));
}

/** The fields that are given. */
export function dropUndefined<T>(fields: Readonly<Record<string, T | undefined>>): Record<string, T> {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, T] => entry[1] !== undefined));
}

/** The value of an option; a `CliError` with the option's name and what is wrong with its text. */
export function valueOrUsageError<T>(option: string, parsed: Result<T, string>): T {
  if (parsed.ok) return parsed.value;
  throw new CliError(EXIT.usage, `${option} ${parsed.error}`);
}

/** A number where it is one, for the validation to judge. */
export function toCount(text: string | undefined): number | string | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : text;
}

/** Bytes where it is a size such as `500MB`, for the validation to judge. */
export function toSize(text: string | undefined): number | string | undefined {
  return text === undefined ? undefined : (parseSize(text) ?? text);
}
