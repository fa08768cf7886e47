import { Argument } from 'commander';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from './home.ts';
import { LOG_NAMES, logFolder, LogReader, mergeEntries, type LogEntry, type LogName } from './log_files.ts';

interface LogsOptions {
  readonly follow?: boolean;
  readonly lines: string;
}

const DEFAULT_LINES = '100';
const LOOK_AGAIN_MS = 250;
const PROGRAM_WIDTH = Math.max(...LOG_NAMES.map((name) => name.length));
const LEVEL_WIDTH = 'error'.length;

/** `svc logs`. */
export function addLogsCommand(line: CommandLine): void {
  const logs = line.program
    .command('logs')
    .description('show the logs of the control plane and the sidecar, merged by time')
    .addArgument(new Argument('[program]', 'only this log').choices(LOG_NAMES))
    .option('--follow', 'show new lines as they are written, until Ctrl-C')
    .option('--lines <n>', 'the number of last lines to show', DEFAULT_LINES);
  handle<LogsOptions>(line, logs, showLogs);
}

async function showLogs(call: Call<LogsOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  const count = parseLines(options.lines);
  const readers = LOG_NAMES.filter((name) => call.args[0] === undefined || call.args[0] === name).map(
    (name) => new LogReader(home, name),
  );
  const readNew = (): readonly LogEntry[] => mergeEntries(readers.map((reader) => reader.readNew()));
  const entries = readNew();
  if (entries.length === 0 && options.follow !== true) print.note(`there are no logs in ${logFolder(home)} yet`);
  printEntries(call, count === 0 ? [] : entries.slice(-count));
  if (options.follow !== true) return;
  const { stop } = context;
  while (!stop.aborted) {
    await context.pause(LOOK_AGAIN_MS, stop);
    printEntries(call, readNew());
  }
}

function printEntries({ print }: Call, entries: readonly LogEntry[]): void {
  for (const entry of entries) print.line(jsonOf(entry), formatEntry(entry));
}

function jsonOf({ program, time, fields, line }: LogEntry): object {
  return fields === null ? { time: time === '' ? null : time, program, message: line } : { ...fields, program };
}

/** `TIME  PROGRAM  LEVEL  MESSAGE  field=value ...`; a line that is not JSON is shown unchanged after its program. */
function formatEntry({ program, time, fields, line }: LogEntry): string {
  const start = `${toPrintable(time)}  ${program.padEnd(PROGRAM_WIDTH)}  `;
  if (fields === null) return start + ' '.repeat(LEVEL_WIDTH + 2) + toPrintable(line);
  const { time: _time, level, message, ...others } = fields;
  const rest = Object.entries(others).map(([name, value]) => `${name}=${textOf(value)}`);
  const words = [textOf(level ?? '').padEnd(LEVEL_WIDTH), textOf(message ?? ''), ...rest];
  return start + toPrintable(words.join('  '));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function parseLines(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--lines is ${JSON.stringify(text)}: use a whole number`);
}

/** The last lines of a program's log, for an error message. */
export function readLastLines(home: string, name: LogName, count: number): readonly string[] {
  return new LogReader(home, name).readNew().slice(-count).map(formatEntry);
}
