import { expect, test } from 'vitest';
import type { SourceRecord } from '../../shared/wire/secret_sources.ts';
import { sourceFindings } from './source_findings.ts';

const AT = '2026-01-01T12:00:00.000Z';
const UNTIL = '2026-01-01T13:00:00.000Z';
const SOURCE: SourceRecord = {
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
    scopes: [],
    algorithm: 'RS256',
  },
  minted: null,
  last_minted_at: null,
  failure: null,
  updated_at: AT,
};
const failure = { message: 'id.example.test refused: invalid_client', at: AT };
const minted = { for: 'x', at: AT, until: UNTIL };

test('is silent without sources, and one row without failures', () => {
  expect(sourceFindings([])).toEqual([]);
  expect(sourceFindings([SOURCE, { ...SOURCE, minted }])).toEqual([
    { check: 'minted secrets', level: 'ok', text: '2, none with a failure since its last value' },
  ]);
});

test('is a problem if a provider fails and no value is held, with the reason and the command', () => {
  expect(sourceFindings([SOURCE, { ...SOURCE, owner: 'enterprise', failure }])).toEqual([
    {
      check: 'minted secrets',
      level: 'problem',
      text: `vault://ci/build got no value at ${AT}: id.example.test refused: invalid_client; requests that need it get 503`,
      fix: expect.stringContaining('svc secret source test ci/build --owner enterprise asks again'),
    },
  ]);
});

test('is a warning while a value is held, which says until when', () => {
  expect(sourceFindings([{ ...SOURCE, minted, failure }])).toMatchObject([
    { level: 'warning', text: expect.stringContaining(`ends at ${UNTIL}`) },
  ]);
});
