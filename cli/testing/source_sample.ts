import type { SourceRecord } from '../../shared/wire/secret_sources.ts';

/** A source of a secret as the API shows it, with a test's changes. */
export function sourceSample(changes: Partial<SourceRecord> = {}): SourceRecord {
  return {
    id: 'sec_01m7yjbz4dz98vffmftfxp52e5',
    path: 'ci/build',
    ref: 'vault://ci/build',
    owner: 'personal',
    description: null,
    version: 1,
    source: {
      kind: 'client_credentials',
      token_url: 'https://id.example.test/token',
      client_id: 'build',
      client_authentication: 'basic',
      scopes: ['a', 'b'],
      algorithm: 'RS256',
    },
    minted: null,
    last_minted_at: null,
    failure: null,
    updated_at: '2026-01-01T12:00:00.000Z',
    ...changes,
  };
}
