import type { SourceTested } from '../secret_sources.ts';

/** What became of a value that was minted for a test, for people. */
export const TESTED_LEFT: { readonly [L in NonNullable<SourceTested['left']>]: string } = {
  revoked: 'it was revoked',
  ends: 'it was discarded; its provider accepts it until then',
  not_revoked: 'it was discarded, but not revoked (the audit log says why); its provider accepts it until then',
  kept: 'it was discarded',
};
