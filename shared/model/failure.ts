/** What something that svc depends on did not do: an engine, an upstream, a provider, the control plane, a program. */
export interface Failure<Reason extends string = string> {
  readonly reason: Reason;
  /** For a person: what failed, and the fix. Never contains a secret. */
  readonly message: string;
}
