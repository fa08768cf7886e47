import { join } from 'node:path';
import { z } from 'zod';
import { handle, type Call, type CommandLine } from './command_line.ts';
import { CliError } from './exit_codes.ts';
import { homeOf } from './home.ts';
import { runToEnd } from './run_to_end.ts';
import { environmentFor } from './up_programs.ts';

const answer = z.object({ resealed: z.record(z.string(), z.number()), damaged: z.array(z.string()) });

/** `svc vault ...`: for who runs a control plane; the same settings name its database and its vault keys. */
export function addVaultCommands(line: CommandLine): void {
  const vault = line.program.command('vault').description("the master key of the control plane's vault");
  const rotate = vault
    .command('rotate')
    .description('change the master key while workers serve; run it again when it was stopped');
  handle(line, rotate, rotateVault);
}

/** Runs the worker's own program for it: the CLI holds neither the vault's keys nor the schema. */
async function rotateVault({ context, options, print }: Call): Promise<undefined> {
  const ended = await runToEnd({
    file: join(context.root, 'worker/entries/vault.ts'),
    args: ['--home', homeOf(context, options), '--', 'rotate'],
    env: environmentFor(context.env, 'control'),
    workingDirectory: context.workingDirectory,
  });
  if (ended.exitCode !== 0) throw new CliError(ended.exitCode, ended.lastWords);
  const report = answer.parse(JSON.parse(ended.stdout));
  const count = Object.values(report.resealed).reduce((sum, each) => sum + each, 0);
  const done =
    count === 0
      ? 'nothing was left to seal anew: the new key had been the key of this database before'
      : `everything is under the new key (${count} sealed anew); the old one opens nothing here any more, and is still needed for older backups`;
  const damaged = report.damaged.length === 0 ? '' : `\nneither key opens, as before: ${report.damaged.join(', ')}`;
  print.line(report, done + damaged);
}
