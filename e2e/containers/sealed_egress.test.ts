import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ESCAPES } from '../sandbox/attempts.ts';
import { makeOutside } from '../sandbox/outside.ts';
import { sampleOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { type Finished, SVC } from '../support/program.ts';
import type { Event } from '../support/svc.ts';
import { runAtTerminal } from '../support/terminal.ts';
import { expectNoWayOut, WITH_A_NETWORK } from './container_escapes.ts';
import { type ContainerWorld, describeContainers, startContainerWorld } from './container_world.ts';

const HOST = 'api.example.test';
const PACKAGES = 'packages.example.test';
const TELEMETRY = 'telemetry.example.test';
/** Hosts on the list of those that are not intercepted; a session names the first. */
const PINNED = 'pinned.example.test';
const UNNAMED = 'unnamed.example.test';
const TOKEN = plantSecret();
const ATTACK = readFileSync(join(import.meta.dirname, 'programs', 'attack.py'), 'utf8');
const UNSEALED = `{"session_id":"$SVC_SESSION_ID","reference":"vault://user/api","env":"X","host":"${HOST}","reason":"r"}`;
/** The user of the images' agent. */
const AGENT_ID = 1000;
const METADATA = '169.254.169.254';
interface Target {
  readonly tcp: [string, number][];
  readonly udp: [string, number][];
  readonly unix: string[];
  readonly names: string[];
}

/** Listeners on every address of this machine, like those of its services, and what reached them. */
interface HostServices {
  readonly tcpPort: number;
  readonly udpPort: number;
  readonly abstract: string;
  readonly reached: string[];
  close(): void;
}

const addressOf = z.object({ port: z.number() });

async function startHostServices(): Promise<HostServices> {
  const reached: string[] = [];
  const listening = async (server: Server, where: object): Promise<Server> => {
    server.on('connection', (socket) => {
      reached.push('tcp');
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(where, resolve));
    return server;
  };
  const tcp = await listening(createServer(), { host: '::', port: 0 });
  const abstract = `svc-e2e-${process.pid}-${Date.now()}`;
  const unix = await listening(createServer(), { path: `\0${abstract}` });
  const udp: Socket = createSocket('udp4', () => reached.push('udp'));
  await new Promise<void>((resolve) => udp.bind(0, '0.0.0.0', resolve));
  return {
    tcpPort: addressOf.parse(tcp.address()).port,
    udpPort: udp.address().port,
    abstract,
    reached,
    close: () => [tcp, unix, udp].forEach((each) => each.close()),
  };
}

/** Every address of this machine except loopback. */
function hostAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
    .map(({ address }) => address);
}

const results = z.record(z.string(), z.string());
let world: ContainerWorld;
let services: HostServices;
let neighbour: { id: string; address: string };
let targets: Target;

async function attackFrom(flags: readonly string[]): Promise<Record<string, string>> {
  const done = await world.launch(flags, ['python3', '-c', ATTACK, JSON.stringify(targets)]);
  if (done.code !== 0) throw new Error(`the attack did not run: ${done.stdout}${done.stderr}`);
  return results.parse(JSON.parse(done.stdout));
}

/** Another container on the engine's own network, which answers on port 80. */
async function startNeighbour(): Promise<{ id: string; address: string }> {
  const { engine, images } = world.bench;
  const serve = ['busybox', 'httpd', '-f', '-p', '80', '-h', '/tmp'];
  const id = await engine.docker('run', '--detach', images.busyboxBase, ...serve);
  return { id, address: await engine.docker('inspect', '--format', '{{.NetworkSettings.IPAddress}}', id) };
}

const STATUS = `curl -s -o /dev/null -w '%{http_connect}.%{http_code} '`;
const ASK_EACH = `for host in "$@"; do ${STATUS} "https://$host/"; done`;

/** A command that prints, for each host, the status of the tunnel and that of a request in it. */
function askEach(...hosts: readonly string[]): string[] {
  return ['sh', '-c', `${ASK_EACH}; true`, 'sh', ...hosts];
}

/** The same, and then for the hosts that are not intercepted, by a client that trusts only their own roots. */
function askPinned(roots: string, ...hosts: readonly string[]): string[] {
  const pinned = [PINNED, UNNAMED].map((host) => `${STATUS} --cacert /tmp/own.pem https://${host}/secret-path`);
  const script = `printf '%s' "$1" > /tmp/own.pem; shift; ${ASK_EACH}; ${pinned.join('; ')}; true`;
  return ['sh', '-c', script, 'sh', roots, ...hosts];
}

describeContainers('sealed egress', () => {
  beforeAll(async () => {
    world = await startContainerWorld([HOST, PACKAGES, TELEMETRY, PINNED, UNNAMED]);
    services = await startHostServices();
    neighbour = await startNeighbour();
    const gateway = await world.bench.engine.docker(
      'inspect',
      '--format',
      '{{.NetworkSettings.Gateway}}',
      neighbour.id,
    );
    const addresses = [...new Set([gateway, ...hostAddresses()])];
    const ports = [services.tcpPort, ...[world.svc.runFile.proxy_url, world.svc.runFile.control_url].map(portOf)];
    targets = {
      tcp: [
        ...addresses.flatMap((address) => ports.map((port): [string, number] => [address, port])),
        ...ports.map((port): [string, number] => ['127.0.0.1', port]),
        ['127.0.0.1', world.upstream.port],
        ['::1', services.tcpPort],
        [neighbour.address, 80],
        [METADATA, 80],
        ['fd00:ec2::254', 80],
      ],
      udp: addresses
        .filter((address) => !address.includes(':'))
        .flatMap((address) => [
          [address, services.udpPort],
          [address, 53],
        ]),
      unix: [services.abstract],
      names: [HOST, 'exfiltrated.attacker.example', 'localhost.attacker.example'],
    };
    await world.svc.secret('user/api', TOKEN);
    await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://user/api' });
  });
  afterAll(async () => {
    await world.bench.engine.docker('rm', '--force', neighbour.id);
    services.close();
    await world.stop();
  });

  it.each(['sealed', 'open'])('has no way out of a container, whatever its network is: %s', async (egress) => {
    const outside = await makeOutside(AGENT_ID);
    try {
      const flags = [`--egress=${egress}`, '--mount', `${outside.project}:${outside.project}`];
      const done = await world.launch(flags, ['python3', '-c', ESCAPES, outside.targets]);
      expectNoWayOut(done, egress === 'open' ? WITH_A_NETWORK : []);
    } finally {
      await outside.stop();
    }
  });

  describe('the hosts that it reaches', () => {
    it('are the bound and the allowed ones, with the credentials of the bindings; its last line names the others, and svc allow --from-session allows what a person picks; those of svc tunnel only if it names them, unread', async () => {
      const cwd = world.bench.folder('learning');
      const hosts = [HOST, PACKAGES, PACKAGES, TELEMETRY];
      world.upstream.reset();
      const first = await world.launch(['--egress=sealed'], askEach(...hosts), { cwd });
      expect(first).toMatchObject({ code: 0, stdout: '200.200 403.000 403.000 403.000 ' });
      expect(world.upstream.requests.map((request) => request.headers('authorization'))).toEqual([[`Bearer ${TOKEN}`]]);
      const line = `svc: refused 2 hosts that the agent chose: ${PACKAGES} (2), ${TELEMETRY} (1). To allow some of them here: svc allow --from-session `;
      expect(first.stderr).toContain(line);
      const session = /--from-session (ses_[0-9a-z]{26}) --folder \S+\n/.exec(first.stderr)?.[1] ?? '';
      const events = (await world.svc.events()).filter(({ session_id: of }) => of === session);
      const refused = events.filter(({ data }) => data['svc.proxy.reason'] === 'egress_host_not_allowed');
      expect(refused.map(({ type }) => type)).toEqual(Array.from({ length: 3 }, () => 'sandbox.proxy.trust_denied'));

      const listed = await world.svc.ok(['allow', '--from-session', session, '--json'], { cwd });
      expect(JSON.parse(listed)).toMatchObject({
        items: [
          { host: PACKAGES, refused: 2, passed: 0 },
          { host: TELEMETRY, refused: 1, passed: 0 },
        ],
      });
      const steps = [{ expect: 'Allow which' }, { type: '1\r' }];
      const picked = await runAtTerminal(steps, [SVC, 'allow', '--from-session', session], {
        cwd,
        env: { SVC_HOME: world.svc.home },
      });
      expect(picked).toMatchObject({ code: 0, missed: null });

      const second = await world.launch(['--egress=sealed'], askEach(...hosts), { cwd });
      expect(second.stdout).toBe('200.200 200.200 200.200 403.000 ');
      for (const host of [PINNED, UNNAMED]) await world.svc.ok(['tunnel', 'add', host]);
      const allowed = ['--egress=sealed', '--allow', TELEMETRY, '--allow', PINNED];
      const command = askPinned(readFileSync(world.ca.file, 'utf8'), ...hosts);
      const elsewhere = await world.launch(allowed, command, { cwd: world.bench.folder('elsewhere') });
      expect(elsewhere.stdout).toBe('200.200 403.000 403.000 200.200 200.200 403.000 ');
      expect(world.upstream.last().headers('authorization')).toEqual([]);
      const carried = async (): Promise<Event[]> =>
        (await world.svc.events()).filter(
          ({ session_id: of, data }) =>
            of !== session && [PINNED, UNNAMED].some((host) => host === data['svc.proxy.upstream.host']),
        );
      const outcomes = async (): Promise<string[]> =>
        (await carried())
          .map(({ data }) => `${String(data['svc.proxy.upstream.host'])} ${String(data['svc.proxy.reason'])}`)
          .toSorted();
      // A tunnel may be seen to end after the next request.
      await expect
        .poll(outcomes)
        .toEqual([`${PINNED} tunnel_closed`, `${PINNED} tunnel_opened`, `${UNNAMED} egress_host_not_allowed`]);
      expect(JSON.stringify(await carried())).not.toContain('secret-path');
    });

    it('are all public ones with sealed,public, which has no other network either', async () => {
      const ask = ['sh', '-c', `${ASK_EACH}; wc -l < /proc/net/route`, 'sh', PACKAGES, TELEMETRY];
      const done = await world.launch(['--egress=sealed,public'], ask);
      expect(done).toMatchObject({ code: 0, stdout: '200.200 200.200 1\n', stderr: '' });
    });

    it('are not widened from inside: its token opens no list, and the list is in no folder of the container', async () => {
      const cwd = world.bench.folder('inside');
      const script = `printf '{"version":1,"folders":{"/":["${TELEMETRY}"]}}' > allowed_hosts.json; mkdir -p .svc && cp allowed_hosts.json .svc/
        curl -s -o /dev/null -w '%{http_code} ' --noproxy '*' --json '{"allowed_hosts":["${TELEMETRY}"]}' -H "Authorization: Bearer $SVC_TOKEN" "$SVC_URL/v1/sandbox-proxy/sessions"
        curl -s -o /dev/null -w '%{http_connect} ' "https://${TELEMETRY}/"`;
      const done = await world.launch(['--egress=sealed'], ['sh', '-c', `${script}; true`], { cwd });
      expect(done.stdout).toMatch(/^40[13] 403 $/);
      const next = await world.launch(['--egress=sealed'], askEach(TELEMETRY), { cwd });
      expect(next.stdout).toBe('403.000 ');
    });
  });

  describe('is shown to matter: from an open container', () => {
    let seen: Record<string, string>;
    let reached: string[];
    beforeAll(async () => {
      seen = await attackFrom(['--egress=open']);
      reached = Object.keys(seen).filter((attempt) => seen[attempt] === 'reached');
    });

    it('the same attack reaches the host', () => {
      expect(reached.filter((attempt) => attempt.endsWith(` ${services.tcpPort}`)).length).toBeGreaterThan(0);
      expect(services.reached).toEqual(expect.arrayContaining(['tcp', 'udp']));
    });

    it('the same attack reaches another container, if the engine lets containers talk at all', async () => {
      const { engine, images } = world.bench;
      const plain = ['run', '--rm', images.busyboxBase, 'nc', '-w', '2', neighbour.address, '80'];
      const talk = (await engine.run(plain)).code === 0;
      expect(reached.includes(`tcp ${neighbour.address} 80`)).toBe(talk);
    });

    it("even then, neither the host's proxy nor its control plane is reached", () => {
      const ports = [world.svc.runFile.proxy_url, world.svc.runFile.control_url].map(portOf);
      const attempts = Object.keys(seen).filter((attempt) => ports.some((port) => attempt.endsWith(` ${port}`)));
      expect(attempts.length).toBeGreaterThan(3);
      expect(attempts.filter((attempt) => seen[attempt] === 'reached')).toEqual([]);
    });
  });

  describe('from inside', () => {
    let seen: Record<string, string>;
    beforeAll(async () => {
      services.reached.length = 0;
      seen = await attackFrom(['--egress=sealed']);
    });

    it('reaches no port of the host, of another container or of the metadata address, by IPv4 or IPv6', () => {
      const tcp = Object.entries(seen).filter(([attempt]) => attempt.startsWith('tcp '));
      expect(tcp.length).toBe(targets.tcp.length);
      for (const [attempt, result] of tcp)
        expect(`${attempt}: ${result}`).toMatch(/unreachable|refused|cannot assign/i);
    });

    it('sends no datagram, to the port of DNS or another', () => {
      const udp = Object.entries(seen).filter(([attempt]) => attempt.startsWith('udp '));
      expect(udp.length).toBeGreaterThan(1);
      for (const [attempt, result] of udp) expect(`${attempt}: ${result}`).toMatch(/unreachable/i);
    });

    it('resolves no name', () => {
      const names = Object.entries(seen).filter(([attempt]) => attempt.startsWith('name '));
      expect(names.length).toBe(3);
      for (const [attempt, result] of names) expect(`${attempt}: ${result}`).toMatch(/gaierror/);
    });

    it('has only the loopback interface and no route', () => {
      expect(seen).toMatchObject({ routes: '0' });
      expect(
        seen['interfaces']
          ?.split(' ')
          .filter((name) => !/^(lo|tunl0|sit0|ip6tnl0|gre0|erspan0|ip_vti0|ip6_vti0|gretap0|ip6gre0)$/.test(name)),
      ).toEqual([]);
    });

    it('cannot open a raw socket, a socket to the hypervisor, a namespace or an abstract socket of the host', () => {
      for (const attempt of ['raw packets', 'raw ip', 'vsock host', 'new network namespace', 'new user namespace']) {
        expect(`${attempt}: ${seen[attempt]}`).toMatch(/PermissionError|not permitted|not supported/);
      }
      expect(seen['network namespace of process 1']).toMatch(/PermissionError|not permitted/);
      expect(seen[`unix ${services.abstract}`]).toMatch(/refused/i);
    });

    it('sent nothing to the services of the host', () => {
      expect(services.reached).toEqual([]);
    });
  });

  it.each(sampleOf(['sealed,public', 'sealed'], 1))(
    '%s: cannot be bypassed by asking the proxy for the metadata address or for this machine',
    async (egress) => {
      const own = ['127.0.0.1', '[::1]', '10.0.0.1', '[fd00:ec2::254]', '2852039166', '0x7f.1'];
      const script = `for target in "$@"; do curl -s -o /dev/null -w '%{http_connect}.%{http_code} ' -m 10 "https://$target/"; done; true`;
      const done = await world.launch([`--egress=${egress}`], ['sh', '-c', script, 'sh', METADATA, ...own]);
      const answers = done.stdout.trim().split(' ');
      expect(answers).toHaveLength(own.length + 1);
      // Either the tunnel is refused, or the request in it.
      expect(answers.filter((answer) => !/^(4\d\d|000)[.]000$|^200[.](403|400|000)$/.test(answer))).toEqual([]);
      const events = await world.svc.events();
      const passed = events.filter(({ type }) => type === 'sandbox.proxy.passthrough');
      const hosts = passed.map(({ data }) => data['svc.proxy.upstream.host']);
      expect(hosts.filter((host) => host !== PACKAGES && host !== TELEMETRY)).toEqual([]);
    },
  );

  it('cannot be bypassed by a name that resolves to this machine, unless a binding names it', async () => {
    // A machine may be unable to resolve its own name.
    const isKnown = await lookup(hostname()).then(
      () => true,
      () => false,
    );
    const names = ['localhost', ...(isKnown ? [hostname()] : [])];
    const ask = `for name in "$@"; do curl -s -k -m 10 --noproxy '' "https://$name/"; done; true`;
    const script = ['sh', '-c', ask, 'sh', ...names];
    const denied = await world.launch(['--egress=sealed,public'], script);
    expect(denied.stdout.match(/egress_address_not_allowed/g)).toHaveLength(names.length);
    const events = await world.svc.events();
    const reasons = events.map(({ data }) => data['svc.proxy.reason']);
    expect(reasons.filter((reason) => reason === 'egress_address_not_allowed')).toHaveLength(names.length);
    // From an open container the same requests are dialled, and end at a port of this machine where no test server listens.
    for (const egress of sampleOf(['open'], 0)) {
      const open = await world.launch([`--egress=${egress}`], script);
      expect(open.stdout).not.toContain('egress_address_not_allowed');
    }
    await world.svc.binding({ host: 'localhost', scheme: 'bearer', credential_ref: 'vault://user/api' });
    const named = await world.launch(['--egress=sealed'], ['sh', '-c', ask, 'sh', 'localhost']);
    expect(named.stdout).not.toContain('egress_address_not_allowed');
  });

  it("does not open the sidecar's API to the session token", async () => {
    const calls = [
      ['GET', 'sandbox-proxy/sessions', ''],
      ['POST', 'sandbox-proxy/sessions', '{}'],
      ['DELETE', 'sandbox-proxy/sessions/$SVC_SESSION_ID', ''],
      ['PUT', 'sandbox-proxy/sessions/$SVC_SESSION_ID/container', '{"container_id":"0"}'],
      ['POST', 'sandbox-proxy/sessions/$SVC_SESSION_ID/listener', '{"pid":1}'],
      ['POST', 'sandbox-proxy/unsealed', UNSEALED],
      ['POST', 'sandbox-proxy/step-scopes', '{"session_id":"$SVC_SESSION_ID","step_id":"a"}'],
      ['POST', 'sandbox-proxy/plan-locks', '{"content":{}}'],
      ['POST', 'sandbox-proxy/disabled', '{"reason":"user_opt_out","mode":"docker"}'],
      ['GET', '../metrics', ''],
    ];
    const before = (await world.svc.events()).map(({ id }) => id);
    const script = `ask() {
        curl -s -o /dev/null -w '%{http_code} ' --noproxy '*' --path-as-is -X "$1" --json "$3" -H "Authorization: Bearer $SVC_TOKEN" "$SVC_URL/v1/$2"
      }; ${calls.map(askLine).join('; ')}`;
    const done = await world.launch(['--egress=sealed'], ['sh', '-c', script]);
    const statuses = done.stdout.trim().split(' ');
    expect(statuses).toHaveLength(calls.length);
    expect(statuses.filter((status) => !['401', '403', '404'].includes(status))).toEqual([]);
    const added = (await world.svc.events()).filter(({ id }) => !before.includes(id));
    expect(added.map(({ type }) => type)).toEqual(['sandbox.proxy.session_reach']);
  });

  it('serves the proxy of an open container only to that container', async () => {
    await world.launch(['--relay', '--detach', '--name', 'open'], ['sleep', '600']);
    const address = await world.bench.engine.docker('inspect', '--format', '{{.NetworkSettings.IPAddress}}', 'open');
    const connect = (...where: string[]): Promise<Finished> =>
      world.bench.engine.run(['exec', neighbour.id, 'nc', '-w', '2', ...where]);
    // The same request is shown to work on an open port.
    expect((await connect('127.0.0.1', '80')).code).toBe(0);
    for (const port of ['7421', '7422']) {
      expect((await connect(address, port)).code).not.toBe(0);
      const fetched = fetch(`http://${address}:${port}/v1/health`);
      await expect(fetched).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    }
    await world.svc.ok(['sessions', 'stop', 'open'], { env: world.bench.engine.environment });
  });

  it('is what the session reports', async () => {
    const done = await world.launch(['--egress=sealed', '--detach'], ['sleep', '600']);
    expect(done.code).toBe(0);
    const [container = ''] = await world.bench.containersOf(world.svc);
    const shown = await world.bench.engine.docker('inspect', '--format', '{{.HostConfig.NetworkMode}}', container);
    expect(shown).toBe('none');
    const sessions = z.object({ items: z.array(z.object({ session_id: z.string() })) });
    const [session] = sessions.parse((await world.svc.local('GET', '/v1/sandbox-proxy/sessions')).body).items;
    const record = await world.svc.local('GET', `/v1/sandbox-proxy/sessions/${session?.session_id}`);
    expect(record.body).toMatchObject({ sandbox: { egress: 'sealed', container_id: container } });
    await world.svc.ok(['sessions', 'stop', session?.session_id ?? ''], { env: world.bench.engine.environment });
    expect(await world.bench.containersOf(world.svc)).toEqual([]);
  });
});

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** A shell line; the shell expands the variables in the words. */
function askLine(call: readonly string[]): string {
  return `ask ${call.map((word) => JSON.stringify(word)).join(' ')}`;
}
