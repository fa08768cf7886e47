import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { CHATGPT_ACCOUNT } from './replies.ts';
import type { AgentServices } from './services.ts';
import { TokenIssuer } from './token_issuer.ts';

/** Of an access token. */
export const EXPIRES_SECONDS = 4;
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
export const jwt = (claims: object): string =>
  `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${randomBytes(40).toString('base64url')}`;
export const OPENAI_AUTH = {
  chatgpt_plan_type: 'pro',
  chatgpt_account_id: CHATGPT_ACCOUNT,
  chatgpt_user_id: 'user-of-a-test',
};

/** An agent, the file of its login in its home, and its endpoint. */
export interface OwnLogin {
  readonly agent: 'claude' | 'codex';
  readonly file: string;
  readonly tokenUrl: string;
  /** Null if the provider names none. */
  readonly revocationUrl: string | null;
  readonly issuer: TokenIssuer;
  readonly shown: string;
  readonly args: readonly string[];
  readonly logout: readonly string[];
  login(issuer: TokenIssuer): object;
  /** Makes the agent refresh by itself. */
  expire(services: AgentServices, file: string): void;
}
/** New logins of both agents, with tokens of their own. */
export const ownLogins = (): readonly OwnLogin[] => [
  {
    agent: 'claude',
    file: '.claude/.credentials.json',
    tokenUrl: 'platform.claude.com/v1/oauth/token',
    revocationUrl: null,
    issuer: new TokenIssuer(
      '9d1c250a-e61b-44d9-88ed-5944d1962f5e',
      () => `sk-ant-oat01-${randomBytes(70).toString('base64url')}AA`,
      EXPIRES_SECONDS,
    ),
    shown: 'plan max',
    args: ['-p', 'say hello'],
    logout: ['auth', 'logout'],
    login: ({ access, refresh }) => ({
      claudeAiOauth: {
        accessToken: access,
        refreshToken: refresh,
        expiresAt: Date.now() + 1_000,
        scopes: ['user:inference', 'user:profile'],
        subscriptionType: 'max',
        rateLimitTier: 'default_claude_max_5x',
      },
    }),
    expire(_services, file) {
      writeFileSync(file, readFileSync(file, 'utf8').replace(/"expiresAt": \d+/, '"expiresAt": 1000'));
    },
  },
  {
    agent: 'codex',
    file: '.codex/auth.json',
    tokenUrl: 'auth.openai.com/oauth/token',
    revocationUrl: 'auth.openai.com/oauth/revoke',
    issuer: new TokenIssuer(
      'app_EMoamEEZ73f0CkXaXp7hrann',
      () => jwt({ exp: Math.floor(Date.now() / 1000) + 1, 'https://api.openai.com/auth': OPENAI_AUTH }),
      EXPIRES_SECONDS,
    ),
    shown: 'dev@example.test, plan pro',
    args: ['exec', '--skip-git-repo-check', 'say hello'],
    logout: ['logout'],
    login: ({ access, refresh }) => ({
      auth_mode: 'chatgpt',
      OPENAI_API_KEY: null,
      tokens: {
        id_token: jwt({ email: 'dev@example.test', 'https://api.openai.com/auth': OPENAI_AUTH }),
        access_token: access,
        refresh_token: refresh,
        account_id: CHATGPT_ACCOUNT,
      },
      last_refresh: new Date().toISOString(),
    }),
    // It believes the expiry in its placeholder, and refreshes when a request is refused again after reading its file again.
    expire(services) {
      services.refuseNext('/backend-api/wham/accounts/check', 2);
    },
  },
];

/** The access tokens that each service admits now, by the login. */
export function currentTokens(logins: readonly OwnLogin[]): Readonly<Record<string, readonly string[]>> {
  const current: Record<string, readonly string[]> = {};
  for (const { agent, issuer } of logins) {
    Object.defineProperty(current, `account/${agent}`, { get: () => issuer.accepted, enumerable: true });
  }
  return current;
}

/** What answers at the token URLs. */
export function tokenEndpoints(
  logins: readonly OwnLogin[],
): Readonly<Record<string, (body: string) => ReturnType<TokenIssuer['answer']>>> {
  const ofLogin = ({ tokenUrl, revocationUrl, issuer }: OwnLogin) => [
    [tokenUrl, (body: string) => issuer.answer(body)] as const,
    ...(revocationUrl === null ? [] : [[revocationUrl, (body: string) => issuer.revoke(body)] as const]),
  ];
  return Object.fromEntries(logins.flatMap(ofLogin));
}
