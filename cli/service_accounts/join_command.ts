import { constants, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { joinInput } from '../../shared/wire/service_accounts.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { controlUrlOf } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { settingsOf, type CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { withSessionOptions } from '../launch/run_command.ts';
import type { RunOptions } from '../launch/run_options.ts';
import { holdsEvents } from '../up/own_sidecar.ts';
import { prepareOptions, type UpstreamOptions, withUpstreamOptions } from '../up/up_command.ts';
import { openFolder } from './hand_over.ts';
import { createJobHome, deleteJobHome } from './job_home.ts';
import { readJobToken, type TokenSource, withoutJobToken } from './job_token.ts';
import { joinAs, type Joined, leave } from './join_as.ts';
import { runAsJob } from './run_as_job.ts';

interface JoinOptions {
  readonly serviceAccount: string;
  readonly tokenFromOidc?: boolean;
  readonly tokenVariable?: string;
  readonly tokenFile?: string;
  readonly audience?: string;
  readonly minutes?: string;
  readonly handOver?: string;
}
type JobOptions = JoinOptions & UpstreamOptions & RunOptions;

/** `svc join -- COMMAND`. */
export function addJoinCommand(line: CommandLine, signals: SignalSource): void {
  const command = line.program
    .command('join')
    .description(
      'run a command of a CI job as a service account: with a sidecar that ends with it, and without a sign-in',
    )
    .usage('--service-account ID [options] -- COMMAND [ARGUMENT...]')
    .argument('[command...]', 'the command and its arguments, after --')
    .requiredOption('--service-account <id>', 'the service account (usr_...)')
    .option('--token-from-oidc', "request the job's token from GitHub Actions (the default)")
    .option('--token-variable <name>', "the variable with the job's token, such as one of GitLab's id_tokens")
    .option('--token-file <file>', "the file with the job's token, such as one that Kubernetes mounts")
    .option('--audience <text>', 'what the token is for (default: the URL of the control plane)')
    .option('--minutes <number>', 'end the sidecar after this time, if the service account allows more')
    .option(
      '--hand-over <folder>',
      'instead of a command: write the session into this folder, for another container of the pod, and wait for a signal',
    );
  handle<JobOptions>(line, withSessionOptions(withUpstreamOptions(command)), (call) => runJob(call, signals));
}

/** What a job wants, checked before anything is done. */
interface Wanted {
  readonly origin: string;
  readonly source: TokenSource;
  readonly audience: string;
  readonly serviceAccount: string;
  readonly minutes: number | undefined;
  readonly start: ReturnType<typeof prepareOptions>;
}

async function runJob(call: Call<JobOptions>, signals: SignalSource): Promise<number> {
  const { context } = call;
  const handOver = handOverOf(call);
  const wanted = readWanted(call);
  // Begins to handle signals: from now on one ends the job in order.
  const { stop } = context;
  const status = await joinAndRun(withHandOver(call, handOver), signals, wanted).catch((error: unknown) => {
    if (stop.aborted) return null;
    throw beforeCommand(error);
  });
  return status ?? signalStatus(stop.reason);
}

async function joinAndRun(call: Call<JobOptions>, signals: SignalSource, wanted: Wanted): Promise<number | null> {
  const { context } = call;
  const { stop } = context;
  const token = await readJobToken(context, wanted.source, wanted.audience);
  if (stop.aborted) return null;
  const home = createJobHome(context, call.options);
  try {
    const joined = await joinAs(context, { ...wanted, token, home, name: call.options.name ?? jobName(context.env) });
    const job = {
      ...call,
      context: withEnvironment(context, withoutJobToken(context.env, wanted.source)),
      options: { ...call.options, home, control: wanted.origin, withoutUser: true },
    };
    try {
      if (!call.print.json) call.print.note(`svc: joined ${wanted.origin} until ${joined.expiresAt}`);
      return stop.aborted ? null : await runAsJob(job, signals, { ...wanted.start, home });
    } finally {
      await leaveAtEnd(call, wanted.origin, joined, home);
    }
  } finally {
    deleteJobHome(home);
  }
}

function withHandOver(call: Call<JobOptions>, handOver: string | null): Call<JobOptions> {
  return handOver === null ? call : { ...call, options: { ...call.options, handOver } };
}

/** The folder for the session; null if a command runs in it. */
function handOverOf({ args, options, context }: Call<JobOptions>): string | null {
  const { handOver, sandbox, relay } = options;
  if (handOver === undefined) {
    if (args.length > 0) return null;
    throw new CliError(EXIT.usage, 'the command is missing: write it after --, or use --hand-over FOLDER');
  }
  if (args.length > 0)
    throw new CliError(EXIT.usage, '--hand-over runs no command: leave it out, or leave out --hand-over');
  if (sandbox === true || relay === true) {
    throw new CliError(EXIT.usage, `--hand-over and --${sandbox === true ? 'sandbox' : 'relay'} cannot be combined`, [
      'The other container is what limits the agent.',
    ]);
  }
  const folder = resolve(context.workingDirectory, handOver);
  openFolder(folder);
  return folder;
}

/** Leaves. The command's exit status counts, so a failure is only told: the sidecar ends by itself. */
async function leaveAtEnd(
  { context, print }: Call,
  origin: string,
  { identity, expiresAt }: Joined,
  home: string,
): Promise<void> {
  if (holdsEvents(join(home, 'sidecar', 'spool'))) {
    print.warn('the control plane did not take all audit events of this job: those are lost');
  }
  try {
    if ((await leave(context, origin, identity)) === 'left') return;
    print.warn(
      'the sidecar had ended before the command did, and its requests were refused from then on: its time was over, or the service account was changed or suspended',
    );
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    print.warn(`the sidecar could not leave and ends by itself at ${expiresAt}: ${error.message}`);
  }
}

/** Before the command has started, every failure but that of the command line has the same exit status. */
function beforeCommand(error: unknown): unknown {
  if (!(error instanceof CliError) || error.exitCode === EXIT.usage) return error;
  return new CliError(EXIT.notStarted, error.message, error.fixes, error.apiCode);
}

/** The exit status that a shell gives for a program that this signal ended. */
function signalStatus(name: unknown): number {
  const known = Object.entries(constants.signals).find(([each]) => each === name);
  return known === undefined ? EXIT.failed : 128 + known[1];
}

function readWanted(call: Call<JobOptions>): Wanted {
  const { context, options } = call;
  const serviceAccount = joinInput.shape.service_account.safeParse(options.serviceAccount);
  if (!serviceAccount.success) {
    throw new CliError(EXIT.usage, '--service-account is not an id: usr_ and 26 characters', [
      'Admins find it: svc service-account list',
    ]);
  }
  const minutes = joinInput.shape.minutes.safeParse(
    options.minutes === undefined ? undefined : Number(options.minutes || NaN),
  );
  if (!minutes.success) throw new CliError(EXIT.usage, '--minutes is not a whole number from 5 to 1440');
  if (options.control === undefined && settingsOf(context).controlUrl === undefined) {
    throw new CliError(EXIT.usage, 'the control plane is missing: name it with --control URL or SVC_CONTROL_URL');
  }
  const origin = controlUrlOf(context, options);
  const audience = options.audience ?? origin;
  if (audience.trim() === '') throw new CliError(EXIT.usage, '--audience is empty');
  const source = sourceOf(options);
  const start = prepareOptions({ ...call, options: { ...options, proxyPort: '0' } });
  return { origin, source, audience, serviceAccount: serviceAccount.data, minutes: minutes.data, start };
}

function sourceOf({ tokenFromOidc, tokenVariable, tokenFile }: JoinOptions): TokenSource {
  const sources: readonly TokenSource[] = [
    ...(tokenFromOidc === true ? [{ kind: 'github' as const }] : []),
    ...(tokenVariable === undefined ? [] : [{ kind: 'variable' as const, name: tokenVariable }]),
    ...(tokenFile === undefined ? [] : [{ kind: 'file' as const, path: tokenFile }]),
  ];
  if (sources.length > 1) {
    throw new CliError(
      EXIT.usage,
      '--token-from-oidc, --token-variable and --token-file cannot be combined: choose one',
    );
  }
  return sources[0] ?? { kind: 'github' };
}

const MOST_NAME_CHARACTERS = 100;

/** The job as its platform names it: in the list of sidecars one sees which run it is. */
export function jobName(env: CliContext['env']): string {
  const parts: readonly (readonly [string | undefined, string | undefined])[] = [
    [env['GITHUB_REPOSITORY'], env['GITHUB_RUN_ID']],
    [env['CI_PROJECT_PATH'], env['CI_JOB_ID']],
  ];
  const known = parts.find(([project, run]) => project !== undefined && run !== undefined);
  const name = known === undefined ? hostname() : `${known[0]?.slice(0, 70)} ${known[1]}`;
  return (
    name
      .replace(/[^\x21-\x7e]+/g, ' ')
      .trim()
      .slice(0, MOST_NAME_CHARACTERS) || 'job'
  );
}

/** The same context with another environment. Its other members are read when they are used: opening stdin has effects. */
function withEnvironment(context: CliContext, env: CliContext['env']): CliContext {
  return new Proxy(context, {
    get: (target, name): unknown => (name === 'env' ? env : Reflect.get(target, name, target)),
  });
}
