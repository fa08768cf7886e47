import { expect, test } from 'vitest';
import { sourceSample } from '../testing/source_sample.ts';
import { sourceFindings } from './source_findings.ts';

const AT = '2026-01-01T12:00:00.000Z';
const UNTIL = '2026-01-01T13:00:00.000Z';
const SOURCE = sourceSample();
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
