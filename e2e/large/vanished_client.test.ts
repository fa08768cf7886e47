import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { plantSecret } from '../support/planted_secret.ts';
import { start } from '../support/program.ts';
import { connectThroughProxy } from '../support/raw_client.ts';
import type { Session } from '../support/svc.ts';
import type { Exchange } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { startWorld, type World } from '../support/world.ts';
import { heldSockets } from './process_stats.ts';

// A killed client (the kernel closes its sockets) releases its resources, long before an idle tunnel would.

const RELEASED_WITHIN_MS = 60_000;
/** Longer than the time in which an end may arrive together with the previous packet. */
const SETTLED_MS = 250;
const MEBIBYTE = Buffer.alloc(1024 * 1024, 'x');
const BODY = Buffer.alloc(3 * 1024 * 1024, 'x');
/** The memory limit for all bodies together: less than three of those. */
const MOST_BUFFERED_BYTES = 8 * 1024 * 1024;
const PLAIN = 'plain.example.test';
const BOUND = 'bound.example.test';
const STREAMED = 'streamed.example.test';
let world: World;
let session: Session;
let caFile: string;

beforeAll(async () => {
  world = await startWorld([PLAIN, BOUND, STREAMED], {
    env: {
      SVC_MAX_CREDENTIALED_BODY_BYTES: String(MOST_BUFFERED_BYTES),
      SVC_MAX_BUFFERED_BODIES_BYTES: String(MOST_BUFFERED_BYTES),
    },
  });
  await world.svc.secret('user/key', plantSecret());
  const bearer = { scheme: 'bearer', credential_ref: 'vault://user/key' };
  await world.svc.binding({ ...bearer, host: BOUND });
  await world.svc.binding({ ...bearer, host: STREAMED, body: 'stream' });
  session = await world.svc.session();
  caFile = join(mkdtempSync(join(tmpdir(), 'svc-vanished-')), 'ca.pem');
  writeFileSync(caFile, session.caPem);
});
afterAll(() => world.stop());
beforeEach(() => world.upstream.reset());

function curl(host: string, args: readonly string[]): ChildProcess {
  const fixed = ['--silent', '--no-buffer', '--cacert', caFile];
  const child = start('curl', [...fixed, ...args, `https://${host}/`], { env: { HTTPS_PROXY: session.proxyUrl } });
  child.stdin?.on('error', () => undefined);
  return child;
}

/** How many sockets the sidecar holds for curl and its upstreams: none of the control plane's, and none of this process. */
function heldForClients(): number {
  const { proxy_url, sidecar_pid } = world.svc.runFile;
  const proxyPort = Number(new URL(proxy_url).port);
  const ours = new Set(heldSockets(process.pid).map(({ localPort }) => localPort));
  return heldSockets(sidecar_pid).filter(({ localPort, remotePort }) => {
    return remotePort === world.upstream.port || (localPort === proxyPort && !ours.has(remotePort));
  }).length;
}

async function expectNothingHeld(): Promise<void> {
  await waitFor('every socket to be closed', () => heldForClients() === 0, RELEASED_WITHIN_MS);
}

/** Kills the client once the upstream has its request and the exchange is running, and waits until everything is released. */
async function expectReleased(client: ChildProcess): Promise<void> {
  expect(heldForClients()).toBe(2);
  client.kill('SIGKILL');
  await expectNothingHeld();
}

/** The exchange of the next request. Its upstream keeps reading, so it notices the client's end, unless it is `deaf`. */
function nextExchange(options: { deaf?: boolean; readBefore?: number } = {}): Promise<Exchange> {
  return new Promise((resolve) => {
    world.upstream.onRequest(async (exchange) => {
      for (let pieces = options.readBefore ?? 0; pieces > 0; pieces -= 1) await exchange.reader.some();
      resolve(exchange);
      if (options.deaf === true) await new Promise(() => undefined);
      while ((await exchange.reader.some()) !== null);
    });
  });
}

describe.each([
  { kind: 'without a credential', host: PLAIN },
  { kind: 'with a credential', host: BOUND },
  { kind: 'with a credential and a body that streams', host: STREAMED },
])('$kind, a client that is killed', ({ host }) => {
  it('in the middle of an event stream', async () => {
    const arriving = nextExchange();
    const client = curl(host, []);
    const heard = once(client.stdout ?? client, 'data');
    const upstream = await arriving;
    upstream.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
    upstream.write(`1e\r\ndata: ${'.'.repeat(22)}\n\n\r\n`);
    await heard;
    await expectReleased(client);
  });

  it('in the middle of a long poll', async () => {
    const arriving = nextExchange();
    const client = curl(host, ['--data', 'wait']);
    await arriving;
    await expectReleased(client);
  });

  it('in the middle of a long poll whose upstream ignores its client', async () => {
    const arriving = nextExchange({ deaf: true });
    const client = curl(host, ['--data', 'wait']);
    await arriving;
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    await expectReleased(client);
  });

  it('in the middle of a WebSocket whose upstream does not read', async () => {
    const arriving = nextExchange({ deaf: true });
    const upgrade = ['--header', 'Connection: Upgrade', '--header', 'Upgrade: websocket'];
    const client = curl(host, upgrade);
    const upstream = await arriving;
    upstream.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    await expectReleased(client);
  });

  it('in the middle of a reply that it does not read', async () => {
    const arriving = nextExchange();
    const client = curl(host, []);
    client.stdout?.pause();
    const upstream = await arriving;
    upstream.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n');
    while (upstream.socket.write(MEBIBYTE)) await new Promise(setImmediate);
    await expectReleased(client);
  });
});

describe.each([
  { kind: 'without a credential', host: PLAIN },
  { kind: 'with a credential and a body that streams', host: STREAMED },
])('$kind, a client that is killed', ({ host }) => {
  it('in the middle of an upload', async () => {
    const arriving = nextExchange({ readBefore: 20 });
    const client = curl(host, ['--upload-file', '/dev/zero']);
    await arriving;
    await expectReleased(client);
  });
});

describe('with a credential and a buffered body, killed clients', () => {
  it('in the middle of an upload release their memory', async () => {
    for (let count = 0; count < 5; count += 1) {
      // Without HTTP/2, no upstream is dialled before the request.
      const client = curl(BOUND, ['--http1.1', '--upload-file', '-']);
      await new Promise((resolve) => client.stdin?.write(BODY, resolve));
      expect(heldForClients()).toBe(1);
      client.kill('SIGKILL');
      await expectNothingHeld();
    }
    const whole = await connectThroughProxy(session, BOUND);
    whole.send(`PUT / HTTP/1.1\r\nHost: ${BOUND}\r\nContent-Length: ${BODY.length}\r\n\r\n`);
    expect((await whole.exchange(BODY, 'PUT')).status).toBe(200);
    whole.close();
    expect(world.upstream.requests.length).toBe(1);
  });
});

describe('after its clients were killed', () => {
  it('a session has no open tunnel', async () => {
    const token = readFileSync(join(world.svc.home, 'sidecar', 'host.token'), 'utf8').trim();
    const look = async (): Promise<string> => {
      const headers = { authorization: `Bearer ${token}` };
      return await (await fetch(`${world.svc.runFile.proxy_url}/metrics`, { headers })).text();
    };
    await waitFor(
      'the tunnels to be closed',
      async () => /^svc_open_tunnels 0$/m.test(await look()),
      RELEASED_WITHIN_MS,
    );
    expect(await look()).not.toMatch(/^svc_proxy_bugs_total [1-9]/m);
  });
});
