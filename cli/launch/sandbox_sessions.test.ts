import { expect, test } from 'vitest';
import { PROVIDER_TIMEOUT_MS } from '../../sidecar/control/channel.ts';
import { UNSEAL_TIMEOUT_MS } from './sandbox_sessions.ts';

test('the launcher waits longer for a value that leaves the seal than the sidecar for its provider', () => {
  expect(UNSEAL_TIMEOUT_MS).toBeGreaterThan(PROVIDER_TIMEOUT_MS);
});
