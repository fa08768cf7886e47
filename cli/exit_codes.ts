/** The exit codes of `svc`, as `svc --help` and docs/reference/commands.md list them. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  /** `svc run`, `svc join`, `svc launch`: svc could not start the command. */
  notStarted: 125,
  notExecutable: 126,
  notFound: 127,
} as const;

export const EXIT_CODE_ROWS: readonly (readonly [string, string])[] = [
  ['0', 'done'],
  ['1', 'the call was refused or failed (`api`: the reply was 4xx or 5xx; `doctor`, `audit verify`: a check failed)'],
  ['2', 'the command line or a setting is invalid'],
  ['3', 'svc is not running, or the control plane cannot be reached'],
  [
    '`run`, `join`, `launch`',
    "the command's own exit status; 128 + n if signal n ended it; 125 if svc could not start it, 126 if it cannot be executed, 127 if it is not found",
  ],
];

/** An expected failure of a command: the problem in a sentence, the fix, and the exit code. The command line prints it. */
export class CliError extends Error {
  readonly exitCode: number;
  /** How to fix it, one line each. */
  readonly fixes: readonly string[];
  /** The code of the API error that caused it, such as `not_found`. */
  readonly apiCode: string | null;

  constructor(exitCode: number, message: string, fixes: readonly string[] = [], apiCode: string | null = null) {
    super(message);
    this.apiCode = apiCode;
    this.name = 'CliError';
    this.exitCode = exitCode;
    this.fixes = fixes;
  }
}

/** The program was not reached; false if the caller's own signal ended the call. */
export function isUnreachable(error: unknown, signal?: AbortSignal): error is CliError {
  return error instanceof CliError && error.exitCode === EXIT.unreachable && signal?.aborted !== true;
}
