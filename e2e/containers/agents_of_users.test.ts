import { randomBytes } from 'node:crypto';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rootlessIsThere } from '../../tools/system_parts.mjs';
import { type AgentServices, SERVICE_HOSTS, startServices } from '../agents/services.ts';
import { loginOf, plantCredentials, TRIED } from '../agents/tried_agents.ts';
import { IS_FULL, sampleOf } from '../support/full_counts.ts';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, run, shellEnvironment, systemPath } from '../support/program.ts';
import { OWN_REGISTRY, Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';
import { makePerson } from './other_user.ts';
import { giveImages, podmanOfUser } from './podman_place.ts';
import { asUser, SVC_DIRECTLY } from './run_as.ts';

// The real agents in sealed containers of people who are not root: in the group `docker`, and with podman of their own.

const ANSWER = `answer-${randomBytes(8).toString('hex')}`;
const credentials = plantCredentials();
const HERE = describeContainers === describe && rootlessIsThere();

/** A person with an engine. */
interface Place {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly svc: readonly [string, ...string[]];
  /** The image from which the agents' images are made, as this engine knows it. */
  readonly base: string;
  remove(): Promise<void>;
}

/** Somebody who may use the engine of root. */
async function inDockerGroup(bench: Bench): Promise<Place> {
  const { gid } = statSync(bench.engine.socket);
  const person = await makePerson(join(bench.engine.folder, 'bin'), () => bench.engine.endpoint, [gid]);
  return {
    ...person,
    svc: [...asUser(person.uid, person.groups), ...SVC_DIRECTLY],
    base: bench.images.debianBase,
    remove: () => Promise.resolve(rmSync(person.folder, { recursive: true, force: true })),
  };
}

/** Somebody with podman, which runs everything as that user. */
async function withPodman(bench: Bench): Promise<Place> {
  const place = await podmanOfUser();
  await giveImages(bench.engine, place, { base: bench.images.debianBase });
  return { ...place, base: 'base' };
}

const PLACES = [
  ['in the group docker', inDockerGroup],
  ['with podman', withPodman],
] as const;

describe.skipIf(!HERE).each(sampleOf(PLACES, 1))('a user %s', (_, makePlace) => {
  let bench: Bench;
  let place: Place;
  let env: Readonly<Record<string, string>>;
  let services: AgentServices;
  let svc: Svc;

  const svcThere = (args: readonly string[], input?: string): Promise<Finished> => {
    const [program, ...words] = place.svc;
    return run(program, [...words, ...args], { env, cwd: '/', ...(input !== undefined && { input }) });
  };

  beforeAll(async () => {
    bench = await openBench();
    place = await makePlace(bench);
    env = {
      ...shellEnvironment(),
      ...place.env,
      ...OWN_REGISTRY,
      PATH: [place.env['PATH'] ?? '', systemPath()].join(delimiter),
    };
    const ca = await createTestCa();
    services = await startServices(await ca.issue(SERVICE_HOSTS), credentials, ANSWER);
    const roots = join(place.folder, 'ca.pem');
    writeFileSync(roots, ca.pem);
    svc = await Svc.up({
      home: place.env['SVC_HOME'] ?? '',
      command: [...place.svc, 'up'],
      env,
      upstreamCaFiles: [roots],
      resolve: SERVICE_HOSTS.map((host) => `${host}:127.0.0.1:${services.port}`),
    });
  });
  afterAll(async () => {
    await svcThere(['agents', 'homes', '--forget-all']);
    await svc.stop();
    await services.close();
    await place.remove();
    bench.clear();
  });

  const all = TRIED.map((tried) => ({ ...tried, label: `${tried.agent} by ${tried.login}` }));
  it.each(IS_FULL ? all : all.slice(0, 1))(
    'has $label in a sealed container, without its credential',
    async (tried) => {
      const { agent, login, args, over } = tried;
      const { secret } = loginOf(tried);
      const credential = credentials[secret] ?? '';
      const stored = await svcThere(['login', agent, '--stdin'], credential);
      expect([stored.code, stored.stderr]).toEqual([0, expect.not.stringContaining('error')]);
      services.reset();
      const holding: string[] = [];
      services.onAnswer(() => {
        holding.push(...searchProcesses(credential).holding);
      });
      const flags = ['--egress=sealed', '--no-default-mount', '--base', place.base, '--login', login];
      const ran = await svcThere(['launch', ...flags, agent, ...args]);
      const said = `${ran.stdout}${ran.stderr}`;
      expect(said).toContain(ANSWER);
      expect(ran.code).toBe(0);
      expect(services.refused).toEqual([]);
      expect(new Set(services.answered.map((each) => each.secret))).toEqual(new Set([secret]));
      expect(services.answered.map((each) => each.over)).toContain(over);
      expect(holding).toEqual([]);
      expect(foundIn(said, credential)).toEqual([]);
      expect(searchFiles(place.folder, credential).holding).toEqual([]);
    },
  );
});
