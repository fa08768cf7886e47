/** A check that is removed to see which tests fail. */
export interface Mutation {
  /** The invariant of design section 5, the refusal, or the area of a hosted control plane. */
  readonly row: string;
  /** What the check guarantees. */
  readonly holds: string;
  readonly file: string;
  /** The code of the check, which the file contains exactly once. */
  readonly text: string;
  readonly replacement: string;
  /** Its test files: unit tests or end-to-end tests. */
  readonly tests: readonly [string, ...string[]];
}
