import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { type ContainerWorld, describeContainers, startContainerWorld } from '../containers/container_world.ts';
import { variantOf } from '../support/container_images.ts';
import { HANGS_MS } from '../support/hangs.ts';
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { shellEnvironment, SVC } from '../support/program.ts';
import { waitFor } from '../support/wait_for.ts';
import {
  addServers,
  answerWithIssues,
  FILE_TEXT,
  HOST,
  installMore,
  installTickets,
  RUN_CLOSE,
  RUN_LIST,
} from './mcp_servers.ts';

// The agent of a container uses connectors and the MCP servers that its launch names, through svc-mcp.

const SECRET = plantSecret();
const built = z.object({ ok: z.literal(true), svc_mcp_node: z.string().nullable() });
const pending = z.object({ items: z.array(z.object({ id: z.string() })) });
const CURL = `curl -sS -o /dev/null -w '%{http_code} ' -X "$1" "$SVC_URL/v1/$2" -H "Authorization: Bearer $SVC_TOKEN" -H 'content-type: application/json' -d "$3"`;

let world: ContainerWorld;
let folder: string;
/** Debian with its own Node, and svc-mcp. */
let image: string;
const clients: Client[] = [];
/** Everything that svc-mcp wrote to standard error. */
let said: string;

async function build(base: string, tag: string) {
  const options = { env: world.bench.engine.environment };
  const done = await world.svc.cli(['image', 'build', '--base', base, '--tag', tag, '--json'], options);
  expect({ code: done.code, stderr: done.code === 0 ? '' : done.stderr }).toEqual({ code: 0, stderr: '' });
  return { ...built.parse(JSON.parse(done.stdout)), stderr: done.stderr };
}

/** A client of svc-mcp in a new container, like an agent's client. */
async function agent(flags: readonly string[], own = image, mode: 'auto' | 'legacy' = 'auto'): Promise<Client> {
  const env = { ...shellEnvironment(), ...world.bench.engine.environment, SVC_HOME: world.svc.home };
  const args = ['launch', '--image', own, '--no-default-mount', ...flags, '--', 'svc-mcp'];
  const transport = new StdioClientTransport({ command: SVC, args, env, stderr: 'pipe' });
  transport.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  // It first asks its own container, which takes time to start.
  const versionNegotiation = { mode, probe: { timeoutMs: 60_000 } };
  const client = new Client({ name: 'agent', version: '1' }, { versionNegotiation });
  await client.connect(transport, { timeout: HANGS_MS });
  clients.push(client);
  return client;
}

async function namesOf(client: Client): Promise<readonly string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

describeContainers('svc-mcp in a container', () => {
  beforeAll(async () => {
    world = await startContainerWorld([HOST]);
    await installTickets(world.svc, SECRET);
    folder = await addServers(world.svc);
    image = `svc-e2e-variant:mcp-${process.pid}`;
    const made = await build(world.bench.images.debianBase, image);
    if (made.svc_mcp_node === null) throw new Error('svc-mcp does not run in Debian with its Node');
  });
  beforeEach(() => {
    said = '';
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    expect(said).toBe('');
  });
  afterAll(async () => {
    await world.bench.engine.run(['image', 'rm', image]);
    await world.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(['auto', 'legacy'] as const)('lists and runs an operation of a connector (%s)', async (mode) => {
    world.upstream.reset();
    answerWithIssues(world);
    const client = await agent([], image, mode);
    expect(client.getProtocolEra()).toBe(mode === 'auto' ? 'modern' : 'legacy');
    expect(await namesOf(client)).toEqual([RUN_CLOSE, RUN_LIST]);
    const result = await client.callTool({ name: RUN_LIST, arguments: { project: 'a b', filter_state_: 'open' } });
    expect(result).toMatchObject({ structuredContent: { issues: [7] }, content: [{ text: '{"issues":[7]}' }] });
    const request = world.upstream.last();
    expect(request.target).toBe('/projects/a%20b/issues?filter%5Bstate%5D=open');
    expect(request.headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    expect(foundIn(JSON.stringify(result), SECRET)).toEqual([]);
    const run = await waitFor('the run to be recorded', async () =>
      (await world.svc.events()).findLast(({ type }) => type === 'connector.proxy.proxied'),
    );
    expect(run.session_id).toMatch(/^ses_/);
    expect(run.data).toMatchObject({ 'svc.proxy.source': 'generated_connector_shim' });
  });

  it('is told what is wrong with its arguments', async () => {
    const client = await agent([]);
    const result = await client.callTool({ name: RUN_LIST, arguments: { page: 'x', other: 1 } });
    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code: 'invalid_args' } } });
    const text = JSON.stringify(result.content);
    for (const part of ['- other is no argument', '- project is missing', '- page must be'])
      expect(text).toContain(part);
  });

  it('waits for a person if an operation needs approval', async () => {
    world.upstream.reset();
    const client = await agent([]);
    const calling = client.callTool({ name: RUN_CLOSE, arguments: { id: '7' } }, { timeout: HANGS_MS });
    const id = await waitFor('the approval', async () => {
      const { items } = pending.parse((await world.svc.api('GET', '/v1/approvals?state=pending')).body);
      return items[0]?.id;
    });
    expect(world.upstream.requests).toEqual([]);
    await world.svc.ok(['approvals', 'approve', id]);
    expect(await calling).toMatchObject({ content: [{ text: 'ok' }] });
    expect(world.upstream.last()).toMatchObject({ method: 'DELETE', target: '/issues/7' });
  });

  it('sees the MCP servers that its launch names, and no other', async () => {
    const client = await agent(['--mcp', 'files']);
    const names = await namesOf(client);
    expect(names).toEqual(expect.arrayContaining([RUN_LIST, 'files__read_text_file']));
    expect(names.filter((name) => !/^(files__|svc_run__)/.test(name))).toEqual([]);
    const path = join(folder, 'read.me');
    const read = await client.callTool({ name: 'files__read_text_file', arguments: { path } });
    expect(JSON.stringify(read.content)).toContain(FILE_TEXT);
    await expect(client.callTool({ name: 'everything__echo', arguments: { message: 'x' } })).rejects.toThrow(
      'everything__echo',
    );
    const shown = z.object({ items: z.array(z.object({ mcp_servers: z.array(z.object({ name: z.string() })) })) });
    const { items } = shown.parse(JSON.parse(await world.svc.ok(['sessions', 'list', '--json'])));
    expect(items.map(({ mcp_servers: servers }) => servers.map(({ name }) => name))).toEqual([['files']]);
  });

  it('refuses a launch with an unknown server, and suggests an existing one', async () => {
    const done = await world.launch(['--mcp', 'fils'], ['true']);
    expect(done).toMatchObject({ code: 125, stdout: '' });
    expect(done.stderr).toContain('did you mean "files"?');
  });

  it('is notified of connectors that are installed meanwhile', async () => {
    for (const mode of ['auto', 'legacy'] as const) {
      const client = await agent([], image, mode);
      let isChanged = false;
      client.setNotificationHandler('notifications/tools/list_changed', () => void (isChanged = true));
      if (mode === 'auto') await client.listen({ toolsListChanged: true });
      expect(await namesOf(client)).not.toContain(`svc_run__acme_more-${mode}__get-thing`);
      await installMore(world.svc, `more-${mode}`);
      await waitFor('the change to be told', () => Promise.resolve(isChanged));
      expect(await namesOf(client)).toContain(`svc_run__acme_more-${mode}__get-thing`);
    }
  });

  it('cannot reach calls that are only for the host', async () => {
    const calls = [
      ['GET', 'mcp/servers', ''],
      ['GET', 'mcp/gateway', ''],
      ['POST', 'mcp/events', '{}'],
      ['POST', 'mcp/health', '{}'],
      ['POST', 'mcp/approvals', '{}'],
      ['POST', 'mcp/servers/mcp_00000000000000000000000001/release', '{"consent_hash":null}'],
      ['POST', 'mcp/servers/mcp_00000000000000000000000001/consent', '{}'],
      ['GET', 'mcp/logs/mcp_00000000000000000000000001', ''],
      ['POST', 'sandbox-proxy/sessions', '{"mcp_servers":["everything"]}'],
    ] as const;
    const script = calls.map((call) => `set -- ${call.map((word) => `'${word}'`).join(' ')}; ${CURL}`).join('\n');
    const acting = `curl -sS -o /dev/null -w '%{http_code}' "$SVC_URL/v1/connector-operations/run" -H "Authorization: Bearer $SVC_TOKEN" -H "svc-acting-session: $SVC_SESSION_ID" -d '{}'`;
    const caller = Buffer.from(JSON.stringify({ session_id: null, servers: null })).toString('base64url');
    const greeting = `curl -sS "$SVC_URL/v1/mcp" -H "Authorization: Bearer $SVC_TOKEN" -H "svc-mcp-caller: ${caller}" -H 'accept: application/json, text/event-stream' -H 'content-type: application/json' -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: tools/list' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'`;
    const done = await world.launch(['--image', image], ['sh', '-c', `${script}\n${acting}\necho\n${greeting}`]);
    const [codes = '', ...listed] = done.stdout.split('\n');
    expect(codes.trim().split(' ')).toEqual([...calls, 'acting'].map(() => '403'));
    expect(listed.join('\n')).toContain(RUN_LIST);
    expect(listed.join('\n')).not.toMatch(/files__|everything__/);
  });

  it('has no secret, and its token is on no command line', async () => {
    const client = await agent([]);
    await client.listTools();
    const [id = ''] = await world.bench.containersOf(world.svc);
    const { engine } = world.bench;
    const env = await engine.docker('inspect', '--format', '{{json .Config}}', id);
    expect(foundIn(env, SECRET)).toEqual([]);
    const lines = await engine.docker(
      'exec',
      id,
      'sh',
      '-c',
      'tr "\\0" " " </proc/*/cmdline 2>/dev/null; cat /proc/[0-9]*/cmdline | tr "\\0" " "',
    );
    expect(lines).toContain('svc_mcp.mjs');
    expect(lines).not.toContain('svc_session_');
    const host = readFileSync(join(world.svc.home, 'sidecar', 'host.token'), 'utf8').trim();
    expect(foundIn(env, host)).toEqual([]);
  });

  it('runs without a Node in the image, with its own', async () => {
    const { bench } = world;
    const base = await variantOf(bench.engine, bench.images.debianBase, 'RUN rm -f /usr/bin/node /usr/local/bin/node');
    const tag = `svc-e2e-variant:mcp-own-node-${process.pid}`;
    const made = await build(base, tag);
    expect(made.svc_mcp_node).toBe(process.version);
    expect(await namesOf(await agent([], tag))).toContain(RUN_LIST);
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await bench.engine.docker('image', 'rm', tag);
  });

  it('is omitted from an image that cannot run it, with a message that says what to use instead', async () => {
    const tag = `svc-e2e-variant:mcp-none-${process.pid}`;
    const made = await build(world.bench.images.busyboxBase, tag);
    expect(made.svc_mcp_node).toBeNull();
    expect(made.stderr).toContain('$SVC_URL/v1/mcp');
    await world.bench.engine.docker('image', 'rm', tag);
  });
});
