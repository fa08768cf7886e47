import type { LogEntry } from '../routes/http/app_env.ts';
import { errorCode } from '../../shared/model/error_code.ts';

const EXIT_REFUSED = 1;
export const EXIT_USAGE = 2;
export const EXIT_PORT_TAKEN = 3;

/** An expected reason why a program of the control plane does not start or run. */
export class ProgramError extends Error {
  readonly code: string;
  readonly exitCode: number;

  constructor(code: string, message: string, exitCode = EXIT_REFUSED) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** One line of JSON on stderr. */
export function log(entry: LogEntry): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), ...entry })}\n`);
}

/**
 * Prints the reason and ends the program. For an unexpected error only its kind, because its message may quote values.
 */
export function refuse(error: unknown, unexpected = 'the control plane cannot start'): void {
  if (error instanceof ProgramError) {
    log({ level: 'error', message: error.message, code: error.code });
    process.exit(error.exitCode);
  }
  log({ level: 'error', message: unexpected, code: errorCode(error) });
  process.exit(EXIT_REFUSED);
}
