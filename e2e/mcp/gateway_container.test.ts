import { mkdtempSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { GatewayServer } from '../../gateway/gateway_ports.ts';
import { type Bench, describeContainers, openBench } from '../containers/container_world.ts';
import { variantOf } from '../support/container_images.ts';
import { waitFor } from '../support/wait_for.ts';
import { FakePorts, localServer } from './gateway/fake_ports.ts';
import { type HttpGateway, startHttpGateway } from './gateway/http_gateway.ts';
import { modernClient } from './gateway/test_clients.ts';

const STDIO_GATEWAY = fileURLToPath(new URL('gateway/stdio_gateway.ts', import.meta.url));

/** A server of the earlier generation that reports how it runs, and that does not end when its input ends. */
const SERVER = `#!/usr/bin/python3
import json, os, sys, time
def how():
    status = open('/proc/self/status').read()
    def tries(path):
        try: open(path, 'w').close(); return True
        except OSError: return False
    return {'uid': os.getuid(), 'home': os.environ.get('HOME'), 'token': os.environ.get('TOKEN'),
        'caps': [l.split()[1] for l in status.splitlines() if l.startswith('CapEff')][0],
        'noNewPrivs': [l.split()[1] for l in status.splitlines() if l.startswith('NoNewPrivs')][0],
        'root': tries('/x'), 'own': tries(os.environ.get('HOME', '/') + '/x')}
for line in sys.stdin:
    message = json.loads(line)
    if 'id' not in message: continue
    method, reply = message['method'], {'jsonrpc': '2.0', 'id': message['id']}
    if method == 'initialize':
        reply['result'] = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'box', 'version': '1'}}
    elif method == 'tools/list': reply['result'] = {'tools': [{'name': 'how', 'inputSchema': {'type': 'object'}}]}
    elif method == 'tools/call': reply['result'] = {'content': [{'type': 'text', 'text': json.dumps(how())}]}
    else: reply['error'] = {'code': -32601, 'message': 'Method not found'}
    print(json.dumps(reply), flush=True)
time.sleep(10000)
`;

describeContainers('servers in containers', () => {
  let bench: Bench;
  let image: string;
  let home: string;
  let gateway: HttpGateway | null = null;
  /** Its command names an image that is no MCP server by now; the image with the consent is one. */
  const ownServer = async (): Promise<GatewayServer> => {
    const command = ['docker', 'run', '-i', '--rm', '-e', 'TOKEN', bench.images.debianBase];
    const consented = await bench.engine.docker('image', 'inspect', '--format', '{{.Id}}', image);
    const server = localServer('own', command, { env: { TOKEN: 'of own' } });
    return { server, consent: 'given', missing: [], image: consented };
  };
  const running = () => bench.engine.docker('ps', '--quiet', '--filter', 'label=svc.mcp.gateway');

  beforeAll(async () => {
    bench = await openBench();
    const encoded = Buffer.from(SERVER).toString('base64');
    image = await variantOf(
      bench.engine,
      bench.images.debianBase,
      `RUN echo ${encoded} | base64 -d > /usr/local/bin/mcp-box && chmod 755 /usr/local/bin/mcp-box`,
      'ENTRYPOINT ["/usr/local/bin/mcp-box"]',
    );
  });
  afterAll(() => bench.clear());
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'svc-mcp-box-'));
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = null;
    rmSync(home, { recursive: true, force: true });
  });

  test('run without rights if the configuration says container, and with limits if they start their own', async () => {
    const boxed = localServer('boxed', ['mcp-box'], { isolation: 'container', env: { TOKEN: 'of boxed' } });
    const ports = new FakePorts([await ownServer(), boxed]);
    const env = { ...process.env, ...bench.engine.environment };
    gateway = await startHttpGateway({ ports, home, env, images: { 'mcp-box': image } });
    const client = await modernClient(gateway.endpointFor(), 'auto', {});
    const how = async (name: string): Promise<unknown> =>
      JSON.parse((await client.callTool(name)).content[0]?.text ?? '');
    expect(await how('boxed__how')).toEqual({
      uid: 65_532,
      home: '/home/mcp',
      token: 'of boxed',
      caps: '0000000000000000',
      noNewPrivs: '1',
      root: false,
      own: true,
    });
    expect(await how('own__how')).toMatchObject({ token: 'of own', noNewPrivs: '1' });
    expect((await running()).split('\n')).toHaveLength(2);
    await client.close();
    await gateway.stop();
    gateway = null;
    expect(await running()).toBe('');
  });

  test('are killed if the gateway was killed', async () => {
    const env = { ...process.env, ...bench.engine.environment };
    const config = JSON.stringify({ home, servers: [await ownServer()] });
    const child = spawn('node', [STDIO_GATEWAY, config], { env, stdio: ['pipe', 'ignore', 'inherit'] });
    const clientInfo = { name: 'e2e', version: '1' };
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' })}\n`);
    await waitFor('the container to run', async () => (await running()) !== '');
    child.kill('SIGKILL');
    await waitFor('the container to end', async () => (await running()) === '');
    expect(await running()).toBe('');
  });

  test('do not fall back to a process if the engine or the image is missing', async () => {
    const ports = new FakePorts([
      localServer('nowhere', ['mcp-box'], { isolation: 'container' }),
      localServer('unknown', ['dnx', 'x@1.0.0', '--yes'], { isolation: 'container' }),
    ]);
    const env = { ...process.env, DOCKER_HOST: `unix://${home}/none.sock` };
    gateway = await startHttpGateway({ ports, home, env, images: { 'mcp-box': image } });
    const client = await modernClient(gateway.endpointFor(), 'auto', {});
    expect(await client.listTools()).toEqual([]);
    await client.close();
    const reasons = ports.events.map((event) => ('reason' in event ? event.reason : event.type));
    expect(reasons).toEqual(['container_unavailable', 'container_unavailable']);
  });
});
