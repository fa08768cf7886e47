import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { IS_FULL } from '../support/full_counts.ts';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, ROOT, shellEnvironment } from '../support/program.ts';
import type { Svc } from '../support/svc.ts';
import { type AgentsWorld, startAgentsWorld } from './agents_world.ts';
import { INSTALL_COMMAND, pinnedHash, pinnedVersion } from './installed_agents.ts';
import type { AgentServices } from './services.ts';
import { loginOf, loginsInContainers, OWN_LOGINS, plantCredentials, profileOf, TRIED } from './tried_agents.ts';
import { agentsTable, REFRESH_COMMAND, rowOf, tableOf, withTable } from './table.ts';

// The real agents, each started by its name, against services that accept only the real credential.

const credentials = plantCredentials();
const ANSWER = `answer-${randomBytes(8).toString('hex')}`;
const PAGE = join(ROOT, 'docs', 'guides', 'agents.md');
const passed = new Set<string>();

let world: AgentsWorld | null;
let programs: string | null = null;
let services: AgentServices;
let svc: Svc;
let scratch: string;

beforeAll(async () => {
  world = await startAgentsWorld(credentials, ANSWER);
  if (world !== null) ({ programs, services, svc, scratch } = world);
});
afterAll(() => world?.stop());

/** In full, all of them. */
const SAMPLE = ['claude by key', 'codex by key'];
const LABELLED = TRIED.map((tried) => ({ ...tried, label: `${tried.agent} by ${tried.login}` }));

describe.each(LABELLED.filter(({ label }) => IS_FULL || SAMPLE.includes(label)))('svc $label', (tried) => {
  const { agent, login, args } = tried;
  const { secret, variable } = loginOf(tried);
  const credential = credentials[secret] ?? '';

  it('answers, and has a placeholder in place of the credential', async ({ skip }) => {
    if (programs === null) skip(`the agents are not installed: ${INSTALL_COMMAND}`);
    const home = join(scratch, `${agent}-${login}`);
    const folder = join(home, 'work');
    mkdirSync(folder, { recursive: true });
    const env = { ...shellEnvironment(), HOME: home, TMPDIR: home, PATH: `${programs}:${process.env['PATH'] ?? ''}` };

    const stored = await svc.cli(['login', agent, '--stdin'], { env, input: credential });
    // The subscription is a second account of the host that Claude Code's key is for.
    const warning = stored.stderr.replace(/^warning: .* the host gets a second account\n$/, 'second account');
    expect([stored.code, warning]).toEqual([0, login === 'subscription' ? 'second account' : '']);
    const binding = z
      .object({ items: z.array(z.object({ sentinel: z.object({ env: z.string(), value: z.string() }) })) })
      .parse(JSON.parse(await svc.ok(['binding', 'list', '--json'])));
    const placeholder = binding.items.find(({ sentinel }) => sentinel.env === variable)?.sentinel.value ?? '';
    expect(placeholder.length).toBeGreaterThan(20);

    // The search runs while the agent waits for the model's answer.
    const searches: { readonly secret: number; readonly placeholder: number }[] = [];
    services.reset();
    services.onAnswer(() => {
      const [held, replaced] = [searchProcesses(credential), searchProcesses(placeholder)];
      searches.push({ secret: held.holding.length, placeholder: replaced.holding.length });
    });
    const ran: Finished = await svc.cli(['run', '--login', login, agent, ...args], { env, cwd: folder });
    const said = `${ran.stdout}${ran.stderr}`;
    expect(said).toContain(ANSWER);
    expect(ran.code).toBe(0);
    expect(ran.stderr).toMatch(/^svc: (?:sandbox: .* has no network but the proxy|no sandbox: .*)$/m);
    expect(ran.stderr).toMatch(
      /\d+ requests, [1-9]\d* with a credential, \d+ refused; svc audit list --session ses_\w+\n/,
    );

    // No advice to bind a host that does not need the credential.
    expect(ran.stderr).not.toContain('svc: bind ');
    expect(services.refused).toEqual([]);
    expect(new Set(services.answered.map((each) => each.secret))).toEqual(new Set([secret]));
    expect(services.answered.map(({ over }) => over)).toContain(tried.over);
    expect(searches.length).toBeGreaterThan(0);
    for (const search of searches) {
      expect(search.secret).toBe(0);
      expect(search.placeholder).toBeGreaterThan(0);
    }
    const files = searchFiles(home, credential);
    expect(files.searched).toBeGreaterThan(0);
    expect(files.holding).toEqual([]);
    expect(foundIn(said, credential)).toEqual([]);
    expect(searchFiles(svc.home, credential).holding).toEqual([]);
    passed.add(`${agent} ${login}`);
  });
});

describe('the profiles', () => {
  it('name the versions that are tested here', () => {
    for (const { agent, npm } of TRIED) expect(profileOf(agent).tried).toBe(pinnedVersion(npm));
  });

  it('name the hashes of the packages that are tested here', () => {
    for (const { agent, npm } of TRIED) {
      const { integrity } = profileOf(agent).container;
      expect(Object.keys(integrity)).toContain(npm);
      for (const [name, hash] of Object.entries(integrity)) expect(pinnedHash(name)).toBe(hash);
    }
  });

  it(`are in the table of docs/guides/agents.md as tested; refresh it with ${REFRESH_COMMAND}`, () => {
    const inContainers = new Set(loginsInContainers(true).map(({ agent, login }) => `${agent} ${login}`));
    const rows = [
      ...TRIED.map((tried) => ({ ...tried, credential: loginOf(tried).title })),
      ...OWN_LOGINS.map((own) => ({ ...own, login: 'account', credential: profileOf(own.agent).account?.title ?? '' })),
    ].map((row) =>
      rowOf({
        ...row,
        title: profileOf(row.agent).title,
        inContainer: inContainers.has(`${row.agent} ${row.login}`),
      }),
    );
    if (process.env['AGENTS_MD'] === 'write' && passed.size === TRIED.length) {
      writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), agentsTable(rows)));
    }
    expect(tableOf(readFileSync(PAGE, 'utf8'))).toBe(agentsTable(rows));
  });
});
