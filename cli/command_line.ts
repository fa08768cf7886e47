import { CommanderError, type Command } from 'commander';
import type { CliContext, GlobalOptions } from './context.ts';
import { errorCode, SYSTEM_REASONS } from '../shared/model/error_code.ts';
import { withCommandSeparator } from './command_separator.ts';
import { CliError, EXIT } from './exit_codes.ts';
import { createPainter, type Paint, printableLines, printerFor, type Printer } from './terminal/output.ts';

/** One invocation of a command: its arguments and its output. */
export interface Call<Options = unknown> {
  readonly context: CliContext;
  readonly args: readonly string[];
  readonly options: Options & GlobalOptions;
  readonly print: Printer;
}

/** What a command group needs to register its commands. */
export interface CommandLine {
  readonly program: Command;
  readonly context: CliContext;
  /** True for the name of an agent's profile. */
  readonly isAgent: (word: string) => boolean;
  /** The exit code of the command that ran. */
  exitCode: number;
}

/** A command's action; it returns the exit code, or undefined for 0. */
export type Handler<Options> = (call: Call<Options>) => Promise<number | undefined>;

/** Attaches an action to a command. */
export function handle<Options>(line: CommandLine, command: Command, handler: Handler<Options>): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals<Options & GlobalOptions>();
    const print = printerFor(line.context, options);
    line.exitCode = (await handler({ context: line.context, args: command.args, options, print })) ?? EXIT.ok;
  });
}

/** Collects an option that may be given several times. */
export function collectValue(value: string, previous: readonly string[] | undefined): string[] {
  return [...(previous ?? []), value];
}

/** With less room beside the options, help is not wrapped. Of 80 columns, the longest option leaves more. */
const LEAST_HELP_COLUMN = 20;

/** A command line that throws usage errors instead of exiting. The errors never quote a value, because it may be a secret. */
export function commandLine(
  context: CliContext,
  program: Command,
  isAgent: (word: string) => boolean = () => false,
): CommandLine {
  program
    .exitOverride()
    .configureHelp({ minWidthToWrap: LEAST_HELP_COLUMN })
    .configureOutput({
      writeOut: (text) => {
        context.stdout.write(text);
      },
      writeErr: (text) => {
        context.stderr.write(text);
      },
      outputError: (text, write) => write(toRefusal(text, createPainter(context.stderr, context.env))),
      getOutHelpWidth: () => context.stdout.columns ?? 100,
      getErrHelpWidth: () => context.stderr.columns ?? 100,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  return { program, context, isAgent, exitCode: EXIT.ok };
}

/** An error of the parser, written like every other error of ours. */
function toRefusal(text: string, paint: Paint): string {
  const [first = '', ...more] = withoutValues(text).trimEnd().split('\n');
  return [first.replace(/^error:/, paint('red', 'svc:')), ...more.map((line) => `     ${line}`), ''].join('\n');
}

/** After an error of the parser, each command shows its own usage. */
function showUsageAfterErrors(command: Command, path: string): void {
  command.showHelpAfterError(`     Usage: ${path} ${command.usage()}\n     Help:  ${path} --help`);
  for (const below of command.commands) showUsageAfterErrors(below, `${path} ${below.name()}`);
}

function withoutValues(text: string): string {
  return text
    .replace(/(too many arguments[^.]*\. Expected \d+ arguments? but got \d+)[^]*/, '$1\n')
    .replace(/(unknown option '[^'=]*)=[^]*/, "$1'\n");
}

/** Parses the arguments and runs the command; returns the exit code. Every expected error is printed here and nowhere else. */
export async function runCommandLine(line: CommandLine, argv: readonly string[]): Promise<number> {
  showUsageAfterErrors(line.program, line.program.name());
  try {
    await line.program.parseAsync([...withCommandSeparator(argv, line.isAgent)], { from: 'user' });
    return line.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    const known = error instanceof CliError ? error : systemError(error);
    if (known === null) throw error;
    const paint = createPainter(line.context.stderr, line.context.env);
    line.context.stderr.write(`${paint('red', 'svc:')} ${printableLines(known.message)}\n`);
    for (const fix of known.fixes) line.context.stderr.write(`     ${printableLines(fix)}\n`);
    return known.exitCode;
  }
}

/** A file that could not be written is no bug of ours: the person needs its path and the reason, not a stack. */
function systemError(error: unknown): CliError | null {
  const reason = SYSTEM_REASONS[errorCode(error)];
  if (reason === undefined || !(error instanceof Error)) return null;
  const path = 'path' in error && typeof error.path === 'string' ? error.path : null;
  const call = 'syscall' in error && typeof error.syscall === 'string' ? error.syscall : 'access';
  const where = path === null ? '' : ` ${path}`;
  return new CliError(EXIT.failed, `cannot ${call}${where}: ${reason} (${errorCode(error)})`);
}
