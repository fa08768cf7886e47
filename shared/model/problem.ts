/** What is wrong with an input: a setting, a file, an address, a message. Told to a person so that they can fix it. */
export interface Problem<Reason extends string = string> {
  readonly reason: Reason;
  /** The problem and the fix. A text that may be a secret is never quoted. */
  readonly message: string;
}

/** A problem with one named field of an input. */
export interface FieldProblem {
  /** Such as `args.limit`; '' for the input as a whole. */
  readonly field: string;
  /** The problem and the fix, as a predicate for the field's name. A text that may be a secret is never quoted. */
  readonly message: string;
}
