import { programFile, type ProgramName } from '../../machine/program_file.ts';
import { z } from 'zod';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { GlobalOptions } from '../context.ts';
import { homeOf } from '../up/home.ts';
import { runToEnd } from '../launch/run_to_end.ts';
import type { Column } from '../terminal/output.ts';
import { environmentFor } from '../up/up_programs.ts';
import { counted } from '../../shared/model/sentence.ts';

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
  const owner = db
    .command('owner')
    .argument('<address>', 'email address of the owner')
    .option('--enterprise <name>', 'name of the enterprise (default: the address)')
    .description(
      'make an enterprise with its first owner in a hosted control plane, and a link that signs a browser in',
    );
  handle(line, owner, makeOwner);
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
const ownerAnswer = z.object({
  user_id: z.string(),
  enterprise_id: z.string(),
  url: z.string(),
  expires_at: z.string(),
  created: z.boolean(),
});
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
  const steps = counted(done.applied.length, 'step');
  call.print.line(done, `applied ${steps}; the database has schema ${done.schema}`);
}

async function backUp(call: Call): Promise<undefined> {
  const done = await askDatabase(call, backupAnswer, 'backup', call.args[0] ?? '');
  call.print.line(done, `copied to ${done.file}; also back up the vault key, in a different place`);
}

interface OwnerOptions extends GlobalOptions {
  readonly enterprise?: string;
}

async function makeOwner(call: Call<OwnerOptions>): Promise<undefined> {
  const address = call.args[0] ?? '';
  const { enterprise } = call.options;
  const flags = enterprise === undefined ? [] : ['--enterprise', enterprise];
  const owner = await ask(call, ownerAnswer, 'worker/entries/owner', [...flags, '--', address]);
  const who = owner.created
    ? `${address} owns a new enterprise.`
    : `${address} was made before, and is not signed in by a way of its own yet.`;
  call.print.note(`${who} This link signs one browser in, once, until ${owner.expires_at}:`);
  call.print.line(owner, owner.url);
  call.print.note(`Later sign-ins: as ${address}, by a way that this control plane offers (docs/sign-in.md).`);
}

function askDatabase<T>(call: Call, answer: z.ZodType<T>, ...args: readonly string[]): Promise<T> {
  return ask(call, answer, 'worker/entries/db', ['--', ...args]);
}

/** Runs the worker's program for this: the CLI has no access to the database. */
async function ask<T>(
  { context, options }: Call,
  answer: z.ZodType<T>,
  program: ProgramName,
  args: readonly string[],
): Promise<T> {
  const ended = await runToEnd({
    file: programFile(program),
    args: ['--home', homeOf(context, options), ...args],
    env: environmentFor(context.env, 'control'),
    workingDirectory: context.workingDirectory,
  });
  if (ended.exitCode !== 0) throw new CliError(ended.exitCode, ended.lastWords);
  return answer.parse(JSON.parse(ended.stdout));
}
