import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { currentTokens, ownLogins, tokenEndpoints } from '../agents/own_logins.ts';
import { ALL_HOSTS, type AgentServices, SERVICE_HOSTS, startServices } from '../agents/services.ts';
import {
  loginsInContainers,
  OWN_LOGINS,
  plantCredentials,
  loginOf,
  type TriedInContainer,
} from '../agents/tried_agents.ts';
import { IS_FULL, sampleOf } from '../support/full_counts.ts';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, shellEnvironment, systemPath } from '../support/program.ts';
import { OWN_REGISTRY, Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';

// Each real agent in a container, by each of its logins, with every host reachable and sealed; and where no credential is.

const ANSWER = `answer-${randomBytes(8).toString('hex')}`;
const credentials = plantCredentials();
const own = ownLogins();
const logins = loginsInContainers(IS_FULL);
const agents = [...new Set(logins.map(({ agent }) => agent))];
const homeList = z.object({ homes: z.array(z.object({ volume: z.string(), agent: z.string() })) });
const eventList = z.object({ items: z.array(z.object({ data: z.record(z.string(), z.unknown()) })) });
const imageList = z.object({ images: z.record(z.string(), z.string()) });

let bench: Bench;
let services: AgentServices;
let svc: Svc;
let project: string;
/** The home of the person, with the files of the agents' own logins. */
let person: string;
let environment: Record<string, string>;
/** What svc and the agents have printed. */
const said: string[] = [];
/** Where a credential was found while an agent waited for its model. */
let leaks: string[] = [];

async function run(args: readonly string[], input?: string): Promise<Finished> {
  const ran = await svc.cli(args, {
    cwd: project,
    env: environment,
    ...(input !== undefined && { input }),
  });
  said.push(ran.stdout, ran.stderr);
  return ran;
}

/** All values that nobody but svc and the service may have. */
const planted = (): readonly string[] => [...Object.values(credentials), ...own.flatMap(({ issuer }) => issuer.issued)];

/** Searches the processes, and what the engine says of the containers that run. */
async function searchRunning(): Promise<void> {
  const inspected = await Promise.all((await bench.containersOf(svc)).map((id) => bench.engine.run(['inspect', id])));
  // One that has ended meanwhile is not there any more.
  const containers = inspected.filter(({ code }) => code === 0).map(({ stdout }) => stdout);
  const values = planted();
  leaks.push(...searchProcesses(values).holding);
  for (const value of values) leaks.push(...containers.flatMap((text) => foundIn(text, value)));
}

async function homesOf(agent: string): Promise<readonly string[]> {
  const { homes } = homeList.parse(JSON.parse((await run(['agents', 'homes', '--json'])).stdout));
  const names = homes.filter((home) => home.agent === agent).map(({ volume }) => volume);
  return Promise.all(
    names.map((name) => bench.engine.docker('volume', 'inspect', '--format', '{{.Mountpoint}}', name)),
  );
}

/** Searches everything that stays. */
async function expectNoCredential(agent: string): Promise<void> {
  await searchRunning();
  expect(leaks).toEqual([]);
  const homes = await homesOf(agent);
  const values = planted();
  for (const folder of [...homes, project, person, svc.home]) expect(searchFiles(folder, values).holding).toEqual([]);
  for (const value of values) expect(said.flatMap((text) => foundIn(text, value))).toEqual([]);
}

/** Stores the key, or imports the own login. Gives the exit code. */
async function logIn({ agent, tried }: TriedInContainer): Promise<number | null> {
  if (tried !== null) {
    return (await run(['login', agent, '--stdin'], credentials[loginOf(tried).secret] ?? '')).code;
  }
  const account = own.find((each) => each.agent === agent);
  const file = join(person, account?.file ?? '');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(account?.login(account.issuer)), { mode: 0o600 });
  return (await run(['login', agent, '--import', '--yes'])).code;
}

/** Runs the agent until its model has answered. */
async function talk({ agent, login, args, tried, over }: TriedInContainer, ...flags: readonly string[]): Promise<void> {
  services.reset();
  leaks = [];
  const searches: Promise<void>[] = [];
  services.onAnswer(() => {
    const search = searchRunning();
    searches.push(search);
    return search;
  });
  const ran = await run(['launch', '--base', bench.images.debianBase, '--login', login, ...flags, agent, ...args]);
  const shown = `${ran.stdout}${ran.stderr}`;
  expect(shown).toContain(ANSWER);
  expect(ran.code).toBe(0);
  expect(ran.stderr).toMatch(/\d+ requests, [1-9]\d* with a credential, \d+ refused; svc audit list --session/);
  expect(ran.stderr).not.toContain('svc: warning');
  expect(services.refused).toEqual([]);
  const secret = tried === null ? `account/${agent}` : loginOf(tried).secret;
  expect(new Set(services.answered.map((each) => each.secret))).toEqual(new Set([secret]));
  expect(services.answered.map((each) => each.over)).toContain(over);
  expect(searches.length).toBeGreaterThan(0);
  await Promise.all(searches);
  expect(leaks).toEqual([]);
}

describeContainers('in a container', () => {
  beforeAll(async () => {
    bench = await openBench();
    const ca = await createTestCa();
    const all = Object.defineProperties(currentTokens(own), Object.getOwnPropertyDescriptors(credentials));
    services = await startServices(await ca.issue(SERVICE_HOSTS), all, ANSWER, {
      hosts: ALL_HOSTS,
      tokens: tokenEndpoints(own),
    });
    const resolve = SERVICE_HOSTS.map((host) => `${host}:127.0.0.1:${services.port}`);
    svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve, env: bench.engine.environment });
    project = bench.folder('project');
    person = bench.folder('person');
    environment = {
      ...shellEnvironment(),
      ...bench.engine.environment,
      ...OWN_REGISTRY,
      HOME: person,
      PATH: [join(bench.engine.folder, 'bin'), systemPath()].join(delimiter),
    };
  });
  afterAll(async () => {
    await run(['agents', 'homes', '--forget-all']);
    const { images } = imageList.parse(JSON.parse(readFileSync(join(svc.home, 'agent_images.json'), 'utf8')));
    for (const id of Object.values(images)) await bench.engine.docker('image', 'rm', '--force', id);
    await svc.stop();
    await services.close();
    bench.clear();
  });

  it.each(agents)(
    'svc launch %s answers by each of its logins, sealed and with every host in reach, and holds no credential',
    async (agent) => {
      for (const login of logins.filter((each) => each.agent === agent)) {
        expect(await logIn(login)).toBe(0);
        await expectNoCredential(agent);
        for (const egress of sampleOf(['sealed', 'open'], 1)) await talk(login, `--egress=${egress}`);
        await expectNoCredential(agent);
      }
    },
  );

  it.each(IS_FULL ? own : [])(
    'the own login of $agent is refreshed outside, and stays in svc after the logout in the container',
    async ({ agent, issuer, logout }) => {
      const tried = OWN_LOGINS.find((each) => each.agent === agent);
      if (tried === undefined) throw new Error(`${agent} has no own login`);
      const login = { ...tried, login: 'account', tried: null };
      // The test before has logged in, unless this one runs alone.
      const isIn = issuer.refreshes > 0 || (await logIn(login)) === 0;
      expect(isIn).toBe(true);
      await talk(login);
      expect(issuer.refreshes).toBeGreaterThan(0);
      // A refused request makes the agent refresh by itself: it gets its placeholders again.
      const [path, count] = agent === 'claude' ? ['/v1/messages', 1] : ['/backend-api/wham/accounts/check', 2];
      services.refuseNext(path, count);
      await talk(login, '--egress=sealed');
      const events = eventList.parse(JSON.parse((await run(['audit', 'list', '--json', '--limit', '200'])).stdout));
      const answered = events.items.filter(({ data }) => data['svc.proxy.reason'] === 'answered_locally');
      expect(answered.map(({ data }) => data['svc.connector.fqn'])).toContain(`login/${agent}`);
      await expectNoCredential(agent);
      const base = ['--base', bench.images.debianBase, '--login', 'account', '--egress=sealed'];
      await run(['launch', ...base, agent, ...logout]);
      await expectNoCredential(agent);
      await talk(login, '--egress=sealed');
      expect({ refused: issuer.refused, isRevoked: issuer.isRevoked }).toEqual({ refused: [], isRevoked: false });
      await expectNoCredential(agent);
    },
  );
});
