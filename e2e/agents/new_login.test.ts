import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOf } from '../support/full_counts.ts';
import { type Finished, shellEnvironment } from '../support/program.ts';
import type { Svc } from '../support/svc.ts';
import { waitFor } from '../support/wait_for.ts';
import { EXPIRES_SECONDS, jwt, OPENAI_AUTH } from './own_logins.ts';
import { type AgentsWorld, startAgentsWorld } from './agents_world.ts';
import { expectHidden } from './hidden_tokens.ts';
import { INSTALL_COMMAND } from './installed_agents.ts';
import { type AgentServices, LOGIN_HOSTS } from './services.ts';
import { TokenIssuer } from './token_issuer.ts';

// The logins of the real agents in the session of `svc login`: in the browser with a code and its verifier, and with a code for
// another device, against token endpoints that rotate refresh tokens and end a login when an old one comes back.

const ANSWER = `answer-${randomBytes(8).toString('hex')}`;
const EMAIL = 'dev@example.test';
const claudeIssuer = new TokenIssuer(
  '9d1c250a-e61b-44d9-88ed-5944d1962f5e',
  () => `sk-ant-oat01-${randomBytes(70).toString('base64url')}AA`,
  EXPIRES_SECONDS,
  () => ({
    scope: 'user:inference user:profile',
    account: { uuid: randomUuid(), email_address: EMAIL },
    organization: { uuid: randomUuid(), name: 'Org of a test' },
  }),
);
const codexIssuer = new TokenIssuer(
  'app_EMoamEEZ73f0CkXaXp7hrann',
  () => jwt({ exp: Math.floor(Date.now() / 1000) + 1, 'https://api.openai.com/auth': OPENAI_AUTH }),
  EXPIRES_SECONDS,
  () => ({ id_token: jwt({ email: EMAIL, 'https://api.openai.com/auth': OPENAI_AUTH }) }),
);
function randomUuid(): string {
  return crypto.randomUUID();
}

interface Tried {
  readonly label: string;
  readonly agent: 'claude' | 'codex';
  readonly issuer: TokenIssuer;
  readonly file: string;
  readonly options: readonly string[];
  readonly shown: string;
  readonly args: readonly string[];
  readonly inBrowser: boolean;
}
const TRIED: readonly Tried[] = [
  {
    label: 'claude in the browser',
    agent: 'claude',
    issuer: claudeIssuer,
    file: '.claude/.credentials.json',
    options: [],
    shown: EMAIL,
    args: ['-p', 'say hello'],
    inBrowser: true,
  },
  {
    label: 'codex with a device',
    agent: 'codex',
    issuer: codexIssuer,
    file: '.codex/auth.json',
    options: ['--device'],
    shown: `${EMAIL}, plan pro`,
    args: ['exec', '--skip-git-repo-check', 'say hello'],
    inBrowser: false,
  },
  {
    label: 'codex in the browser',
    agent: 'codex',
    issuer: codexIssuer,
    file: '.codex/auth.json',
    options: [],
    shown: `${EMAIL}, plan pro`,
    args: ['exec', '--skip-git-repo-check', 'say hello'],
    inBrowser: true,
  },
];

/** The device flow of Codex: the code is confirmed at the second poll, and redeemed with the verifier that the provider made. */
let polls = 0;
const DEVICE = {
  'auth.openai.com/api/accounts/deviceauth/usercode': () => {
    polls = 0;
    return { status: 200, body: { device_auth_id: 'device-of-a-test', user_code: 'ABCD-EFGH', interval: '1' } };
  },
  'auth.openai.com/api/accounts/deviceauth/token': () => {
    polls += 1;
    if (polls < 2) return { status: 403, body: { error: 'authorization_pending' } };
    const verifier = randomBytes(32).toString('base64url');
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const code = codexIssuer.grant(challenge, 'https://auth.openai.com/deviceauth/callback');
    return { status: 200, body: { authorization_code: code, code_verifier: verifier, code_challenge: challenge } };
  },
};

let world: AgentsWorld | null;
let programs: string | null = null;
let services: AgentServices;
let svc: Svc;
let scratch: string;

beforeAll(async () => {
  const current: Record<string, readonly string[]> = {};
  Object.defineProperty(current, 'account/claude', { get: () => claudeIssuer.accepted });
  Object.defineProperty(current, 'account/codex', { get: () => codexIssuer.accepted });
  const tokens = {
    'platform.claude.com/v1/oauth/token': (body: string) => claudeIssuer.answer(body),
    'auth.openai.com/oauth/token': (body: string) => codexIssuer.answer(body),
    ...DEVICE,
  };
  world = await startAgentsWorld(current, ANSWER, { hosts: LOGIN_HOSTS, tokens });
  if (world !== null) ({ programs, services, svc, scratch } = world);
});
afterAll(() => world?.stop());

/** The person confirms in the browser: the provider sends a code for the challenge of the link. */
async function confirmInBrowser(file: string, issuer: TokenIssuer): Promise<void> {
  await waitFor('the browser to be opened', () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'));
  const url = new URL(readFileSync(file, 'utf8').trim());
  expect(url.searchParams.get('code_challenge_method')).toBe('S256');
  const redirectUri = url.searchParams.get('redirect_uri') ?? '';
  const back = new URL(redirectUri);
  back.searchParams.set('code', issuer.grant(url.searchParams.get('code_challenge') ?? '', redirectUri));
  back.searchParams.set('state', url.searchParams.get('state') ?? '');
  await visit(back);
}

/** Loads a page of the agent's own server, and the one that it leads to there. */
async function visit(page: URL): Promise<void> {
  const next = await new Promise<string | undefined>((resolve, reject) => {
    get(page, (reply) => reply.resume().on('end', () => resolve(reply.headers.location))).on('error', reject);
  });
  const to = next === undefined ? null : new URL(next, page);
  if (to?.host === page.host) await visit(to);
}

describe.each(sampleOf(TRIED, 1))('svc login $label', (tried) => {
  const { agent, issuer } = tried;
  let home = '';
  let env: Record<string, string> = {};
  const said: string[] = [];
  const run = async (args: readonly string[]): Promise<Finished> => {
    const ran = await svc.cli(args, { env, cwd: join(home, 'work') });
    said.push(ran.stdout, ran.stderr);
    return ran;
  };
  const expectNoToken = (): void => expectHidden(issuer.issued, { folders: [home, svc.home], said });
  const logIn = async (): Promise<Finished> => {
    const opened = join(home, 'opened-link');
    rmSync(opened, { force: true });
    const running = run(['login', agent, '--as', 'account', ...tried.options, '--yes']);
    // If the agent ends before it has opened the browser, its output says why.
    if (tried.inBrowser) await Promise.race([confirmInBrowser(opened, issuer), running]);
    return running;
  };
  const talk = async (): Promise<void> => {
    services.reset();
    const ran = await run(['run', '--login', 'account', agent, ...tried.args]);
    expect(`${ran.stdout}${ran.stderr}`).toContain(ANSWER);
    expect(services.refused).toEqual([]);
    expect(new Set(services.answered.map(({ secret }) => secret))).toEqual(new Set([`account/${agent}`]));
  };

  it('gives the agent placeholders, stores the tokens, and refreshes them in the control plane alone', async ({
    skip,
  }) => {
    if (programs === null) skip(`the agents are not installed: ${INSTALL_COMMAND}`);
    home = join(scratch, tried.label.replaceAll(' ', '-'));
    const bin = join(home, 'bin');
    mkdirSync(join(home, 'work'), { recursive: true });
    mkdirSync(bin);
    for (const name of ['xdg-open', 'browser']) {
      writeFileSync(join(bin, name), `#!/bin/sh\nprintf '%s\\n' "$1" >> '${home}/opened-link'\n`);
      chmodSync(join(bin, name), 0o755);
    }
    const path = `${bin}:${programs}:${process.env['PATH'] ?? ''}`;
    env = { ...shellEnvironment(), HOME: home, TMPDIR: home, PATH: path, BROWSER: join(bin, 'browser') };

    const first = await logIn();
    expect(first.stderr).toContain(tried.shown);
    expect(first).toMatchObject({ code: 0 });
    expect(first.stderr).not.toContain('does not have the placeholders');
    expect(issuer.logins).toBeGreaterThan(0);
    expectNoToken();

    await talk();
    expectNoToken();
    const refreshes = issuer.refreshes;
    const from = Date.now();
    await waitFor('the access token to expire', () => Date.now() > from + EXPIRES_SECONDS * 1000);
    await talk();
    expect(issuer.refreshes).toBeGreaterThan(refreshes);
    expect(issuer.isRevoked).toBe(false);
    expectNoToken();

    const again = await logIn();
    expect(again.stderr).toContain('It replaces the login');
    expect(again).toMatchObject({ code: 0 });
    await talk();
    expectNoToken();
  });
});
