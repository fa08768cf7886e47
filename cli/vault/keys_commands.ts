import { programFile } from '../../machine/program_file.ts';
import { z } from 'zod';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import { runToEnd } from '../launch/run_to_end.ts';
import { environmentOfVault } from './vault_unlock.ts';

interface RotateOptions {
  readonly atOnce?: boolean;
}

const answer = z.object({ key_id: z.string(), published: z.array(z.string()) });

/** `svc keys ...`: for operators of a control plane; uses the same settings for the database and the vault key. */
export function addKeysCommands(line: CommandLine): void {
  const keys = line.program.command('keys').description("manage the keys that sign the control plane's access tokens");
  const rotate = keys
    .command('rotate')
    .description('sign with a new key from now on; the old key stays valid until its last token expires')
    .option('--at-once', 'refuse tokens of the old keys within a minute, for a leaked key');
  handle<RotateOptions>(line, rotate, rotateKeys);
}

/** Runs the worker's program for this: the CLI has no access to the vault key or the database. */
async function rotateKeys(call: Call<RotateOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const ended = await runToEnd({
    file: programFile('worker/entries/keys'),
    args: ['--home', homeOf(context, options), ...(options.atOnce === true ? ['--at-once'] : []), '--', 'rotate'],
    env: await environmentOfVault(call),
    workingDirectory: context.workingDirectory,
  });
  if (ended.exitCode !== 0) throw new CliError(ended.exitCode, ended.lastWords);
  const rotated = answer.parse(JSON.parse(ended.stdout));
  const old = rotated.published.length - 1;
  const rest = old === 0 ? '' : `; ${old} older ${old === 1 ? 'key stays' : 'keys stay'} valid for some minutes`;
  print.line(rotated, `access tokens are signed with ${rotated.key_id} from now on${rest}`);
}
