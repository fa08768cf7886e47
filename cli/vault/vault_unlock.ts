import { join } from 'node:path';
import { MAX_PASSPHRASE_CHARACTERS, PASSPHRASE_MARK } from '../../shared/model/key_protection.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { promptHidden } from '../terminal/read_secret.ts';
import { environmentFor } from '../up/up_programs.ts';
import { homeOf } from '../up/home.ts';
import { readProtectedKeyFile } from './protected_key_file.ts';

const KEY_FILE = 'vault.key';
const GIVEN = ['SVC_VAULT_KEY', 'SVC_VAULT_PASSPHRASE', 'SVC_VAULT_PASSPHRASE_FILE'];

/**
 * The call with what the control plane needs to open the master key: a person at a terminal is asked for its passphrase, if it has
 * one and no setting gives it. Without a terminal, the control plane's own error says what to do.
 */
export async function unlockedCall<T extends Call>(call: T): Promise<T> {
  const { context, options, print } = call;
  if (GIVEN.some((name) => context.env[name] !== undefined)) return call;
  if (!context.interactive || !isBehindPassphrase(join(homeOf(context, options), KEY_FILE))) return call;
  const typed = await promptHidden(context.stdin, context.stderr, 'Passphrase of the vault (not shown): ');
  if (typed.length > MAX_PASSPHRASE_CHARACTERS) print.warn('this is longer than any passphrase of a vault');
  const env = { ...context.env, SVC_VAULT_PASSPHRASE: typed };
  return { ...call, context: { ...context, env } };
}

/** The environment of a program of the control plane that opens the vault. */
export async function environmentOfVault(call: Call): Promise<CliContext['env']> {
  return environmentFor((await unlockedCall(call)).context.env, 'control');
}

function isBehindPassphrase(path: string): boolean {
  return readProtectedKeyFile(path)?.startsWith(PASSPHRASE_MARK) ?? false;
}
