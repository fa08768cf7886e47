import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectItemsCalls } from '../matrix/http_clients.ts';
import {
  credentialsSeen,
  forgetRequests,
  HOSTS,
  ITEMS,
  type MatrixWorld,
  type ServiceName,
  startMatrixWorld,
} from '../matrix/world.ts';
import { CLIENTS_FOLDER } from '../support/container_images.ts';
import { countOf, sampleOf } from '../support/full_counts.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';

// Third-party programs, each in a container as an agent runs it, with a credential that stays outside.

/** The variables that the container's start script sets for clients that read one. */
const WITHOUT_CA_VARIABLES =
  'unset SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE GIT_SSL_CAINFO NODE_EXTRA_CA_CERTS AWS_CA_BUNDLE; exec "$@"';
const CURL = `curl -sS -o /dev/null -w '%{http_code} ' "$1?page=1" && curl -sS -w ' %{http_code}' --json '{"title":"a"}' "$1"`;
const GIT_SETTINGS = ['-c', 'user.name=Agent', '-c', 'user.email=agent@example.test'];
let bench: Bench;
let world: MatrixWorld;

/** Runs a command in a container. It must succeed, and each of its requests must carry the credential. */
async function use(service: ServiceName, flags: readonly string[], command: readonly string[], cwd?: string) {
  forgetRequests(world);
  const done = await bench.launch(world.svc, flags, command, {
    ...(cwd !== undefined && { cwd }),
    env: { GIT_TERMINAL_PROMPT: '0' },
  });
  expect({ code: done.code, stderr: done.code === 0 ? '' : done.stderr }).toEqual({ code: 0, stderr: '' });
  const { seen, wanted } = credentialsSeen(world, service);
  expect(seen.length).toBeGreaterThan(0);
  for (const credential of seen) expect(credential).toEqual(wanted);
  return done.stdout;
}

const program = (name: string): string => `${CLIENTS_FOLDER}/${name}`;
const java = (client: string): string[] => ['java', '-cp', CLIENTS_FOLDER, 'Items', client, ITEMS];
const imageFor = ([name]: readonly string[]): string =>
  name === 'java' ? bench.images.debianJava : bench.images.debian;

describeContainers('in a container', () => {
  beforeAll(async () => {
    bench = await openBench();
    world = await startMatrixWorld({ env: bench.engine.environment });
  });
  afterAll(async () => {
    await world.stop();
    bench.clear();
  });

  const clients: [string, string[], string[]][] = [
    [
      'curl, by the trust store of the system',
      [],
      ['sh', '-c', WITHOUT_CA_VARIABLES, 'sh', 'sh', '-c', CURL, 'sh', ITEMS],
    ],
    ['node fetch', [], ['node', program('items_fetch.mjs'), ITEMS]],
    ['go', [], [program('items'), ITEMS]],
    ['python requests, sealed', ['--egress=sealed'], ['python3', program('items_requests.py'), ITEMS]],
    ['java, sealed', ['--egress=sealed', '--relay'], java('HttpClient')],
    ['curl', [], ['sh', '-c', CURL, 'sh', ITEMS]],
    ['python requests', [], ['python3', program('items_requests.py'), ITEMS]],
    ['python urllib', [], ['python3', program('items_urllib.py'), ITEMS]],
    ['go, by the trust store of the system', [], ['sh', '-c', WITHOUT_CA_VARIABLES, 'sh', program('items'), ITEMS]],
    ['java, by --relay: HttpClient', ['--relay'], java('HttpClient')],
    ['java, by --relay: HttpsURLConnection', ['--relay'], java('HttpsURLConnection')],
  ];
  it.each(sampleOf(clients, 5))(
    '%s sends GET and POST with a bearer token that it does not hold',
    async (_, flags, command) => {
      expectItemsCalls(world, await use('items', ['--image', imageFor(command), ...flags], command));
    },
  );

  const inBusybox: [string, string[]][] = [
    ['go, by the trust store of the system', ['sh', '-c', WITHOUT_CA_VARIABLES, 'sh', program('items'), ITEMS]],
    ['go', [program('items'), ITEMS]],
  ];
  it.each(sampleOf(inBusybox, 1))('%s sends GET and POST in a BusyBox image', async (_, command) => {
    expectItemsCalls(world, await use('items', ['--image', bench.images.busybox], command));
  });

  it('java without --relay fails and sends nothing', async () => {
    forgetRequests(world);
    const done = await bench.launch(
      world.svc,
      ['--image', bench.images.debianJava, '--egress=sealed'],
      java('HttpClient'),
    );
    expect(done.code).not.toBe(0);
    expect(world.services.items.requests).toEqual([]);
  });

  it('git clones and pushes with basic authentication', async () => {
    const folder = bench.folder('git');
    const remote = `https://${HOSTS.git}/project.git`;
    const script = `
      set -e
      git clone -q ${remote} .
      head -c 3000000 /dev/urandom > large.bin
      git add large.bin
      git ${GIT_SETTINGS.join(' ')} commit -q -m 'An agent was here'
      git push -q origin HEAD:main
      git clone -q ${remote} again && git -C again log --format=%s`;
    expect(await use('git', [], ['sh', '-c', script], folder)).toBe('An agent was here\n');
    expect(world.git.git('log', '--format=%s', 'main')).toBe('An agent was here\n');
  });

  it('the AWS CLI puts, lists, gets and removes with placeholder keys', async () => {
    const folder = bench.folder('aws');
    const large = randomBytes(10_000_000);
    writeFileSync(join(folder, 'large.bin'), large);
    const script = `
      set -e
      export AWS_ACCESS_KEY_ID=AKIAPLACEHOLDER00000 AWS_SECRET_ACCESS_KEY=placeholder AWS_REGION=us-east-1
      export AWS_EC2_METADATA_DISABLED=true AWS_MAX_ATTEMPTS=1 AWS_PAGER= AWS_CONFIG_FILE=$PWD/config
      printf '[default]\\ns3 =\\n  addressing_style = path\\n' > config
      s3() { aws --endpoint-url https://${HOSTS.s3} s3 "$@"; }
      s3 cp --quiet large.bin s3://bucket/cli/large.bin
      s3 ls s3://bucket/cli/
      s3 cp --quiet s3://bucket/cli/large.bin again.bin
      s3 rm --quiet s3://bucket/cli/large.bin`;
    expect(await use('s3', [], ['sh', '-c', script], folder)).toContain(` ${large.length} large.bin`);
    expect(readFileSync(join(folder, 'again.bin')).equals(large)).toBe(true);
    for (const { text } of world.s3.tls.requests) expect(text).not.toContain('AKIAPLACEHOLDER');
  });

  it('two containers have separate sessions: the token of one is refused for the other', async () => {
    const first = await bench.launch(world.svc, ['--detach', '--name', 'first'], ['sleep', '600']);
    expect(first.code).toBe(0);
    const variables = await bench.engine.docker('inspect', '--format', '{{json .Config.Env}}', 'first');
    const stolen = /HTTPS_PROXY=([^"]+)/.exec(variables)?.[1] ?? '';
    const ask = `curl -s -o /dev/null -w '%{http_connect}' -x "$1" ${ITEMS}; true`;
    const mixed = stolen.replace(/\/\/[^:]*:/, '//$SVC_SESSION_ID:');
    const done = await bench.launch(
      world.svc,
      [],
      ['sh', '-c', `${ask}; echo; ${ask.replace('"$1"', `"${mixed}"`)}`, 'sh', stolen],
    );
    const answers = done.stdout.trim().split('\n');
    expect(answers).toEqual(['407', '407']);
    await world.svc.ok(['sessions', 'stop', 'first'], { env: bench.engine.environment });
  });

  it('recorded one event for each request with a credential', async () => {
    const events = (await world.svc.events()).filter(({ type }) => type === 'sandbox.proxy.binding_injected');
    expect(events.length).toBeGreaterThan(countOf(30, 20));
    expect(new Set(events.map(({ session_id }) => session_id)).size).toBeGreaterThan(countOf(10, 6));
    await world.svc.ok(['audit', 'verify']);
  });
});
