import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sampleOf } from '../support/full_counts.ts';
import { foundIn, plantSecret, searchFiles } from '../support/planted_secret.ts';
import { isRunning, kill } from '../support/process.ts';
import { ROOT, run, SVC } from '../support/program.ts';
import { expectStatus, Svc } from '../support/svc.ts';
import { waitFor } from '../support/wait_for.ts';
import { earlierClient, modernClient, type GatewayEndpoint, type TestClient } from './gateway/test_clients.ts';

// Which servers the sidecar lets a gateway start, and with which secrets.

const EVERYTHING = join(ROOT, 'node_modules', '@modelcontextprotocol', 'server-everything', 'dist', 'index.js');
const SECRET = plantSecret();
const ECHO = 'everything__echo';
const MARK = 'started-by-the-e2e-test';

const server = z.looseObject({
  id: z.string(),
  name: z.string(),
  health: z.looseObject({ state: z.string() }).nullable(),
});
const serverList = z.object({ items: z.array(server) });
const approvalList = z.object({
  items: z.array(z.looseObject({ id: z.string(), summary: z.string(), tool: z.string() })),
});
const serversHere = z.object({
  items: z.array(
    z.looseObject({
      server: z.looseObject({ name: z.string(), tools: z.looseObject({ approval: z.array(z.string()) }) }),
      consent: z.string(),
      health: z.looseObject({ state: z.string() }),
    }),
  ),
});
const me = z.object({ policy_version: z.number() });
const sidecars = z.object({ items: z.array(z.object({ id: z.string() })) });

let svc: Svc;
let id: string;
const clients: TestClient[] = [];

/** The server's record; a test changes one field at a time. */
const record = (more: object = {}) => ({
  name: 'everything',
  command: [process.execPath, EVERYTHING, 'stdio'],
  env: { MARK, TOKEN: 'vault://mcp-servers/{id}/TOKEN' },
  ...more,
});

beforeAll(async () => {
  svc = await Svc.up();
  const reply = await svc.api('POST', '/v1/mcp-servers', record());
  expectStatus(reply, 201);
  ({ id } = server.parse(reply.body));
});
afterEach(async () => {
  for (const open of clients.splice(0)) await open.close().catch(() => undefined);
});
afterAll(() => svc.stop());

const overStdio = (): GatewayEndpoint => ({
  kind: 'stdio',
  command: SVC,
  args: ['--home', svc.home, 'mcp', 'gateway'],
});
function overHttp(token = hostToken()): GatewayEndpoint {
  const headers = { authorization: `Bearer ${token}` };
  return { kind: 'http', url: new URL(`${svc.runFile.proxy_url}/v1/mcp`), headers };
}
const hostToken = () => readFileSync(join(svc.home, 'sidecar', 'host.token'), 'utf8').trim();

async function client(place: GatewayEndpoint, make = earlierClient): Promise<TestClient> {
  const made = await make(place);
  clients.push(made);
  return made;
}

const namesOf = async (of: TestClient) => (await of.listTools()).map(({ name }) => name);
const hasEcho = async (of: TestClient) => (await namesOf(of)).includes(ECHO);

async function echoes(of: TestClient): Promise<void> {
  const answer = await of.callTool(ECHO, { message: 'hello' });
  expect(answer.content).toMatchObject([{ type: 'text', text: 'Echo: hello' }]);
}

/** The servers as this machine has them, after every change made so far. */
async function serversOfMachine() {
  const { policy_version: newest } = me.parse((await svc.api('GET', '/v1/me')).body);
  return serversHere.parse((await svc.local('GET', `/v1/mcp/servers?min_policy_version=${newest}`)).body).items;
}

async function onThisMachine(): Promise<{ readonly consent: string; readonly state: string }> {
  const found = (await serversOfMachine()).find(({ server: { name } }) => name === 'everything');
  return { consent: found?.consent ?? 'gone', state: found?.health.state ?? 'gone' };
}

/** The tools that need an approval, as this machine knows them. */
async function heldHere(): Promise<string[]> {
  return (await serversOfMachine()).flatMap(({ server: { tools } }) => tools.approval);
}

/** The processes of the server: those with its mark in their environment. */
function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => environmentOf(pid).includes(`MARK=${MARK}`))
    .map(Number);
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}

async function mcpEvents(): Promise<string[]> {
  const events = await svc.events();
  return events.map(({ type }) => type).filter((type) => type.startsWith('mcp.'));
}

describe('a server that was created with the API', () => {
  it('is not started before a person on this machine has consented', async () => {
    const over = await client(overHttp());
    expect(await namesOf(over)).toEqual([]);
    expect(await onThisMachine()).toEqual({ consent: 'needed', state: 'needs_consent' });
    expect(processes()).toEqual([]);
    const inConsole = await waitFor('the control plane to know', async () => {
      const { items } = serverList.parse((await svc.api('GET', '/v1/mcp-servers')).body);
      return items.find(({ health }) => health?.state === 'needs_consent');
    });
    expect(inConsole.name).toBe('everything');
  });

  it('is shown unchanged, and a program without a terminal is not asked', async () => {
    const asked = await svc.cli(['mcp', 'consent'], { input: 'y\n' });
    expect(asked.code).toBe(1);
    expect(asked.stdout).toContain(`${process.execPath} ${EVERYTHING} stdio`);
    expect(asked.stdout).toContain(`MARK="${MARK}"`);
    expect(asked.stdout).toContain(`TOKEN="vault://mcp-servers/${id}/TOKEN"`);
    expect((await onThisMachine()).consent).toBe('needed');
  });

  it('waits for its credential after the consent', async () => {
    await svc.ok(['mcp', 'consent', 'everything', '--yes']);
    expect(await onThisMachine()).toEqual({ consent: 'given', state: 'needs_credentials' });
    expect(await namesOf(await client(overHttp()))).toEqual([]);
    expect(processes()).toEqual([]);
  });

  it('is available to connected clients as soon as it may be started', async () => {
    const over = await client(overHttp());
    expect(await hasEcho(over)).toBe(false);
    const changes = over.toolChanges();
    await svc.ok(['mcp', 'credential', 'set', 'everything', 'TOKEN', '--stdin'], { input: SECRET });
    await waitFor('list_changed', () => over.toolChanges() > changes);
    await waitFor('the tools', () => hasEcho(over));
    await echoes(over);
    expect(await onThisMachine()).toEqual({ consent: 'given', state: 'running' });
  });
});

describe('its credential', () => {
  it('is in the environment of the server, and nowhere else', async () => {
    const over = await client(overHttp());
    await echoes(over);
    const answer = await over.callTool('everything__get-env');
    expect(foundIn(JSON.stringify(answer), SECRET)).toEqual([]);
    const holding = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => foundIn(environmentOf(pid), SECRET).length > 0);
    expect(holding.map(Number)).toEqual(processes());
    expect(holding).toHaveLength(1);
    const listed = await run('ps', ['axww', '-o', 'args']);
    expect(foundIn(listed.stdout, SECRET)).toEqual([]);
    expect(searchFiles(svc.home, SECRET).holding).toEqual([]);
    expect(foundIn(JSON.stringify(await svc.events()), SECRET)).toEqual([]);
    expect(foundIn(svc.output, SECRET)).toEqual([]);
  });

  it('is passed to the server again when another value is stored', async () => {
    const over = await client(overHttp());
    await waitFor('the tools', () => hasEcho(over));
    const other = plantSecret();
    await svc.ok(['mcp', 'credential', 'set', 'everything', 'TOKEN', '--stdin'], { input: other });
    await waitFor('the server with it', () => {
      return processes().some((pid) => foundIn(environmentOf(String(pid)), other).length > 0);
    });
    expect(processes()).toHaveLength(1);
    await waitFor('the tools', () => hasEcho(over));
    await echoes(over);
  });

  it('is not released for a session’s token or for another hash', async () => {
    const session = await svc.session();
    const path = `/v1/mcp/servers/${id}/release`;
    const asked = await fetch(`${svc.runFile.proxy_url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ consent_hash: '0'.repeat(64), url: null }),
    });
    expect([asked.status, await asked.json()]).toMatchObject([403, { error: { code: 'host_token_required' } }]);
    const other = await svc.local('POST', path, { consent_hash: '0'.repeat(64), url: null });
    expect(other).toMatchObject({ status: 403, body: { error: { code: 'consent_needed' } } });
    await session.end();
  });
});

const WAYS = [
  ['stdio, later generation', overStdio, (place: GatewayEndpoint) => modernClient(place, 'auto')],
  ['HTTP', overHttp, earlierClient],
  ['stdio', overStdio, earlierClient],
  ['HTTP, later generation', overHttp, (place: GatewayEndpoint) => modernClient(place, 'auto')],
] as const;

describe.each(sampleOf(WAYS, 2))('over %s', (_, place, make) => {
  it('lists and calls tools, and records each call', async () => {
    const before = (await mcpEvents()).filter((type) => type === 'mcp.tool.called').length;
    const over = await client(place(), make);
    await waitFor('the tools', () => hasEcho(over));
    await echoes(over);
    await waitFor('the event', async () => {
      return (await mcpEvents()).filter((type) => type === 'mcp.tool.called').length > before;
    });
    const [event] = (await svc.events()).filter(({ type }) => type === 'mcp.tool.called').toReversed();
    expect(event?.data).toMatchObject({
      'svc.mcp.server': 'everything',
      'svc.mcp.tool': 'echo',
      'svc.mcp.outcome': 'ok',
    });
    expect(JSON.stringify(event)).not.toContain('hello');
  });
});

describe('a session', () => {
  it('has no server that was not named at its launch', async () => {
    const session = await svc.session();
    expect(await namesOf(await client(overHttp(session.token)))).toEqual([]);
    await session.end();
  });

  it('has the named servers until it ends', async () => {
    const reply = await svc.local('POST', '/v1/sandbox-proxy/sessions', { mcp_servers: ['everything'] });
    expectStatus(reply, 201);
    const made = z.object({ session_id: z.string(), token: z.string() }).parse(reply.body);
    const over = await client(overHttp(made.token));
    await waitFor('the tools', () => hasEcho(over));
    await echoes(over);
    expectStatus(await svc.local('DELETE', `/v1/sandbox-proxy/sessions/${made.session_id}`), 204);
    await expect(over.callTool(ECHO, { message: 'hello' })).rejects.toThrow(/token is unknown/);
    await waitFor('its call to be recorded as the session’s', async () =>
      (await svc.events()).some(({ type, session_id: of }) => type === 'mcp.tool.called' && of === made.session_id),
    );
  });
});

describe('a tool that needs an approval', () => {
  it('is called once a person has allowed this exact call', async () => {
    await svc.ok(['mcp', 'tools', 'everything', '--approve', 'echo']);
    const over = await client(overHttp());
    const call = () => over.callTool(ECHO, { message: 'a-value-nobody-sees' });
    const calls: ReturnType<typeof call>[] = [];
    let isHeld = false;
    const waiting = await waitFor('the approval', async () => {
      // A call before the gateway knows the new rule is not held.
      if (!isHeld) calls.push(call().finally(() => (isHeld = false)));
      isHeld = true;
      const { items } = approvalList.parse((await svc.api('GET', '/v1/approvals?state=pending')).body);
      return items[0];
    });
    expect(waiting).toMatchObject({ mcp_server: 'everything', tool: 'echo', connector_fqn: null });
    expect(waiting.summary).toContain('message');
    expect(JSON.stringify(waiting)).not.toContain('a-value-nobody-sees');
    await svc.ok(['approvals', 'approve', waiting.id]);
    expect((await calls.at(-1))?.content).toMatchObject([{ text: 'Echo: a-value-nobody-sees' }]);
    await svc.ok(['mcp', 'tools', 'everything', '--reset']);
    await waitFor('the rule to be gone here', async () => (await heldHere()).length === 0);
  });
});

describe('a sidecar that was killed', () => {
  it('is found again by a client over stdio, whose server kept running', async () => {
    const others = processes();
    const over = await client(overStdio());
    await waitFor('the tools', () => hasEcho(over));
    const [started] = processes().filter((pid) => !others.includes(pid));
    kill(svc.runFile.sidecar_pid, 'SIGKILL');
    await echoes(over);
    await svc.comesBack();
    await echoes(over);
    await waitFor('the server to be shown again', async () => (await onThisMachine()).state === 'running');
    expect(processes()).toContain(started);
  });

  it('leaves no gateway and no server behind, and starts new ones', async () => {
    const over = await client(overHttp());
    await waitFor('the tools', () => hasEcho(over));
    const before = processes();
    expect(before).not.toEqual([]);
    kill(svc.runFile.sidecar_pid, 'SIGKILL');
    await waitFor('its servers to end', () => before.every((pid) => !isRunning(pid)));
    await svc.comesBack();
    const again = await client(overHttp());
    await waitFor('the tools', () => hasEcho(again));
    await echoes(again);
    expect(readdirSync(join(svc.home, 'mcp')).filter((name) => name.endsWith('.sock'))).toHaveLength(1);
  });
});

describe('a changed configuration', () => {
  it.each([
    ['command', { command: [process.execPath, EVERYTHING] }],
    ['environment', { env: { MARK, TOKEN: 'vault://mcp-servers/{id}/TOKEN', NODE_ENV: 'production' } }],
  ])('in its %s is stopped until a person consents again', async (_, change) => {
    const over = await client(overHttp());
    await waitFor('the tools', () => hasEcho(over));
    const changes = over.toolChanges();
    expectStatus(await svc.api('PUT', `/v1/mcp-servers/${id}`, record(change)), 200);
    await waitFor('list_changed', () => over.toolChanges() > changes);
    await waitFor('the server to be stopped', () => processes().length === 0);
    expect(await hasEcho(over)).toBe(false);
    expect((await onThisMachine()).state).toBe('needs_consent');
    const shown = await svc.cli(['mcp', 'consent']);
    expect(shown.stdout).toMatch(/^ {2}changed +[+-] /m);
    await svc.ok(['mcp', 'consent', '--yes']);
    await waitFor('the tools', () => hasEcho(over));
    await echoes(over);
  });

  it('in a field that starts nothing keeps running', async () => {
    const over = await client(overHttp());
    await waitFor('the tools', () => hasEcho(over));
    const before = processes();
    const changed = {
      env: { MARK, TOKEN: 'vault://mcp-servers/{id}/TOKEN', NODE_ENV: 'production' },
      description: 'x',
    };
    expectStatus(await svc.api('PUT', `/v1/mcp-servers/${id}`, record(changed)), 200);
    expect((await onThisMachine()).consent).toBe('given');
    await echoes(over);
    expect(processes()).toEqual(before);
  });
});

describe('the command line', () => {
  it('prints the HTTP address of the servers, without the token', async () => {
    const told = await svc.ok(['mcp', 'gateway', '--http']);
    expect(told).toContain(`${svc.runFile.proxy_url}/v1/mcp`);
    expect(told).not.toContain(hostToken());
  });

  it('shows what the server wrote', async () => {
    const over = await client(overHttp());
    await waitFor('the tools', () => hasEcho(over));
    const log = await waitFor('the log', () => svc.ok(['mcp', 'logs', 'everything']));
    expect(log).toContain('STDIO');
  });

  it('says on stderr that svc is not running, and nothing on stdout', async () => {
    const alone = await run(SVC, ['--home', join(svc.home, 'nothing'), 'mcp', 'gateway']);
    expect({ code: alone.code, stdout: alone.stdout }).toEqual({ code: 3, stdout: '' });
    expect(alone.stderr).toContain('is not running');
  });
});

describe('a server that may no longer run', () => {
  it('is stopped when its consent is withdrawn', async () => {
    const over = await client(overHttp());
    await waitFor('the tools', () => hasEcho(over));
    await svc.ok(['mcp', 'consent', 'everything', '--withdraw']);
    await waitFor('the server to be stopped', () => processes().length === 0);
    expect(await hasEcho(over)).toBe(false);
    await svc.ok(['mcp', 'consent', 'everything', '--yes']);
    await waitFor('the tools', () => hasEcho(over));
  });

  it('is gone when it is removed, and clients are notified', async () => {
    const other = await svc.api('POST', '/v1/mcp-servers', record({ name: 'other', env: { MARK } }));
    expectStatus(other, 201);
    const directory = join(svc.home, 'mcp', 'servers', server.parse(other.body).id);
    await svc.ok(['mcp', 'consent', 'other', '--yes']);
    const over = await client(overHttp());
    const has = async () => (await namesOf(over)).includes('other__echo');
    await waitFor('the tools', has);
    expect(existsSync(directory)).toBe(true);
    const changes = over.toolChanges();
    await svc.ok(['mcp', 'remove', 'other']);
    await waitFor('list_changed', () => over.toolChanges() > changes);
    await waitFor('the tools to be gone', async () => !(await has()));
    await waitFor('its directory to be gone', () => !existsSync(directory));
    expect(existsSync(join(svc.home, 'mcp', 'servers', id))).toBe(true);
    expect(await hasEcho(over)).toBe(true);
  });

  it('is stopped when this machine’s sidecar is revoked', async () => {
    const over = await client(overHttp());
    await waitFor('the tools', () => hasEcho(over));
    const [sidecar] = sidecars.parse((await svc.api('GET', '/v1/sidecars')).body).items;
    expectStatus(await svc.api('DELETE', `/v1/sidecars/${sidecar?.id ?? ''}`), 200, 204);
    await waitFor('the server to be stopped', () => processes().length === 0);
    expect(await hasEcho(over)).toBe(false);
  });
});
