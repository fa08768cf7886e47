/** A lease to take, in milliseconds since the epoch. */
export interface Lease {
  readonly id: string;
  readonly until: number;
  readonly now: number;
  /** One that ends later is from before the clock was set back, and is held by nobody. */
  readonly longest: number;
}
