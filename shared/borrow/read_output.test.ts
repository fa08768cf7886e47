import { expect, test } from 'vitest';
import { readBorrowed } from './read_output.ts';
import type { BorrowedForm } from './borrow_grant.ts';

const NOW = Date.parse('2026-01-01T12:00:00.000Z');
const JSON_FORM: BorrowedForm = { form: 'json', value: 'credential.access_token', expires: 'credential.token_expiry' };

function read(form: BorrowedForm, output: string) {
  const got = readBorrowed(form, output, NOW);
  if (!got.ok) return got.error;
  const { secret, signedAs, expiresAtMs } = got.value;
  const keys = signedAs && { id: signedAs.accessKeyId, token: signedAs.sessionToken.reveal() };
  return { value: secret.reveal(), ...keys, ends: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString() };
}

const withEnd = (end: unknown) =>
  read(JSON_FORM, JSON.stringify({ credential: { access_token: 'planted-value', token_expiry: end } }));

test('is the whole output without its last line break', () => {
  expect(read({ form: 'text' }, 'planted-value\n')).toEqual({ value: 'planted-value', ends: null });
  expect(read({ form: 'text' }, ' planted value\r\n')).toEqual({ value: ' planted value', ends: null });
});

test.each([
  ['2026-01-01T12:30:00Z', '2026-01-01T12:30:00.000Z'],
  ['2026-01-01T14:30:00+02:00', '2026-01-01T12:30:00.000Z'],
  [3600, '2026-01-01T13:00:00.000Z'],
  ['3600', '2026-01-01T13:00:00.000Z'],
  [Date.parse('2026-01-01T12:30:00Z') / 1000, '2026-01-01T12:30:00.000Z'],
  [Date.parse('2026-01-01T12:30:00Z'), '2026-01-01T12:30:00.000Z'],
])('takes the end %s from a field', (end, ends) => {
  expect(withEnd(end)).toEqual({ value: 'planted-value', ends });
});

test.each(['2026-01-01 12:30:00', '2026-01-01T12:30:00', 'soon', '', null, -1, true, { at: 1 }])(
  'refuses the end %j, which nobody can be sure of',
  (end) => {
    expect(withEnd(end)).toBe('has no time in the field credential.token_expiry');
  },
);

test.each([
  [{ form: 'text' }, '', 'is empty'],
  [{ form: 'text' }, '\n', 'is empty'],
  [{ form: 'text' }, 'a\nplanted-value', 'has several lines'],
  [{ form: 'text' }, 'planted\u0000value', 'has characters that no credential has'],
  [{ form: 'text' }, 'planted\tvalue', 'has characters that no credential has'],
  [JSON_FORM, 'planted-value', 'is not a JSON object'],
  [JSON_FORM, '["planted-value"]', 'is not a JSON object'],
  [JSON_FORM, '{"credential":{"access_token":7}}', 'has no text in the field credential.access_token'],
  [{ form: 'json', value: 'toString' }, '{}', 'has no text in the field toString'],
  [{ form: 'aws' }, '{"Version":1}', 'has no AccessKeyId as credential_process writes it'],
] as const)('refuses %j of %j', (form, output, problem) => {
  expect(read(form, output)).toBe(problem);
});

test('reads a key set of AWS whole, and none without a session token', () => {
  const keys = {
    Version: 1,
    AccessKeyId: 'ASIAIOSFODNN7EXAMPLE',
    SecretAccessKey: 'planted-key',
    SessionToken: 'planted-token',
  };
  const output = JSON.stringify({ ...keys, Expiration: '2026-01-01T13:00:00Z' });
  expect(read({ form: 'aws' }, output)).toEqual({
    value: 'planted-key',
    id: 'ASIAIOSFODNN7EXAMPLE',
    token: 'planted-token',
    ends: '2026-01-01T13:00:00.000Z',
  });
  const { SessionToken: _token, ...long } = keys;
  expect(read({ form: 'aws' }, JSON.stringify(long))).toBe('has no SessionToken as credential_process writes it');
  expect(read({ form: 'aws' }, JSON.stringify({ ...keys, Expiration: 'soon' }))).toBe(
    'has no time in the field Expiration',
  );
});
