import { type Command, Argument } from 'commander';
import { z } from 'zod';
import { programFile } from '../../machine/program_file.ts';
import { KEY_PROTECTIONS, type KeyProtection, passphraseProblem } from '../../shared/model/key_protection.ts';
import { parseKmsKey } from '../../shared/model/kms_key.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { runToEnd } from '../launch/run_to_end.ts';
import { promptHidden, readSecret, requireSource, type SecretSource } from '../terminal/read_secret.ts';
import { homeOf } from '../up/home.ts';
import { environmentOfVault } from './vault_unlock.ts';

const protectAnswer = z.object({ protection: z.enum(KEY_PROTECTIONS) });

const DONE: Readonly<Record<KeyProtection, string>> = {
  none: 'vault.key is the key itself again: whoever reads the file can open the vault',
  keyring: 'vault.key opens with the keyring of this user on this machine only: keep a copy of the key elsewhere',
  passphrase: 'vault.key opens with the passphrase only: without it, the vault is lost',
  kms: 'vault.key opens with the key of the KMS only: while that key cannot be used, svc does not start, and without it the vault is lost',
};

interface ProtectOptions extends SecretSource {
  readonly key?: string;
}

/** `svc vault protect HOW`. */
export function addProtectCommand(line: CommandLine, vault: Command): void {
  const protect = vault
    .command('protect')
    .description(
      'keep the master key of this machine in the keyring, behind a passphrase, wrapped by a KMS, or in its file as it is',
    )
    .addArgument(new Argument('<how>', 'keyring, passphrase, kms or none').choices(KEY_PROTECTIONS))
    .option('--stdin', 'read the new passphrase from stdin')
    .option('--file <path>', 'read the new passphrase from this file')
    .option('--key <name>', 'of the KMS: the ARN of a key of AWS, or projects/P/locations/L/keyRings/R/cryptoKeys/K');
  handle<ProtectOptions>(line, protect, protectVault);
}

async function protectVault(call: Call<ProtectOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const how = KEY_PROTECTIONS.find((each) => each === call.args[0]);
  if (how === undefined) throw new CliError(EXIT.usage, `use ${KEY_PROTECTIONS.join(', ')}`);
  if (how === 'passphrase') requireSource(context, options);
  else if (options.stdin === true || options.file !== undefined) {
    throw new CliError(EXIT.usage, `--stdin and --file are for a passphrase: ${how} has none`);
  }
  const key = kmsKeyOf(how, options.key);
  const env = await environmentOfVault(call);
  const input = how === 'passphrase' ? await readPassphrase(call) : '';
  const ended = await runToEnd({
    file: programFile('worker/entries/vault'),
    args: ['--home', homeOf(context, options), ...key, '--', `protect-${how}`],
    env,
    workingDirectory: context.workingDirectory,
    input,
  });
  if (ended.exitCode !== 0) throw new CliError(ended.exitCode, ended.lastWords);
  const answer = protectAnswer.parse(JSON.parse(ended.stdout));
  print.line(answer, DONE[answer.protection]);
  if (how === 'passphrase') {
    print.note('A running svc goes on with the key that it has. Restart it before the next change of the key.');
  }
  if (how !== 'none')
    print.note('Copies of the file from before still have the key: svc vault rotate makes a new one.');
}

/** The arguments with the key of a KMS, whose name is no secret. */
function kmsKeyOf(how: KeyProtection, name: string | undefined): readonly string[] {
  if (how !== 'kms') {
    if (name === undefined) return [];
    throw new CliError(EXIT.usage, `--key is for kms: ${how} has none`);
  }
  const key = parseKmsKey(name ?? '');
  if (key.ok) return ['--kms-key', key.value.name];
  throw new CliError(EXIT.usage, name === undefined ? 'give the key of the KMS with --key' : `--key ${key.error}`);
}

async function readPassphrase({ context, options }: Call<SecretSource>): Promise<string> {
  const isTyped = context.interactive && options.file === undefined;
  const text = isTyped ? await typeTwice(context) : await readSecret(context, options);
  const problem = passphraseProblem(text);
  if (problem !== null) throw new CliError(EXIT.usage, `the passphrase ${problem}`);
  return text;
}

async function typeTwice({ stdin, stderr }: Call['context']): Promise<string> {
  const first = await promptHidden(stdin, stderr, 'New passphrase of the vault (not shown): ');
  if (first === (await promptHidden(stdin, stderr, 'The same again: '))) return first;
  throw new CliError(EXIT.usage, 'the two passphrases differ: nothing was changed');
}
