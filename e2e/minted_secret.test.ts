import { createServer, type Server } from 'node:http';
import { Provider } from 'oidc-provider';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plantSecret, searchFiles } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import { listen } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// A secret that an OpenID provider mints, from the command that adds its source to the request that has its value.

const HOST = 'minted.example.test';
const KEY = plantSecret();
let world: World;
let server: Server;
let origin: string;
let minted: number;

beforeAll(async () => {
  world = await startWorld([HOST]);
  server = createServer();
  origin = `http://127.0.0.1:${await listen(server)}`;
  const provider = new Provider(origin, {
    clients: [
      {
        client_id: 'build',
        client_secret: KEY,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    features: { clientCredentials: { enabled: true } },
    scopes: ['repo:read'],
  });
  minted = 0;
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (request.url === '/token') minted += 1;
    answer(request, response);
  });
});
afterAll(async () => {
  await world.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function cli(args: readonly string[], input = ''): Promise<string> {
  const { code, stdout, stderr } = await world.svc.cli(args, { input });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

async function send(): Promise<number> {
  const session = await world.svc.session();
  const client = await connectThroughProxy(session, HOST);
  const { status } = await client.exchange(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  client.close();
  await session.end();
  return status;
}

it('a minted secret is in the requests of its binding, in the audit log by its purpose, and in no file', async () => {
  const set = ['client_id=build', `token_url=${origin}/token`, 'scopes=repo:read'].flatMap((field) => ['--set', field]);
  await cli(['secret', 'source', 'add', 'ci/build', 'client_credentials', '--stdin', ...set], KEY);
  const tested = await cli(['secret', 'source', 'test', 'ci/build']);
  expect(tested).toMatch(
    /^a value for the scope repo:read at 127\.0\.0\.1:\d+ for the client build, until .*Z; it was discarded\n$/,
  );
  await world.svc.binding({ host: HOST, scheme: 'bearer', credential_ref: 'vault://ci/build' });
  expect(await Promise.all(Array.from({ length: 5 }, send))).toEqual([200, 200, 200, 200, 200]);
  expect(minted).toBe(2);
  const sent = new Set(world.upstream.requests.map((request) => request.header('authorization')));
  expect(sent.size).toBe(1);
  const token = String([...sent][0]).slice('Bearer '.length);
  expect(token).toMatch(/^[\w-]{30,}$/);
  const events = await world.svc.events();
  const mints = events.filter(({ type }) => type === 'control.secret.minted');
  expect(mints.map(({ data }) => data['svc.control.minted_for'])).toEqual(
    mints.map(() => expect.stringContaining('repo:read')),
  );
  expect(mints).toHaveLength(2);
  for (const secret of [token, KEY]) {
    expect(searchFiles(world.svc.home, secret).holding).toEqual([]);
    expect(JSON.stringify(events)).not.toContain(secret);
  }
});

it('a provider that refuses ends the requests with 503, and the reason is shown', async () => {
  const set = ['client_id=nobody', `token_url=${origin}/token`].flatMap((field) => ['--set', field]);
  await cli(['secret', 'source', 'add', 'ci/build', 'client_credentials', '--stdin', ...set], KEY);
  expect(await send()).toBe(503);
  expect(await cli(['secret', 'source', 'show', 'ci/build'])).toMatch(/last failure: .*127\.0\.0\.1/);
});
