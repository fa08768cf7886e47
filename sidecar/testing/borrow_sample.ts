import { type Borrow, openBorrow } from '../borrow/open_borrow.ts';

/** Borrowed secrets of a machine on which nobody consented to any, unless a test's home has consents. */
export function borrowSample(home = '/nonexistent'): Borrow {
  return openBorrow({
    home,
    sidecarId: 'sdc_00000000000000000000000000',
    clock: { now: () => Date.now() },
    credentialCacheSeconds: 300,
    behindMs: () => 0,
    record: () => 'evt_00000000000000000000000000',
    warn: () => undefined,
  });
}
