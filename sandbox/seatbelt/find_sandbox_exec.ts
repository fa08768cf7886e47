import { err, ok, type Result } from '../../shared/model/result.ts';
import type { LaunchProblem } from '../launch/launch_error.ts';

/** Never looked for on PATH: what stands there would make the boundary. */
export const SANDBOX_EXEC = '/usr/bin/sandbox-exec';

/** The program that makes sandboxes on macOS, or why there is none. */
export function findSandboxExec(isProgram: (path: string) => boolean): Result<string, LaunchProblem> {
  if (isProgram(SANDBOX_EXEC)) return ok(SANDBOX_EXEC);
  return err({
    message: `this macOS has no ${SANDBOX_EXEC}, so there can be no sandbox`,
    fixes: ['In a Linux machine of its own (a virtual machine, or a computer): svc run --sandbox'],
  });
}
