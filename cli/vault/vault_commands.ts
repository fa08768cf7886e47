import { KEY_PROTECTIONS, type KeyProtection } from '../../shared/model/key_protection.ts';
import { programFile } from '../../machine/program_file.ts';
import { z } from 'zod';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import type { Column } from '../terminal/output.ts';
import { runToEnd } from '../launch/run_to_end.ts';
import { addProtectCommand } from './protect_command.ts';
import { environmentOfVault } from './vault_unlock.ts';
import { addMoveCommand } from './move/move_command.ts';
import { counted } from '../../shared/model/sentence.ts';

const rotateAnswer = z.object({ resealed: z.record(z.string(), z.number()), damaged: z.array(z.string()) });
const count = z.object({ kind: z.string(), current: z.number(), previous: z.number(), damaged: z.number() });
const statusAnswer = z.object({
  finished: z.boolean(),
  /** Null: the key is in a setting. */
  protection: z.enum(KEY_PROTECTIONS).nullable(),
  values: z.array(count),
});

/** `svc vault ...`: rotate and status are for operators of a control plane, and use the same settings for the database and the vault keys. */
export function addVaultCommands(line: CommandLine): void {
  const vault = line.program
    .command('vault')
    .description("move this machine's vault, or rotate the master key of the control plane's vault");
  const rotate = vault
    .command('rotate')
    .description('change the master key while workers are running; safe to repeat after an interruption');
  handle(line, rotate, rotateVault);
  const status = vault
    .command('status')
    .description('show how many items each key seals; exit with 1 until a rotation is finished');
  handle(line, status, showStatus);
  addProtectCommand(line, vault);
  addMoveCommand(line, vault);
}

async function rotateVault(call: Call): Promise<undefined> {
  const report = await askVault(call, rotateAnswer, 'rotate');
  const sealed = Object.values(report.resealed).reduce((sum, each) => sum + each, 0);
  const done =
    sealed === 0
      ? 'nothing to do: everything is already sealed with the new key'
      : `everything is sealed with the new key (${counted(sealed, 'item')} resealed); the old key is now needed only for older backups`;
  call.print.line(report, done);
  if (report.damaged.length > 0)
    call.print.warn(`these could not be opened with either key, as before: ${report.damaged.join(', ')}`);
}

const COLUMNS: readonly Column<z.infer<typeof count>>[] = [
  { title: 'SEALED', cell: ({ kind }) => kind },
  { title: 'CURRENT KEY', cell: ({ current }) => String(current) },
  {
    title: 'PREVIOUS KEY',
    cell: ({ previous }) => String(previous),
    style: ({ previous }) => (previous > 0 ? 'yellow' : null),
  },
  { title: 'NEITHER', cell: ({ damaged }) => String(damaged), style: ({ damaged }) => (damaged > 0 ? 'red' : null) },
];

const PROTECTED: Readonly<Record<KeyProtection, string>> = {
  none: 'vault.key is the key itself: protect it with "svc vault protect"',
  keyring: 'vault.key is protected by the keyring',
  passphrase: 'vault.key is protected by a passphrase',
  kms: 'vault.key is wrapped by a key of a KMS: "svc doctor" names it',
};

async function showStatus(call: Call): Promise<number> {
  const status = await askVault(call, statusAnswer, 'status');
  call.print.rows(status, status.values, COLUMNS, '');
  if (status.protection !== null) call.print.note(PROTECTED[status.protection]);
  if (!status.finished) call.print.note('a rotation of the master key is not finished: run "svc vault rotate"');
  return status.finished ? EXIT.ok : EXIT.failed;
}

/** Runs the worker's program for this: the CLI has no access to the vault keys or the database. */
async function askVault<T>(call: Call, answer: z.ZodType<T>, action: string): Promise<T> {
  const { context, options, print } = call;
  const ended = await runToEnd({
    file: programFile('worker/entries/vault'),
    args: ['--home', homeOf(context, options), '--', action],
    env: await environmentOfVault(call),
    workingDirectory: context.workingDirectory,
    onProgress: (progress) => print.note(progress),
  });
  if (ended.exitCode !== 0) throw new CliError(ended.exitCode, ended.lastWords);
  return answer.parse(JSON.parse(ended.stdout));
}
