import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, shellEnvironment } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { waitFor } from '../support/wait_for.ts';
import { INSTALL_COMMAND, installAgents } from './installed_agents.ts';
import { CHATGPT_ACCOUNT } from './replies.ts';
import { type AgentServices, LOGIN_HOSTS, SERVICE_HOSTS, startServices } from './services.ts';
import { TokenIssuer } from './token_issuer.ts';

// The own logins of the real agents, moved into svc: against services that admit only the newest access tokens, and token
// endpoints that rotate refresh tokens and end a login when an old one comes back.

const EXPIRES_SECONDS = 4;
const ANSWER = `answer-${randomBytes(8).toString('hex')}`;
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (claims: object): string =>
  `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${randomBytes(40).toString('base64url')}`;
const OPENAI_AUTH = {
  chatgpt_plan_type: 'pro',
  chatgpt_account_id: CHATGPT_ACCOUNT,
  chatgpt_user_id: 'user-of-a-test',
};

/** An agent, the file of its login, and its endpoint. */
interface Tried {
  readonly agent: 'claude' | 'codex';
  readonly file: string;
  readonly tokenUrl: string;
  readonly issuer: TokenIssuer;
  readonly shown: string;
  readonly args: readonly string[];
  readonly logout: readonly string[];
  login(issuer: TokenIssuer): object;
  /** Makes the agent refresh by itself. */
  expire(file: string): void;
}
const TRIED: readonly Tried[] = [
  {
    agent: 'claude',
    file: '.claude/.credentials.json',
    tokenUrl: 'platform.claude.com/v1/oauth/token',
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
    expire(file) {
      writeFileSync(file, readFileSync(file, 'utf8').replace(/"expiresAt": \d+/, '"expiresAt": 1000'));
    },
  },
  {
    agent: 'codex',
    file: '.codex/auth.json',
    tokenUrl: 'auth.openai.com/oauth/token',
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
    expire() {
      services.refuseNext('/backend-api/wham/accounts/check', 2);
    },
  },
];

let programs: string | null;
let services: AgentServices;
let svc: Svc;
let scratch: string;

beforeAll(async () => {
  programs = await installAgents();
  if (programs === null) return;
  scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-logins-'));
  const ca = await createTestCa();
  const current: Record<string, readonly string[]> = {};
  for (const { agent, issuer } of TRIED) {
    Object.defineProperty(current, `account/${agent}`, { get: () => issuer.accepted });
  }
  const tokens = Object.fromEntries(
    TRIED.map(({ tokenUrl, issuer }) => [tokenUrl, (body: string) => issuer.answer(body)]),
  );
  services = await startServices(await ca.issue(SERVICE_HOSTS), current, ANSWER, { hosts: LOGIN_HOSTS, tokens });
  const resolve = SERVICE_HOSTS.map((host) => `${host}:127.0.0.1:${services.port}`);
  svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve });
});
afterAll(async () => {
  if (programs === null) return;
  await svc.stop();
  await services.close();
  rmSync(scratch, { recursive: true, force: true });
});

const eventList = z.object({ items: z.array(z.object({ data: z.record(z.string(), z.unknown()) })) });

describe.each(TRIED.map((tried) => ({ ...tried, label: `svc login ${tried.agent}` })))('$label --import', (tried) => {
  const { agent, issuer } = tried;
  let home = '';
  let file = '';
  let env: Record<string, string> = {};
  const said: string[] = [];
  const run = async (args: readonly string[]): Promise<Finished> => {
    const ran = await svc.cli(args, { env, cwd: join(home, 'work') });
    said.push(ran.stdout, ran.stderr);
    return ran;
  };
  const expectNoToken = (): void => {
    for (const token of issuer.issued) {
      expect(searchFiles(home, token).holding).toEqual([]);
      expect(searchFiles(svc.home, token).holding).toEqual([]);
      expect(searchProcesses(token).holding).toEqual([]);
      expect(said.flatMap((text) => foundIn(text, token))).toEqual([]);
    }
  };
  const talk = async (): Promise<void> => {
    services.reset();
    services.onAnswer(() => {
      for (const token of issuer.issued) expect(searchProcesses(token).holding).toEqual([]);
    });
    const ran = await run(['run', '--login', 'account', agent, ...tried.args]);
    expect(`${ran.stdout}${ran.stderr}`).toContain(ANSWER);
    expect(ran.code).toBe(0);
    expect(services.refused).toEqual([]);
    expect(new Set(services.answered.map(({ secret }) => secret))).toEqual(new Set([`account/${agent}`]));
  };

  it('moves the login, leaves placeholders, and refreshes it in the control plane alone', async ({ skip }) => {
    if (programs === null) skip(`the agents are not installed: ${INSTALL_COMMAND}`);
    home = join(scratch, agent);
    file = join(home, tried.file);
    mkdirSync(join(home, 'work'), { recursive: true });
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(tried.login(issuer)), { mode: 0o600 });
    writeFileSync(join(home, '.claude.json'), JSON.stringify({ hasCompletedOnboarding: true }));
    env = { ...shellEnvironment(), HOME: home, TMPDIR: home, PATH: `${programs}:${process.env['PATH'] ?? ''}` };

    const asked = await run(['login', agent, '--import']);
    expect(asked).toMatchObject({ code: 2 });
    expect(readFileSync(file, 'utf8')).toContain(issuer.refresh);
    const imported = await run(['login', agent, '--import', '--yes']);
    expect(imported.stderr).toContain(tried.shown);
    expect(imported.code).toBe(0);
    expectNoToken();

    await talk();
    const first = issuer.refreshes;
    expectNoToken();

    // After the access token has expired, the next request needs another refresh.
    const from = Date.now();
    await waitFor('the access token to expire', () => Date.now() > from + EXPIRES_SECONDS * 1000);
    await talk();
    expect(issuer.refreshes).toBeGreaterThan(first);
    expectNoToken();

    // An agent that refreshes by itself gets its placeholders again.
    tried.expire(file);
    await talk();
    expect({ refused: issuer.refused, isRevoked: issuer.isRevoked }).toEqual({ refused: [], isRevoked: false });
    expectNoToken();

    const again = await run(['login', agent, '--import', '--yes']);
    expect(again.stderr).toContain('has placeholders of svc and no tokens');

    await run(['run', '--login', 'account', agent, ...tried.logout]);
    expect(issuer.isRevoked).toBe(false);
    expectNoToken();
    const events = eventList.parse(JSON.parse(await svc.ok(['audit', 'list', '--json', '--limit', '200'])));
    const answered = events.items.filter(({ data }) => data['svc.proxy.reason'] === 'answered_locally');
    expect(answered.some(({ data }) => data['svc.connector.fqn'] === `login/${agent}`)).toBe(true);
  });
});
