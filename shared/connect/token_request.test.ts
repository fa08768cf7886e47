import { describe, expect, test } from 'vitest';
import { decideTokenRequest, placeholderReply, refreshPlaceholder } from './token_request.ts';

const CLIENT = 'client-of-a-test';
const PLACEHOLDER = 'sk-ant-oat01-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ';
const REFRESH = refreshPlaceholder(PLACEHOLDER);
const FIELDS = { grant_type: 'refresh_token', client_id: CLIENT, refresh_token: REFRESH, scope: 'a b' };
const decide = (body: string, headers: readonly string[] = [], placeholders = [PLACEHOLDER]) =>
  decideTokenRequest(placeholders, CLIENT, { body, headers });
const changed = (changes: object): string => JSON.stringify({ ...FIELDS, ...changes });

describe('a request for tokens', () => {
  test.each([
    ['as JSON', JSON.stringify(FIELDS)],
    ['as a form', new URLSearchParams(FIELDS).toString()],
  ])('that refreshes a placeholder %s is answered with placeholders', (_how, body) => {
    expect(decide(body)).toEqual({ kind: 'answer', placeholder: PLACEHOLDER, scope: 'a b' });
    expect(JSON.parse(placeholderReply(PLACEHOLDER, 'a b'))).toEqual({
      access_token: PLACEHOLDER,
      token_type: 'Bearer',
      expires_in: 315_360_000,
      refresh_token: REFRESH,
      scope: 'a b',
    });
  });

  test.each([
    ['of another client', changed({ client_id: 'other' })],
    ['without a client', JSON.stringify({ grant_type: 'refresh_token', refresh_token: REFRESH })],
    ['with another grant', changed({ grant_type: 'authorization_code' })],
    ['with the access token’s placeholder', changed({ refresh_token: PLACEHOLDER })],
    ['with a placeholder in another field', changed({ refresh_token: 'own', scope: PLACEHOLDER })],
    ['with an escaped placeholder', `{"refresh_token": "own", "x": "\\u0073${PLACEHOLDER.slice(1)}"}`],
    ['with a placeholder that a form escapes', `x=%73${PLACEHOLDER.slice(1)}`],
    ['with a placeholder in no field', `{"a": ["${REFRESH}"]}`],
  ])('%s that holds a placeholder is refused', (_what, body) => {
    expect(decide(body)).toEqual({ kind: 'refuse' });
  });

  test('with a placeholder in a header is refused', () => {
    expect(decide(changed({ refresh_token: 'own' }), [`Bearer ${PLACEHOLDER}`])).toEqual({ kind: 'refuse' });
  });

  test.each([
    ['with the program’s own refresh token', changed({ refresh_token: 'own' })],
    ['with its own code', changed({ grant_type: 'authorization_code', refresh_token: undefined, code: 'c' })],
    ['with nothing', ''],
    ['that is no object', '7'],
  ])('%s is left to the program', (_what, body) => {
    expect(decide(body)).toEqual({ kind: 'own' });
  });

  test('with a placeholder of another login is left to the program', () => {
    expect(decide(JSON.stringify(FIELDS), [], [`${PLACEHOLDER.slice(0, -1)}x`])).toEqual({ kind: 'own' });
  });
});
