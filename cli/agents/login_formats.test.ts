import { describe, expect, test } from 'vitest';
import { claimsOf } from '../../shared/connect/id_token.ts';
import { refreshPlaceholder } from '../../shared/connect/token_request.ts';
import { LOGIN_FORMATS } from './login_formats.ts';

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (claims: object): string => `${part({ alg: 'RS256' })}.${part(claims)}.planted-signature`;
const AUTH = { chatgpt_plan_type: 'pro', chatgpt_account_id: 'acc', chatgpt_user_id: 'usr', groups: ['planted-claim'] };
const CODEX = {
  auth_mode: 'chatgpt',
  OPENAI_API_KEY: 'sk-planted-key',
  tokens: {
    id_token: jwt({ email: 'a@example.test', 'https://api.openai.com/auth': AUTH, at_hash: 'planted-claim' }),
    access_token: jwt({ exp: 1_800_000_000 }),
    refresh_token: 'planted-refresh-token',
    account_id: 'acc',
    agent_token: 'planted-other',
  },
  last_refresh: '2026-01-01T00:00:00Z',
  personal_access_token: 'stays',
};
const NOW = Date.parse('2026-01-01T12:00:00Z');

describe('the file of Codex', () => {
  const { codex } = LOGIN_FORMATS;

  test('names the account by its id token, and what stays and what goes', () => {
    const found = codex.read(CODEX, 'client');
    expect(found).toMatchObject({
      value: {
        who: 'a@example.test',
        plan: 'pro',
        expiresAt: 1_800_000_000_000,
        others: ['personal_access_token'],
        removed: ['OPENAI_API_KEY'],
      },
    });
  });

  test('keeps the account and no token, no signature and no other claim', () => {
    const written = codex.write(CODEX, 'placeholder.of.a-test', NOW);
    expect(JSON.stringify(written)).not.toContain('planted');
    const { id_token: idToken, ...tokens } = Object(written['tokens']);
    expect(tokens).toEqual({
      access_token: 'placeholder.of.a-test',
      refresh_token: refreshPlaceholder('placeholder.of.a-test'),
      account_id: 'acc',
    });
    expect(JSON.stringify(claimsOf(idToken))).not.toContain('planted');
    expect(claimsOf(idToken)).toEqual({
      email: 'a@example.test',
      exp: NOW / 1000 + 315_360_000,
      'https://api.openai.com/auth': { chatgpt_plan_type: 'pro', chatgpt_account_id: 'acc', chatgpt_user_id: 'usr' },
    });
  });

  test.each(['', 'a.b', 'a.%%%.c', `a.${Buffer.from('[1]').toString('base64url')}.c`])('%j has no claims', (text) => {
    expect(claimsOf(text)).toEqual({});
  });
});

test('the file of Claude Code keeps only known facts beside the placeholders', () => {
  const own = { accessToken: 'planted', refreshToken: 'planted', newToken: 'planted', scopes: ['a'], expiresAt: 1 };
  const written = LOGIN_FORMATS.claude.write({ claudeAiOauth: own }, 'placeholder-of-a-test', NOW);
  expect(JSON.stringify(written)).not.toContain('planted');
  expect(written).toMatchObject({ claudeAiOauth: { scopes: ['a'], accessToken: 'placeholder-of-a-test' } });
});
