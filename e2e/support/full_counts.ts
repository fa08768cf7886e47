/** Set by `npm run test:full`, which does everything; `npm test` does a sample of what is long and alike. */
export const IS_FULL = process.env['SVC_TEST_FULL'] === '1';

/** For `it.each` and `describe.each`: what only `npm run test:full` runs, whose name ends in `%s`. */
export const ONLY_FULL: readonly string[] = IS_FULL ? [''] : [];

/** How often something is done: so many times in full, or as a sample. */
export function countOf(full: number, sample: number): number {
  return IS_FULL ? full : sample;
}

/** Cases that are alike: all in full, or the first ones as a sample. */
export function sampleOf<Case>(cases: readonly Case[], size: number): readonly Case[] {
  return IS_FULL ? cases : cases.slice(0, size);
}
