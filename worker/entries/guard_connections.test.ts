import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { guardConnections, serverDeadlines } from './guard_connections.ts';
import { listenAt } from './node_listen.ts';

// Connections without a request cannot block the control plane for others (docs/decisions/0048).

const LIMITS = { maxWaitingConnections: 16, maxWaitingPerPeer: 8 };
const CROWD = 100;

let server: Server;
let port: number;
let sockets: Socket[];
let logged: unknown[];
/** Replies given by the test. */
let held: ServerResponse[];

beforeEach(async () => {
  sockets = [];
  logged = [];
  held = [];
  server = createServer(
    serverDeadlines({ firstHeadSeconds: 10 }),
    (request, response) => void answer(request, response),
  );
  guardConnections(server, { limits: LIMITS, maxOpen: null, log: (entry) => logged.push(entry) });
  port = (await listenAt(server, '127.0.0.1', 0)).port;
});

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  server.close();
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === '/held') held.push(response);
  else response.end(await text(request).catch(() => ''));
}

/** A connection that sends this, and a promise for its end. */
async function open(sent: string): Promise<{ socket: Socket; gone: Promise<void>; got: () => string }> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  let got = '';
  socket.on('data', (bytes: Buffer) => (got += bytes.toString()));
  const gone = new Promise<void>((resolve) => socket.on('error', () => undefined).on('close', () => resolve()));
  await once(socket, 'connect');
  socket.write(sent);
  return { socket, gone, got: () => got };
}

async function crowdOf(count: number, sent: string): Promise<{ readonly gone: Promise<void>[] }> {
  const gone: Promise<void>[] = [];
  for (let number = 0; number < count; number += 1) gone.push((await open(sent)).gone);
  return { gone };
}

/** A whole request on its own connection. */
async function ask(): Promise<string> {
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const call = httpRequest({ port, host: '127.0.0.1', method: 'POST', agent: false }, resolve);
    call.on('error', reject).end('hello');
  });
  return text(reply);
}

test.each([
  ['one byte', 'G'],
  ['a part of a head', 'GET / HTTP/1.1\r\nHost: 127'],
  ['a part of a body', 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1'],
  ['a whole request, and wait for the next', 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
])('connections that sent %s are dropped, oldest first, and others are answered', async (_, sent) => {
  const { gone } = await crowdOf(CROWD, sent);
  const dropped = new Set<number>();
  for (const [number, end] of gone.entries()) void end.then(() => dropped.add(number));
  expect(await ask()).toBe('hello');
  // Connections whose user was not looked up yet count apart, so that more than the limit of one peer may stay.
  await expect.poll(() => dropped.size).toBeGreaterThanOrEqual(CROWD - LIMITS.maxWaitingConnections);
  const newest = CROWD - LIMITS.maxWaitingPerPeer + 1;
  expect([...dropped].filter((number) => number >= newest)).toEqual([]);
  expect(logged).toEqual([expect.objectContaining({ reason: 'waiting_of_peer', dropped: 1 })]);
});

test('a connection whose request is being answered stays, however many follow', async () => {
  const { socket, got } = await open('GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await expect.poll(() => held).toHaveLength(1);
  // The next request comes before the reply, and its end does not end the first.
  socket.write('GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await crowdOf(50, 'G');
  held[0]?.end('first');
  await expect.poll(() => held).toHaveLength(2);
  await crowdOf(50, 'G');
  held[1]?.end('second');
  await expect.poll(got).toMatch(/first[^]*second/);
});

test('a connection whose reply came before the end of its request may be dropped after that', async () => {
  const early = await open('POST /held HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1');
  await expect.poll(() => held).toHaveLength(1);
  held[0]?.end('early');
  await expect.poll(() => early.got()).toContain('early');
  early.socket.write('23456789');
  await crowdOf(20, 'G');
  await early.gone;
});

test('a head has a deadline, and a request a longer one', () => {
  expect(serverDeadlines({ firstHeadSeconds: 10 })).toMatchObject({ headersTimeout: 10_000, requestTimeout: 60_000 });
  expect(serverDeadlines({ firstHeadSeconds: 90 })).toMatchObject({ headersTimeout: 90_000, requestTimeout: 90_000 });
});
