/** The exit codes of `svc`, as `svc --help` and docs/reference/commands.md list them. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  /** `svc run`, `svc launch`: the command was not started. */
  notStarted: 125,
  notExecutable: 126,
  notFound: 127,
} as const;

export const EXIT_CODE_ROWS: readonly (readonly [string, string])[] = [
  ['0', 'done'],
  [
    '1',
    'the call was refused or failed (`api`: the reply was 4xx or 5xx; `doctor`, `audit verify`: something is wrong)',
  ],
  ['2', 'the command line or a setting is wrong'],
  ['3', 'svc is not running, or the control plane cannot be reached'],
  [
    '`run`, `launch`',
    "the command's own exit status; 128 + n when signal n ended it; 125 when svc could not start it, 126 when it cannot be executed, 127 when it is not found",
  ],
];

/** An expected end of a command: a sentence with the problem, the fix, and the exit code. The composition root prints it. */
export class CliError extends Error {
  readonly exitCode: number;
  /** What to do about it, as lines of their own. */
  readonly fixes: readonly string[];
  /** The code of the API's error that it tells of, such as `not_found`. */
  readonly apiCode: string | null;

  constructor(exitCode: number, message: string, fixes: readonly string[] = [], apiCode: string | null = null) {
    super(message);
    this.apiCode = apiCode;
    this.name = 'CliError';
    this.exitCode = exitCode;
    this.fixes = fixes;
  }
}
