import type { Result } from '../../shared/model/result.ts';

/** Why a launch does not start: a sentence, and the fixes, one per line. */
export interface LaunchProblem {
  readonly message: string;
  readonly fixes: readonly string[];
}

/** A launch failed before its command ran; everything that it created is undone. */
export class LaunchError extends Error {
  readonly fixes: readonly string[];
  /** Null: the exit status of a command that was not started. */
  readonly exitCode: number | null;

  constructor(problem: LaunchProblem, exitCode: number | null = null) {
    super(problem.message);
    this.name = 'LaunchError';
    this.fixes = problem.fixes;
    this.exitCode = exitCode;
  }
}

/** Returns the value of a launch step; throws if the step was refused. */
export function valueOrLaunchError<T>(result: Result<T, LaunchProblem>): T {
  if (result.ok) return result.value;
  throw new LaunchError(result.error);
}
