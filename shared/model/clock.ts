/** Wall-clock time; tests pass a clock they move. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}
