import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listen } from '../support/tls_upstream.ts';
import { consoleSuite } from './console_suite.ts';

// Issue 14, item 6: cookies ignore ports, so the console has its own host name.

const suite = consoleSuite({});
let stranger: Server;
let port: number;
/** The cookies of each request to another user's server, by the host name of the request. */
const given = new Map<string, string | undefined>();

beforeAll(async () => {
  stranger = createServer(({ headers }, response) => {
    given.set(headers.host ?? '', headers.cookie);
    response.end('<!doctype html><title>of another user</title>');
  });
  port = await listen(stranger);
});
afterAll(() => {
  stranger.closeAllConnections();
  stranger.close();
});

const visit = async (host: string): Promise<string | undefined> => {
  const page = await suite.open('/');
  await page.goto(`http://${host}:${port}/`);
  return given.get(`${host}:${port}`);
};

test.each(['127.0.0.1', 'localhost', 'svc.localhost'])(
  'a server of another user gets no cookie from a visit to %s',
  async (host) => {
    expect(await visit(host)).toBeUndefined();
    expect(given.has(`${host}:${port}`)).toBe(true);
  },
);

test('a server of another user would get the cookie under the console’s own name, which it does not know', async () => {
  expect(await visit(new URL(suite.world.consoleUrl).hostname)).toContain('svc_session=');
});

test('a stolen cookie is useless under a well-known name', async () => {
  const page = await suite.open('/');
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const { url } = suite.world.control;
  for (const origin of [url, url.replace('127.0.0.1', '[::1]')]) {
    const headers = { cookie, origin, 'sec-fetch-site': 'same-origin' };
    expect((await fetch(`${origin}/v1/me`, { headers })).status).toBe(401);
    expect((await fetch(`${origin}/secrets`, { headers })).status).toBe(401);
  }
  expect((await suite.world.send('/v1/me', { headers: { cookie } })).status).toBe(200);
});

test('nobody else can listen at the address that a browser tries first for the console’s own name', async () => {
  const squatter = createTcpServer();
  squatter.listen(Number(new URL(suite.world.control.url).port), '::1');
  const [error] = await once(squatter, 'error');
  expect(error).toMatchObject({ code: 'EADDRINUSE' });
});
