import { errorCode, SYSTEM_REASONS } from '../../shared/model/error_code.ts';
import { CliError, EXIT } from '../exit_codes.ts';

const REASONS: Readonly<Record<string, string>> = {
  ...SYSTEM_REASONS,
  ENOENT: 'it does not exist',
  EISDIR: 'it is a folder',
};

/** For a file that a person named and that cannot be read: `name` is its path, or what holds it if the path may be a secret. */
export function unreadableFile(name: string, error: unknown, exitCode: number = EXIT.failed): CliError {
  const reason = REASONS[errorCode(error)] ?? (error instanceof Error ? error.message : String(error));
  return new CliError(exitCode, `${name} cannot be read: ${reason}`);
}
