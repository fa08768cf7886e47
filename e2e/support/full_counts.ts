/** Set by `npm run test:full`, which does all kills and all fuzzing; `npm test` does a sample of each. */
export const IS_FULL = process.env['SVC_TEST_FULL'] === '1';

/** How often something is done: so many times in full, or as a sample. */
export function countOf(full: number, sample: number): number {
  return IS_FULL ? full : sample;
}
