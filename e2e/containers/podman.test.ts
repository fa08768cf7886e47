import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPodman } from '../../sandbox/engine/open_engine.ts';
import { rootlessIsThere } from '../../tools/system_parts.mjs';
import { FakePorts, localServer } from '../mcp/gateway/fake_ports.ts';
import { startHttpGateway } from '../mcp/gateway/http_gateway.ts';
import { modernClient } from '../mcp/gateway/test_clients.ts';
import { ESCAPES } from '../sandbox/attempts.ts';
import { makeOutside } from '../sandbox/outside.ts';
import { variantOf } from '../support/container_images.ts';
import { IS_FULL, ONLY_FULL } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { type Finished, run, runOk } from '../support/program.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';
import { expectNoWayOut, pythonBelow } from './container_escapes.ts';
import { describeEngine, type EngineOnTrial } from './engine_contract.ts';
import { giveImages, type PodmanPlace, podmanOfRoot, podmanOfUser } from './podman_place.ts';

const HOST = 'api.example.test';
const TOKEN = plantSecret();
/** The user of the image's agent; for podman of a user it is another one outside. */
const AGENT_ID = 1000;
/** For what runs with `npm run test:full` only, because each container of podman takes seconds. */
const HERE = describeContainers === describe && rootlessIsThere();

/** An MCP server of the earlier generation that says how it runs, for an image without Python and Node. */
const SERVER = `#!/bin/sh
of() { sed -n "s/^$1:[[:space:]]*//p" /proc/self/status; }
while read -r line; do
  id=$(echo "$line" | sed -n 's/.*"id":\\([0-9]*\\).*/\\1/p')
  [ "$id" ] || continue
  case $line in
  *'"initialize"'*) result='"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"box","version":"1"}' ;;
  *'"tools/list"'*) result='"tools":[{"name":"how","inputSchema":{"type":"object"}}]' ;;
  *'"tools/call"'*)
    text="$(id -u) $HOME $TOKEN $(of CapEff) $(of NoNewPrivs)"
    result="\\"content\\":[{\\"type\\":\\"text\\",\\"text\\":\\"$text\\"}]" ;;
  *) echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":$id,\\"error\\":{\\"code\\":-32601,\\"message\\":\\"Method not found\\"}}"; continue ;;
  esac
  echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":$id,\\"result\\":{$result}}"
done
`;
const BOX = [
  'USER root',
  `RUN echo ${Buffer.from(SERVER).toString('base64')} | base64 -d > /usr/bin/mcp-box && chmod 755 /usr/bin/mcp-box`,
  'ENTRYPOINT ["/usr/bin/mcp-box"]',
];

describe.skipIf(!HERE).each([
  ['root', podmanOfRoot],
  ['another user', podmanOfUser],
])('podman of %s', (who, makePlace) => {
  const PLANS = who === 'another user' ? [''] : ONLY_FULL;
  let bench: Bench;
  let place: PodmanPlace;
  let svc: Svc;
  let upstream: TlsUpstream;

  const svcThere = (...args: string[]): Promise<Finished> => {
    const [program, ...words] = place.svc;
    return run(program, [...words, ...args], { env: place.env, cwd: '/' });
  };
  const launch = (flags: readonly string[], command: readonly string[]): Promise<Finished> =>
    svcThere('launch', '--egress=sealed', '--no-default-mount', '--image', 'agent', ...flags, '--', ...command);
  const containers = async (): Promise<string> => (await place.podman('ps', '--all', '--quiet')).stdout;

  beforeAll(async () => {
    bench = await openBench();
    place = await makePlace();
    const box = IS_FULL ? await variantOf(bench.engine, bench.images.busybox, ...BOX) : bench.images.busybox;
    await giveImages(bench.engine, place, { agent: bench.images.busybox, box });
    const ca = await createTestCa();
    upstream = await startTlsUpstream(await ca.issue([HOST]));
    const roots = join(place.folder, 'ca.pem');
    writeFileSync(roots, ca.pem);
    svc = await Svc.up({
      home: place.env['SVC_HOME'] ?? '',
      command: [...place.svc, 'up'],
      env: place.env,
      upstreamCaFiles: [roots],
      resolve: [`${HOST}:127.0.0.1:${upstream.port}`],
    });
    await svc.secret('user/api', TOKEN);
    await svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
  });
  afterAll(async () => {
    await svc.stop();
    await upstream.close();
    await place.remove();
    bench.clear();
  });

  // Docker keeps it in each run.
  describe.each(ONLY_FULL)('keeps the contract%s', () => {
    let trial: EngineOnTrial;
    beforeAll(async () => {
      const opened = await openPodman(place.callers);
      if (!opened.ok) throw new Error(opened.error.message);
      const folder = join(place.folder, 'contract');
      mkdirSync(folder);
      chmodSync(folder, 0o777);
      trial = { runtime: opened.value, env: place.callers, image: 'agent', folder };
    });
    describeEngine(() => trial);
  });

  it('runs a sealed container whose requests get their credential, and leaves nothing', async () => {
    upstream.reset();
    const done = await launch([], ['/opt/clients/items', `https://${HOST}/items`]);
    expect({ code: done.code, stderr: done.code === 0 ? '' : done.stderr }).toEqual({ code: 0, stderr: '' });
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
    expect((await launch([], ['sh', '-c', 'exit 42'])).code).toBe(42);
    expect(await containers()).toBe('');
  });

  it.each(ONLY_FULL)('has no way out of such a container%s', async () => {
    const outside = await makeOutside(AGENT_ID);
    try {
      const mounts = ['--mount', `${outside.project}:${outside.project}`, '--mount', '/usr:/mnt/usr:ro'];
      expectNoWayOut(await launch(mounts, [...pythonBelow('/mnt'), '-c', ESCAPES, outside.targets]));
    } finally {
      await outside.stop();
    }
    expect(await containers()).toBe('');
  });

  it.each(ONLY_FULL)('runs MCP servers in containers, and ends them with the gateway%s', async () => {
    const home = mkdtempSync(join(place.folder, 'mcp-'));
    const image = await place.podman('inspect', '--type', 'image', '--format', '{{.Id}}', 'box');
    const command = ['docker', 'run', '-i', '--rm', '-e', 'TOKEN', 'agent'];
    const own = {
      server: localServer('own', command, { env: { TOKEN: 'of own' } }),
      consent: 'given' as const,
      missing: [],
      image: `sha256:${image.stdout.trim()}`,
    };
    const boxed = localServer('boxed', ['mcp-box'], { isolation: 'container', env: { TOKEN: 'of boxed' } });
    const ports = new FakePorts([own, boxed]);
    const gateway = await startHttpGateway({ ports, home, env: place.callers, images: { 'mcp-box': 'box' } });
    try {
      const client = await modernClient(gateway.endpointFor(), 'auto', {});
      const how = async (name: string): Promise<string> => (await client.callTool(name)).content[0]?.text ?? '';
      expect(await how('boxed__how')).toBe('65532 /home/mcp of boxed 0000000000000000 1');
      expect(await how('own__how')).toMatch(/^\d+ \S+ of own [0-9a-f]{16} 1$/);
      expect((await containers()).trim().split('\n')).toHaveLength(2);
      await client.close();
    } finally {
      await gateway.stop();
    }
    await expect.poll(containers).toBe('');
  });

  it.each(ONLY_FULL)('keeps a detached one, with only loopback, until it is stopped%s', async () => {
    const started = await launch(['--detach', '--name', 'there'], ['sleep', '600']);
    expect({ code: started.code, stderr: started.code === 0 ? '' : started.stderr }).toEqual({ code: 0, stderr: '' });
    const pid = (await place.podman('inspect', '--format', '{{.State.Pid}}', 'there')).stdout.trim();
    expect(readFileSync(`/proc/${pid}/net/route`, 'utf8').trim().split('\n')).toHaveLength(1);
    expect((await svcThere('sessions', 'list')).stdout).toContain('podman agent');
    expect((await svcThere('sessions', 'stop', 'there')).code).toBe(0);
    expect(await containers()).toBe('');
  });

  it.each(PLANS)('runs a plan and keeps its outputs%s', async () => {
    const folder = join(place.folder, 'tmp', 'plan');
    mkdirSync(folder, { recursive: true });
    const fetch = `/opt/clients/items https://${HOST}/items && mkdir out && echo made > out/file && ln -s file out/link`;
    const plan = `version: 1
name: report
image: agent
steps:
  - id: fetch
    command: [/bin/sh, -c, '${fetch}']
    trust: { effect: read, hosts: [${HOST}], credential: 'vault://user/api' }
    collect: [{ path: /home/agent/out }]
`;
    writeFileSync(join(folder, 'plan.yaml'), plan);
    await runOk('chown', ['-R', '--reference', place.env['SVC_HOME'] ?? '', folder]);
    const file = join(folder, 'plan.yaml');
    const frozen = await svcThere('plan', 'freeze', file);
    expect({ code: frozen.code, stderr: frozen.code === 0 ? '' : frozen.stderr }).toEqual({ code: 0, stderr: '' });
    const done = await svcThere('plan', 'run', file, '--output', join(folder, 'kept'));
    expect({ code: done.code, stderr: done.code === 0 ? '' : done.stderr }).toEqual({ code: 0, stderr: '' });
    expect(readFileSync(join(folder, 'kept/fetch/out/file'), 'utf8')).toBe('made\n');
    expect(await containers()).toBe('');
  });
});
