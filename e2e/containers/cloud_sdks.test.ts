import { chmodSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  bindMintedClouds,
  CLOUD_HOSTS,
  CLOUD_PROGRAMS,
  cloudScript,
  CLOUDS_SAID,
  installCloudClients,
  MORE_CLOUDS_SAID,
  moreCloudsScript,
} from '../support/cloud_sdks.ts';
import { type GitUpstream, startGitUpstream } from '../support/git_upstream.ts';
import { MintingProviders } from '../support/minting_providers.ts';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, ROOT } from '../support/program.ts';
import { verifySigV4 } from '../support/sigv4_verifier.ts';
import { createTestCa } from '../support/test_ca.ts';
import type { SeenRequest } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';

// Values that nobody stores, used by what knows nothing of svc, in a container that has no way out but the proxy. While the agent's
// last program still runs, all that could hold the keys of the sources or a minted value is searched.

const GIT_HOST = 'git.example.test';
/** As GitHub has it: git takes the tokens of an app's installation as the password of this user. */
const GIT_USER = 'x-access-token';
const GIT = 'git -c user.name=Agent -c user.email=agent@example.test';
/** Where Debian, of which the image is made too, has the libraries of Python. */
const PYTHON_LIBRARIES = '/usr/lib/python3/dist-packages';
const hasPython = ['boto3', 'google/auth'].every((name) => existsSync(join(PYTHON_LIBRARIES, name)));
const packages = await installCloudClients();
const isTried = packages !== null && hasPython;
const { aws: AWS, google: GOOGLE, azure: AZURE } = CLOUD_HOSTS;

const SCRIPT = [
  'mkdir said',
  `(${cloudScript('/mnt/programs', '/mnt/packages')}) > said/clouds`,
  `export AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true`,
  `(${moreCloudsScript('/mnt/programs', '/mnt/python')}) > said/more_clouds`,
  `git clone -q https://${GIT_HOST}/project.git project && cd project`,
  `printf 'from an agent\\n' > file && git add file && ${GIT} commit -q -m 'An agent was here'`,
  'git push -q origin HEAD:main && cd ..',
  `git clone -q https://${GIT_HOST}/project.git again && git -C again log --format=%s > said/git`,
  ...[AWS, GOOGLE, AZURE].map((host) => `curl -sSi https://${host}/reflect >> said/reflected`),
  'curl -sS -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI" > said/keys',
  'git config --list --show-origin > said/config; ls -A ~ > said/home; env > said/env',
  'touch done; while [ ! -e stop ]; do sleep 0.1; done',
].join('\n');

let world: ContainerWorld;
let providers: MintingProviders;
let git: GitUpstream;

/** The container of the agent, and its end. */
interface Agent {
  readonly workspace: string;
  readonly container: string;
  end(): Promise<Finished>;
}

/** Starts the agent, and waits until only its last loop runs. */
async function startAgent(): Promise<Agent> {
  const workspace = world.bench.folder('agent');
  // The folder of the packages is for one user only.
  const readable = world.bench.folder('packages');
  cpSync(packages ?? '', readable, { recursive: true });
  chmodSync(readable, 0o755);
  const shown = {
    programs: CLOUD_PROGRAMS,
    packages: readable,
    python: PYTHON_LIBRARIES,
    node_modules: join(ROOT, 'node_modules'),
  };
  const mounts = Object.entries(shown).flatMap(([name, folder]) => ['--mount', `${folder}:/mnt/${name}:ro`]);
  const env = { GIT_TERMINAL_PROMPT: '0' };
  const flags = ['--egress=sealed', '--mount', `${workspace}:/home/agent/workspace`, ...mounts];
  const launched = world.launch(flags, ['sh', '-c', `set -e\n${SCRIPT}`], { env });
  const early = launched.then(({ stderr }) => Promise.reject(new Error(`the agent ended: ${stderr}`)));
  await Promise.race([waitFor('the agent to be done', () => existsSync(join(workspace, 'done'))), early]);
  const [container = ''] = await world.bench.containersOf(world.svc);
  const end = async (): Promise<Finished> => {
    writeFileSync(join(workspace, 'stop'), '');
    return launched;
  };
  return { workspace, container, end };
}

/** What a request had, and whether it is of a mint. */
function credentialOf({ method, target, serverName, body, ...request }: SeenRequest): unknown {
  if (serverName !== AWS) return [serverName, ...request.headers('authorization')];
  const headers = (name: string): string[] => request.headers(name);
  const keys = new Map([...providers.keySets].map(([id, { secret }]) => [id, secret]));
  const verdict = verifySigV4({ method, target, headers, body: body.data }, keys, Date.now());
  const token = verdict.ok ? providers.keySets.get(verdict.accessKeyId)?.token : null;
  return [serverName, request.headers('x-amz-security-token')[0] === token];
}

describeContainers('in a container that has no key and no file', () => {
  beforeAll(async () => {
    providers = await MintingProviders.start();
    const ca = await createTestCa();
    git = await startGitUpstream(await ca.issue([GIT_HOST]), GIT_USER, () => providers.issued.github.at(-1) ?? 'none');
    const resolve = [`${GIT_HOST}:127.0.0.1:${git.port}`];
    world = await startContainerWorld(Object.values(CLOUD_HOSTS), { upstreamCaFiles: [ca.file], resolve });
    await providers.addSources(world.svc);
    await bindMintedClouds(world.svc, world.upstream);
    const credential = { username: GIT_USER, credential_ref: 'vault://ci/github' };
    await world.svc.binding({ host: GIT_HOST, scheme: 'basic', ...credential });
  });
  afterAll(async () => {
    await world.stop();
    await git.close();
    await providers.close();
  });

  describe.skipIf(!isTried)('the SDKs of clouds, and git with a token of a GitHub App', () => {
    let agent: Agent;
    beforeAll(async () => {
      agent = await startAgent();
    });
    afterAll(() => agent.end());
    const said = (name: string): string => readFileSync(join(agent.workspace, 'said', name), 'utf8');

    it('work with an empty home and with values that were minted once', () => {
      expect([said('clouds'), said('more_clouds'), said('git')]).toEqual([
        CLOUDS_SAID,
        MORE_CLOUDS_SAID,
        'An agent was here\n',
      ]);
      expect(git.git('log', '--format=%s', 'main')).toBe('An agent was here\n');
      const { google, azure, github } = providers.issued;
      expect([providers.keySets.size, google.length, azure.length, github.length]).toEqual([1, 1, 1, 1]);
      expect(providers.askedOfGitHub).toEqual([{ repositories: ['project'], permissions: { contents: 'write' } }]);
      expect(providers.values).toHaveLength(5);
      const [toAws, toGoogle, toAzure] = [
        [AWS, true],
        [GOOGLE, `Bearer ${google[0]}`],
        [AZURE, `Bearer ${azure[0]}`],
      ];
      const first = [toAws, toGoogle, toGoogle, toAzure, toAzure];
      const more = [toAws, toAws, toGoogle, toGoogle];
      const seen = world.upstream.requests.map((request) => credentialOf(request));
      expect(seen).toEqual([...first, ...more, toAws, toGoogle, toAzure]);
    });

    it('leave neither a key nor a minted value in the container, nor in what the engine knows about it', async () => {
      const { engine, images } = world.bench;
      const secrets = [...providers.keys, ...providers.values];
      for (const args of [
        ['inspect', agent.container],
        ['image', 'inspect', images.debian],
        ['top', agent.container, '-eo', 'pid,args'],
        ['logs', agent.container],
        ['exec', '--user', '0', agent.container, 'ps', 'auxwwwe'],
        ['exec', '--user', '0', agent.container, 'sh', '-c', 'cat /proc/[0-9]*/environ /run/svc/* 2>/dev/null; true'],
      ]) {
        const { code, stdout, stderr } = await engine.run(args);
        expect([code, secrets.flatMap((secret) => foundIn(stdout + stderr, secret))]).toEqual([0, []]);
      }
      const inContainer = searchFiles(await world.bench.exportChanges(agent.container), secrets);
      expect(inContainer.searched).toBeGreaterThan(0);
      expect(inContainer.holding).toEqual([]);
      const ofAgent = searchFiles(agent.workspace, secrets);
      expect(ofAgent.searched).toBeGreaterThan(10);
      expect(ofAgent.holding).toEqual([]);
    });

    it('leave them in no process, file and log of svc', async () => {
      const { svc } = world;
      const secrets = [...providers.keys, ...providers.values];
      expect(searchProcesses(secrets).holding).toEqual([]);
      const ofSvc = searchFiles(svc.home, secrets);
      expect(ofSvc.searched).toBeGreaterThan(10);
      expect(ofSvc.holding).toEqual([]);
      expect(secrets.flatMap((secret) => foundIn(svc.output, secret))).toEqual([]);
      const events = await svc.events();
      const minted = events.filter(({ type }) => type === 'control.secret.minted');
      expect(
        minted.map(({ data }) => String(data['svc.control.credential_ref'])).toSorted((a, b) => a.localeCompare(b)),
      ).toEqual(['aws', 'azure', 'github', 'google'].map((name) => `vault://ci/${name}`));
      expect(secrets.flatMap((secret) => foundIn(JSON.stringify(events), secret))).toEqual([]);
    });
  });

  it.each(['sealed', 'open'])('the SDKs ask the endpoints of their own container only (%s egress)', async (egress) => {
    const metadata = '$GCE_METADATA_HOST/computeMetadata/v1/instance/service-accounts/default/token';
    const status = `curl -s -o /dev/null -w '%{http_code} '`;
    const script = [
      `${status} http://${metadata}`,
      `${status} -H 'Metadata-Flavor: Google' -H 'X-Forwarded-For: 10.0.0.1' http://${metadata}`,
      `${status} -H 'Metadata-Flavor: Google' http://${metadata}`,
      `${status} "$IDENTITY_ENDPOINT?api-version=2019-08-01&resource=a"`,
      `${status} -H "X-IDENTITY-HEADER: other" "$IDENTITY_ENDPOINT?api-version=2019-08-01&resource=a"`,
      `${status} -H "X-IDENTITY-HEADER: $IDENTITY_HEADER" "$IDENTITY_ENDPOINT?api-version=2019-08-01&resource=a"`,
      `${status} "$AWS_CONTAINER_CREDENTIALS_FULL_URI"`,
      `${status} -H "Authorization: $AWS_CONTAINER_AUTHORIZATION_TOKEN" "$AWS_CONTAINER_CREDENTIALS_FULL_URI"`,
    ].join('; ');
    const ran = await world.launch([`--egress=${egress}`], ['sh', '-c', script]);
    expect(ran.stdout.trim()).toBe('403 403 200 401 401 200 401 200');
  });
});
