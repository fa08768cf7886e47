import type { Result } from '../../shared/model/result.ts';

/** Why a launch does not start: a sentence, and what to do about it as lines of their own. */
export interface LaunchProblem {
  readonly message: string;
  readonly fixes: readonly string[];
}

/** A launch that came to an end before its command ran; what it had made is undone on the way. */
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

/** The value of a step of a launch; a refusal ends the launch. */
export function valueOrThrow<T>(result: Result<T, LaunchProblem>): T {
  if (result.ok) return result.value;
  throw new LaunchError(result.error);
}
