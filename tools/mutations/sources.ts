import type { Mutation } from '../mutation.ts';

const SOURCES = 'worker/secret_sources.test.ts';
const MINTED = 'worker/services/sources/minted_value.ts';
const STORED = 'worker/services/sources/secret_sources.ts';

/** Checks of secrets that a provider mints. */
export const SOURCE_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Minted secrets',
    holds: 'a value is not released at its end',
    file: MINTED,
    text: 'if (!isUsable(context.clock.now(), { storedAt, expiresAt })) return null;',
    replacement: '',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a value that was minted for a source which changed meanwhile is discarded',
    file: MINTED,
    text: 'if (!isSame) return ok({ statements: [], events: [], value: false });',
    replacement: 'if (now === null) return ok({ statements: [], events: [], value: false });',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a value that has ended when it arrives is refused',
    file: MINTED,
    text: 'if (expiresAtMs < context.clock.now() + SHORTEST_MS) {',
    replacement: 'if (expiresAtMs < 0) {',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a token for more than was asked is discarded',
    file: 'worker/services/sources/kinds/github_app.ts',
    text: 'if (!isNarrowed(source, data)) return',
    replacement: "if (!isNarrowed(source, data) && source.app_id === '') return",
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'the key of a source is sealed',
    file: STORED,
    text: 'sealedMaterial: await context.vault.seal(keyPlace(secret), key),',
    replacement: 'sealedMaterial: key.reveal(),',
    tests: [SOURCES],
  },
  {
    row: 'Minted secrets',
    holds: 'a sidecar’s copy ends by each of two clocks',
    file: 'sidecar/control/credentials.ts',
    text: 'return now < goodUntil && this.#monotonicNow() < goodUntilMonotonic;',
    replacement: 'return now < goodUntil;',
    tests: ['sidecar/control/credentials.test.ts'],
  },
];
