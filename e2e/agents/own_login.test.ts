import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sampleOf } from '../support/full_counts.ts';
import { searchProcesses } from '../support/planted_secret.ts';
import { type Finished, shellEnvironment } from '../support/program.ts';
import type { Svc } from '../support/svc.ts';
import { waitFor } from '../support/wait_for.ts';
import { type AgentsWorld, startAgentsWorld } from './agents_world.ts';
import { expectHidden } from './hidden_tokens.ts';
import { INSTALL_COMMAND } from './installed_agents.ts';
import { currentTokens, EXPIRES_SECONDS, ownLogins, tokenEndpoints } from './own_logins.ts';
import { type AgentServices, LOGIN_HOSTS } from './services.ts';

// The own logins of the real agents, moved into svc: against services that admit only the newest access tokens, and token
// endpoints that rotate refresh tokens and end a login when an old one comes back.

const ANSWER = `answer-${randomBytes(8).toString('hex')}`;
const TRIED = ownLogins();

let world: AgentsWorld | null;
let programs: string | null = null;
let services: AgentServices;
let svc: Svc;
let scratch: string;

beforeAll(async () => {
  world = await startAgentsWorld(currentTokens(TRIED), ANSWER, { hosts: LOGIN_HOSTS, tokens: tokenEndpoints(TRIED) });
  if (world !== null) ({ programs, services, svc, scratch } = world);
});
afterAll(() => world?.stop());

const eventList = z.object({ items: z.array(z.object({ data: z.record(z.string(), z.unknown()) })) });

const LABELLED = TRIED.map((tried) => ({ ...tried, label: `svc login ${tried.agent}` }));

describe.each(sampleOf(LABELLED, 1))('$label --import', (tried) => {
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
  const expectNoToken = (): void => expectHidden(issuer.issued, { folders: [home, svc.home], said });
  const talk = async (): Promise<void> => {
    services.reset();
    services.onAnswer(() => expect(searchProcesses(issuer.issued).holding).toEqual([]));
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
    tried.expire(services, file);
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

    const removed = await run(['connector', 'rm', `login/${agent}`]);
    expect(removed.code).toBe(0);
    const host = tried.tokenUrl.split('/')[0] ?? '';
    const told = tried.revocationUrl === null ? `stay valid at ${host}` : 'The provider has revoked the tokens';
    expect(removed.stderr).toContain(told);
    expect(issuer.isRevoked).toBe(tried.revocationUrl !== null);
    expectNoToken();
  });
});
