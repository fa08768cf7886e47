import { programFile } from '../../machine/program_file.ts';
import { z } from 'zod';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import { runToEnd } from '../launch/run_to_end.ts';
import type { Column } from '../terminal/output.ts';
import { environmentFor } from '../up/up_programs.ts';

/** `svc db ...`: for operators of a control plane; uses the same settings for the database. */
export function addDbCommands(line: CommandLine): void {
  const db = line.program
    .command('db')
    .description("maintain the control plane's database: the one in --home, or the server in SVC_DATABASE_URL");
  handle(
    line,
    db.command('status').description('show the schema migrations of the database; exit with 1 if some are missing'),
    showStatus,
  );
  handle(
    line,
    db.command('migrate').description('update the database schema to this version of svc; safe to repeat'),
    migrate,
  );
  const backup = db
    .command('backup')
    .argument('<file>', 'file to write; it must not exist')
    .description('copy the database of --home, even while it is in use (without the vault key)');
  handle(line, backup, backUp);
}

const step = z.object({ number: z.number(), name: z.string(), applied_at: z.string().nullable() });
const statusAnswer = z.object({
  schema: z.number(),
  pending: z.number(),
  steps: z.array(step),
  refusal: z.object({ reason: z.string(), message: z.string() }).nullable(),
});
const migrateAnswer = z.object({ applied: z.array(z.number()), schema: z.number() });
const backupAnswer = z.object({ file: z.string() });

const STEP_COLUMNS: readonly Column<z.infer<typeof step>>[] = [
  { title: 'STEP', cell: ({ number }) => String(number) },
  { title: 'NAME', cell: ({ name }) => name },
  {
    title: 'APPLIED',
    cell: ({ applied_at: appliedAt }) => appliedAt ?? 'not yet',
    style: ({ applied_at: appliedAt }) => (appliedAt === null ? 'yellow' : null),
  },
];

async function showStatus(call: Call): Promise<number> {
  const status = await askDatabase(call, statusAnswer, 'status');
  call.print.rows(status, status.steps, STEP_COLUMNS, '');
  if (status.refusal !== null) throw new CliError(EXIT.failed, status.refusal.message);
  return status.pending === 0 ? EXIT.ok : EXIT.failed;
}

async function migrate(call: Call): Promise<undefined> {
  const done = await askDatabase(call, migrateAnswer, 'migrate');
  const steps = done.applied.length === 1 ? '1 step' : `${done.applied.length} steps`;
  call.print.line(done, `applied ${steps}; the database has schema ${done.schema}`);
}

async function backUp(call: Call): Promise<undefined> {
  const done = await askDatabase(call, backupAnswer, 'backup', call.args[0] ?? '');
  call.print.line(done, `copied to ${done.file}; also back up the vault key, in a different place`);
}

/** Runs the worker's program for this: the CLI has no access to the database. */
async function askDatabase<T>(call: Call, answer: z.ZodType<T>, ...args: readonly string[]): Promise<T> {
  const { context, options } = call;
  const ended = await runToEnd({
    file: programFile('worker/entries/db'),
    args: ['--home', homeOf(context, options), '--', ...args],
    env: environmentFor(context.env, 'control'),
    workingDirectory: context.workingDirectory,
  });
  if (ended.exitCode !== 0) throw new CliError(ended.exitCode, ended.lastWords);
  return answer.parse(JSON.parse(ended.stdout));
}
