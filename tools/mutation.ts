/** A check that is taken out to see which tests notice. */
export interface Mutation {
  /** Invariant of design section 5, the refusal it gives, or what of a hosted control plane it is about. */
  readonly row: string;
  /** What holds because of the check. */
  readonly holds: string;
  readonly file: string;
  /** Stands once in the file. */
  readonly text: string;
  readonly replacement: string;
  /** Where its tests are: files of the unit or of the end-to-end tests. */
  readonly tests: readonly [string, ...string[]];
}
