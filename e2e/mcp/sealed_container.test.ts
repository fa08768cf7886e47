import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { type ContainerWorld, describeContainers, startContainerWorld } from '../containers/container_world.ts';
import { foundIn, plantSecret, searchProcesses } from '../support/planted_secret.ts';
import { run, SVC } from '../support/program.ts';
import { runAtTerminal } from '../support/terminal.ts';
import { waitFor } from '../support/wait_for.ts';
import { startBoxRegistry } from './box_registry.ts';
import { earlierClient, type TestClient } from './gateway/test_clients.ts';
import type { TestRegistry } from './npm_registry.ts';

// A new server runs in a container of its own: with its package, a way to the hosts that a person allowed, and nothing else.

const API = 'api.example.test';
const BOUND = 'bound.example.test';
const FREE = 'free.example.test';
const HOSTS = [API, BOUND, FREE];
const SECRET = plantSecret();
const OWN = plantSecret();
const PLACEHOLDER = 'box-placeholder-0123456789abcdef';
const ATTACK = readFileSync(join(import.meta.dirname, '..', 'containers', 'programs', 'attack.py'), 'utf8');
const status = z.object({
  items: z.array(
    z.looseObject({
      name: z.string(),
      isolation: z.string(),
      allowed_hosts: z.array(z.string()).nullable(),
      refused_hosts: z.array(z.string()),
    }),
  ),
});

let world: ContainerWorld;
let registry: TestRegistry;
let person: string;
const clients: TestClient[] = [];

const environment = () => ({
  ...world.bench.engine.environment,
  HOME: person,
  npm_config_registry: registry.url,
  npm_config_fetch_retries: '0',
  SVC_HOME: world.svc.home,
});
const cli = (...args: string[]) => world.svc.cli(args, { env: environment() });

async function done(...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const finished = await cli(...args);
  expect({ code: finished.code, stderr: finished.code === 0 ? '' : finished.stderr }).toEqual({ code: 0, stderr: '' });
  return finished;
}

async function client(): Promise<TestClient> {
  const variables = Object.entries(environment()).map(([name, value]) => `${name}=${value}`);
  const made = await earlierClient({ kind: 'stdio', command: 'env', args: [...variables, SVC, 'mcp', 'gateway'] });
  clients.push(made);
  return made;
}

/** Calls a tool; while its server starts again, the call waits. */
async function call(over: TestClient, tool: string, args: Record<string, unknown>): Promise<string> {
  const { content } = await over.callTool(tool, args);
  return content[0]?.text ?? '';
}

async function statusOf(name: string) {
  const { items } = status.parse(JSON.parse((await done('mcp', 'status', name, '--json')).stdout));
  const [found] = items;
  if (found === undefined) throw new Error(`no server ${name}`);
  return found;
}

const running = () => world.bench.engine.docker('ps', '--quiet', '--no-trunc', '--filter', 'label=svc.mcp.gateway');

describeContainers('a new server', () => {
  beforeAll(async () => {
    world = await startContainerWorld(HOSTS);
    await world.bench.engine.docker('tag', world.bench.images.debianBase, 'node:24-slim');
    person = mkdtempSync(join(tmpdir(), 'svc-e2e-person-'));
    registry = await startBoxRegistry();
    await world.svc.secret('user/api', SECRET);
    const bound = { scheme: 'bearer', credential_ref: 'vault://user/api' };
    const sentinel = { value: PLACEHOLDER, env: 'BOX_TOKEN' };
    await world.svc.binding({ ...bound, host: API, emit_mechanism: 'sentinel-swap', sentinel });
    await world.svc.binding({ ...bound, host: BOUND });
    await world.svc.binding({ ...bound, host: FREE });
  });
  afterAll(async () => {
    for (const open of clients.splice(0)) await open.close().catch(() => undefined);
    await registry.stop();
    rmSync(person, { recursive: true, force: true });
    await world.stop();
  });

  it('runs in a container that reaches only the hosts that were typed, and its consent says so', async () => {
    const box = ['npx', '-y', '@acme/box@1.0.0'];
    const added = await done('mcp', 'add', 'box', '--allow', API, '--env', 'TOKEN', '--', ...box);
    expect(added.stderr).toContain('installed @acme/box@1.0.0 (2 packages');
    expect(added.stderr).toMatch(/box lists \d+ tools in a container without network: /);
    await world.svc.cli(['mcp', 'credential', 'set', 'box', 'TOKEN', '--stdin'], { input: OWN });
    expect(await statusOf('box')).toMatchObject({ isolation: 'container', allowed_hosts: [API], refused_hosts: [] });
    await done('mcp', 'consent', 'box', '--withdraw');
    const asked = await cli('mcp', 'consent', 'box');
    expect(asked.stdout).toContain(
      'isolation  in a container; it reaches no host until you allow one: svc mcp allow box HOST',
    );
    await done('mcp', 'consent', 'box', '--yes');
    expect(await statusOf('box')).toMatchObject({ allowed_hosts: [] });
    await done('mcp', 'allow', 'box', API);
    const listed = await done('mcp', 'allow', 'box', '--json');
    expect(JSON.parse(listed.stdout)).toEqual({ server: 'box', allowed_hosts: [API], refused_hosts: [] });
  });

  it('holds a placeholder, and its API gets the credential', async () => {
    world.upstream.reset();
    const over = await client();
    expect(await over.listTools()).toMatchObject([{ name: 'box__fetch' }, { name: 'box__run', description: 'hello' }]);
    const requests = registry.requests.length;
    expect(await call(over, 'box__fetch', { url: `https://${API}/issues` })).toBe('200 ok');
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    expect(registry.requests).toHaveLength(requests);
    const script = 'curl -sS -H "Authorization: Bearer $BOX_TOKEN" https://$1/by-curl';
    expect(await call(over, 'box__run', { script, args: [API] })).toBe('ok');
    expect(world.upstream.last()).toMatchObject({ target: '/by-curl' });
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
  });

  it('reaches a bound host only once a person has allowed it; what it was refused is listed with the command', async () => {
    world.upstream.reset();
    const over = await client();
    for (const host of [BOUND, FREE])
      expect(await call(over, 'box__run', { script: 'curl -sS https://$1/', args: [host] })).toContain('403');
    expect(world.upstream.requests).toEqual([]);
    expect(await statusOf('box')).toMatchObject({ allowed_hosts: [API], refused_hosts: [FREE, BOUND] });
    const steps = [{ expect: `svc mcp allow box ${FREE}` }];
    const shown = await runAtTerminal(steps, [SVC, 'mcp', 'status', 'box'], { env: environment() });
    expect(shown).toMatchObject({ code: 0, missed: null });
    await done('mcp', 'allow', 'box', FREE);
    expect(await statusOf('box')).toMatchObject({ allowed_hosts: [API, FREE], refused_hosts: [BOUND] });
    await waitFor('the server to start with the new list', async () => {
      const said = await call(over, 'box__run', { script: 'curl -sS https://$1/allowed', args: [FREE] }).catch(
        () => '',
      );
      return said === 'ok';
    });
    expect(world.upstream.last()).toMatchObject({ target: '/allowed' });
    expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    await done('mcp', 'allow', 'box', FREE, '--remove');
    await waitFor('the server to start with the old list', async () => {
      const said = await call(over, 'box__run', { script: 'curl -sS https://$1/', args: [FREE] }).catch(() => '');
      return said.includes('403');
    });
  });

  it('has the value of its own reference, and no other secret in its environment, files or processes', async () => {
    const over = await client();
    const sweep = await call(over, 'box__run', {
      script:
        'env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; cat $(find / -xdev -type f -size -256k -not -path "/usr/*" 2>/dev/null) 2>/dev/null | strings -n 12',
    });
    expect(sweep).toContain(PLACEHOLDER);
    expect(foundIn(sweep, SECRET)).toEqual([]);
    expect(sweep).not.toContain(world.svc.home);
    // The gateway masks it in what a client gets.
    const own = 'printf %s "$TOKEN" | sha256sum; printf %s "$1" | sha256sum';
    const [first, second] = (await call(over, 'box__run', { script: own, args: [OWN] })).trim().split('\n');
    expect(first).toBe(second);
    expect(searchProcesses(SECRET).holding).toEqual([]);
  });

  it('cannot leave its container: no host, no metadata, no neighbour, no store, no other session', async () => {
    const over = await client();
    const { proxy_url: proxy, control_url: control } = world.svc.runFile;
    const ports = [proxy, control].map((url) => Number(new URL(url).port));
    const neighbour = await world.bench.engine.docker(
      'run',
      '--detach',
      world.bench.images.busyboxBase,
      'sleep',
      '600',
    );
    const address = await world.bench.engine.docker('inspect', '--format', '{{.NetworkSettings.IPAddress}}', neighbour);
    const gateway = await world.bench.engine.docker('inspect', '--format', '{{.NetworkSettings.Gateway}}', neighbour);
    const tcp = [
      ...ports.flatMap((port) => [
        ['127.0.0.1', port],
        [gateway, port],
      ]),
      ['169.254.169.254', 80],
      [address, 80],
    ];
    const targets = { tcp, udp: [[gateway, 53]], unix: [], names: [API] };
    const seen = z
      .record(z.string(), z.string())
      .parse(
        JSON.parse(
          await call(over, 'box__run', { script: 'python3 -c "$1" "$2"', args: [ATTACK, JSON.stringify(targets)] }),
        ),
      );
    await world.bench.engine.docker('rm', '--force', neighbour);
    const reached = Object.entries(seen).filter(([, result]) => result === 'reached');
    expect(reached).toEqual([]);
    expect(Object.keys(seen).filter((attempt) => attempt.startsWith('tcp '))).toHaveLength(tcp.length);

    const {
      token,
      session_id: other,
      proxy_url,
    } = z
      .object({ token: z.string(), session_id: z.string(), proxy_url: z.string() })
      .parse((await world.svc.local('POST', '/v1/sandbox-proxy/sessions', { ttl_seconds: 600 })).body);
    expect(proxy_url).toContain(other);
    const script = `
      id -u; grep CapEff /proc/self/status
      grep ' /opt/svc/package ' /proc/mounts | cut -d ' ' -f 4 | cut -d , -f 1
      touch /opt/svc/package/x 2>&1; (echo evil >> /opt/svc/package/node_modules/greeting/index.js) 2>&1
      ls -d ${world.svc.home} ${person} /var/run/docker.sock 2>&1
      curl -sS -o /dev/null -w '%{http_connect}\\n' -x "http://${other}:${token}@127.0.0.1:7421" https://${API}/ 2>/dev/null
      for path in sandbox-proxy/sessions mcp mcp/servers connector-operations; do
        curl -s -o /dev/null -w '%{http_code} ' --noproxy '*' -H "Authorization: Bearer \${HTTPS_PROXY##*:}" http://127.0.0.1:7421/v1/$path
        password=\${HTTPS_PROXY#*//*:}; curl -s -o /dev/null -w '%{http_code} ' --noproxy '*' -H "Authorization: Bearer \${password%@*}" http://127.0.0.1:7421/v1/$path
      done`;
    const said = (await call(over, 'box__run', { script })).trim().split('\n');
    expect(said.slice(0, 3)).toEqual(['65532', 'CapEff:\t0000000000000000', 'ro']);
    expect(said.filter((line) => /Read-only file system|Permission denied/.test(line))).toHaveLength(2);
    expect(said.filter((line) => /No such file/.test(line))).toHaveLength(3);
    expect(said.at(-2)).toMatch(/^40[37]$/);
    expect(said.at(-1)?.trim()).toMatch(/^(40[134] ?){8}$/);
  });

  it('cannot be widened by a session: svc mcp allow refuses inside one', async () => {
    const inside = await run(SVC, ['mcp', 'allow', 'box', BOUND], {
      env: { ...environment(), SVC_SESSION_ID: 'ses_x' },
    });
    expect(inside).toMatchObject({ code: 1, stdout: '' });
    expect(inside.stderr).toContain('this runs inside a session, which may not change what a server reaches');
  });

  it('ends with its gateway, also if that is killed, and its session ends too', async () => {
    for (const open of clients.splice(0)) await open.close();
    await waitFor('no container to be left', async () => (await running()) === '');
    const child = spawn(SVC, ['mcp', 'gateway'], {
      env: { PATH: process.env['PATH'], ...environment() },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' })}\n`);
    await waitFor('the container to run', async () => (await running()) !== '');
    child.kill('SIGKILL');
    await waitFor('the container to end', async () => (await running()) === '');
    await waitFor('its session to end', async () => (await world.bench.containersOf(world.svc)).length === 0);
    const sessions = join(world.svc.home, 'sessions');
    const left = () => readdirSync(sessions).filter((id) => existsSync(join(sessions, id, 'container.json')));
    await waitFor('the record of the container to go', () => Promise.resolve(left().length === 0));
    expect(left()).toEqual([]);
  });

  it('is a process where no container can be had, and that is said', async () => {
    const env = { ...environment(), DOCKER_HOST: `unix://${person}/none.sock` };
    // What fetches its package at the start has no place in bubblewrap either.
    const named = await world.svc.cli(['mcp', 'add', 'plain', '--', 'bunx', '@acme/box@1.0.0'], { env });
    expect(named.stderr).toMatch(/plain runs code as you, not in a container: .*none[.]sock/);
    const path = await done('mcp', 'add', 'paths', '--', 'npx', '-y', '@acme/box@1.0.0', person);
    expect(path.stderr).toContain(`paths runs code as you, not in a container: a container does not have ${person}`);
    const asked = await done('mcp', 'add', 'asked', '--isolation', 'process', '--', 'npx', '-y', '@acme/box@1.0.0');
    expect(asked.stderr).not.toContain('not in a container');
    for (const name of ['plain', 'paths', 'asked'])
      expect(await statusOf(name)).toMatchObject({ isolation: 'process', allowed_hosts: null });
    const refused = await cli(
      'mcp',
      'add',
      'listed',
      '--allow',
      API,
      '--isolation',
      'process',
      '--',
      'npx',
      '-y',
      'x@1.0.0',
    );
    expect(refused).toMatchObject({ code: 2 });
  });
});
