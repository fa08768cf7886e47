import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createClient } from '@libsql/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { CLIENT_ID, CLIENT_SECRET, type OAuthProvider, startOAuthProvider } from '../runtimes/oauth_provider.ts';
import { searchFiles } from '../support/planted_secret.ts';
import { kill } from '../support/process.ts';
import { connectThroughProxy } from '../support/raw_client.ts';
import { expectStatus, type Session } from '../support/svc.ts';
import { reply } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { startWorld, type World } from '../support/world.ts';

// OAuth2 credentials, end to end: a real provider, a control plane that is killed, an upstream under TLS.

const HOST = 'oauth.example.test';
const SPEC = {
  schema_version: 1,
  connector: { fqn: 'acme/oauth', version: '1.0.0', title: 'Items behind OAuth' },
  hosts: [HOST],
  credential: { kind: 'oauth2', scopes: ['openid', 'offline_access'] },
  operations: [
    {
      name: 'get-item',
      method: 'GET',
      path: '/items/{id}',
      effect: 'read',
      inputs: [{ name: 'id', in: 'path', required: true }],
    },
  ],
};
const RUN = { connector_fqn: 'acme/oauth', operation: 'get-item', args: { id: '7' } };
const SHORT_SECONDS = 2;
const LONG_SECONDS = 3600;

const withId = z.object({ id: z.string() });
const begun = z.object({ authorization_url: z.string() });
const record = z.object({ credential: z.object({ state: z.string() }) });

let world: World;
let provider: OAuthProvider;
let connectorId: string;
let session: Session;
let lifetimeSeconds = LONG_SECONDS;

beforeAll(async () => {
  world = await startWorld([HOST]);
  const redirectUris = [`${world.svc.runFile.control_url}/auth/connectors/callback`];
  provider = await startOAuthProvider({ redirectUris, accessTokenSeconds: () => lifetimeSeconds });
  connectorId = withId.parse((await world.svc.api('POST', '/v1/connectors', SPEC)).body).id;
  const stored = await world.svc.api('PUT', `/v1/connectors/${connectorId}/credential`, {
    kind: 'oauth2',
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    authorization_url: `${provider.origin}/auth?prompt=login`,
    token_url: `${provider.origin}/token`,
  });
  expectStatus(stored, 200);
});
afterAll(async () => {
  await world.stop();
  await provider.stop();
});
beforeEach(async () => {
  world.upstream.reset();
  lifetimeSeconds = SHORT_SECONDS;
  await authorise();
  session = await world.svc.session();
});
afterEach(() => {
  provider.onToken(null);
  provider.onTokenAnswer(null);
});

/** Authorises in the browser, as a person does. */
async function authorise(): Promise<void> {
  const started = await world.svc.api('POST', `/v1/connectors/${connectorId}/credential/authorize`, {});
  const back = await provider.authorise(begun.parse(started.body).authorization_url);
  const page = await fetch(back);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('acme/oauth is authorised')]);
}

async function throughProxy(): Promise<number> {
  const client = await connectThroughProxy(session, HOST);
  const { status } = await client.exchange(`GET /items/7 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
  client.close();
  return status;
}

async function runInSidecar(): Promise<number> {
  const headers = { authorization: `Bearer ${session.token}`, 'content-type': 'application/json' };
  const url = `${world.svc.runFile.proxy_url}/v1/connector-operations/run`;
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(RUN) })).status;
}

async function runInWorker(): Promise<number> {
  return (await world.svc.api('POST', '/v1/connector-operations/run', RUN)).status;
}

function tokensSent(): Set<string | undefined> {
  return new Set(world.upstream.requests.map((request) => request.header('authorization')));
}

/** Waits until the current token has certainly expired. */
function tokenIsOver(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SHORT_SECONDS * 1000));
}

/** Kills the control plane like a crash, and waits until it is up again. */
async function crash(): Promise<void> {
  kill(world.svc.runFile.control_pid, 'SIGKILL');
  await world.svc.comesBack();
}

/** Simulates the end of the 45 seconds during which the killed control plane could still be refreshing. */
async function leaseIsOver(): Promise<void> {
  const client = createClient({ url: pathToFileURL(join(world.svc.home, 'control.db')).href, timeout: 5_000 });
  const { rowsAffected } = await client.execute(
    'UPDATE connector_credentials SET lease_until = 1 WHERE lease IS NOT NULL',
  );
  client.close();
  expect(rowsAffected).toBe(1);
}

async function state(): Promise<string> {
  return record.parse((await world.svc.api('GET', `/v1/connectors/${connectorId}`)).body).credential.state;
}

/** How often the token endpoint was called during the work. */
async function tokenCallsDuring(work: () => Promise<void>): Promise<number> {
  const before = provider.tokenCalls();
  await work();
  return provider.tokenCalls() - before;
}

describe('an expired access token', () => {
  it('is refreshed once for a hundred concurrent requests, through the proxy and both run endpoints', async () => {
    expect([await throughProxy(), await runInSidecar(), await runInWorker()]).toEqual([200, 200, 200]);
    const before = tokensSent();
    world.upstream.requests.length = 0;
    await tokenIsOver();
    lifetimeSeconds = LONG_SECONDS;
    const calls = await tokenCallsDuring(async () => {
      const entrances = [throughProxy, runInSidecar, runInWorker, throughProxy];
      const statuses = await Promise.all(Array.from({ length: 25 }, () => entrances.map((ask) => ask())).flat());
      expect(new Set(statuses)).toEqual(new Set([200]));
    });
    expect([calls, world.upstream.requests.length]).toEqual([1, 100]);
    const [fresh, ...more] = tokensSent();
    expect([more, before.has(fresh)]).toEqual([[], false]);
    const token = String(fresh).slice('Bearer '.length);
    expect(token).toMatch(/^[\w-]{30,}$/);
    for (const secret of [token, CLIENT_SECRET]) expect(searchFiles(world.svc.home, secret).holding).toEqual([]);
    expect(JSON.stringify(await world.svc.events())).not.toContain(token);
  });
});

describe('a control plane that is told to stop', () => {
  it('in the middle of a refresh finishes it first, even if its caller has gone', async () => {
    await tokenIsOver();
    const decided = Promise.withResolvers<void>();
    provider.onTokenAnswer(async () => {
      decided.resolve();
      await new Promise((resolve) => setTimeout(resolve, 1_500));
    });
    lifetimeSeconds = LONG_SECONDS;
    const calls = await tokenCallsDuring(async () => {
      const cut = runInWorker().catch(() => 'cut');
      await decided.promise;
      kill(world.svc.runFile.control_pid, 'SIGTERM');
      await world.svc.comesBack();
      expect(await cut).toBe('cut');
      expect([await runInWorker(), await throughProxy(), await state()]).toEqual([200, 200, 'ready']);
    });
    expect(calls).toBe(1);
  });
});

describe('a control plane that is killed', () => {
  it('after a refresh and before the reply has lost nothing: the rotated refresh token is used', async () => {
    await tokenIsOver();
    const arrived = Promise.withResolvers<void>();
    world.upstream.onRequest(() => arrived.resolve());
    const cut = runInWorker().catch(() => 'cut');
    await arrived.promise;
    await crash();
    expect(await cut).toBe('cut');
    world.upstream.onRequest((exchange) => exchange.write(reply(200)));
    await tokenIsOver();
    lifetimeSeconds = LONG_SECONDS;
    // The provider accepts each refresh token once, and withdraws the authorisation if an old one is used again.
    expect(await tokenCallsDuring(async () => expect(await runInWorker()).toBe(200))).toBe(1);
    expect([await throughProxy(), await runInSidecar(), await state()]).toEqual([200, 200, 'ready']);
  });

  it('before the provider has decided asks again with the same refresh token', async () => {
    await tokenIsOver();
    const asked = Promise.withResolvers<void>();
    provider.onToken(() => {
      asked.resolve();
      return new Promise(() => undefined);
    });
    void runInWorker().catch(() => undefined);
    await asked.promise;
    await crash();
    provider.onToken(null);
    await leaseIsOver();
    lifetimeSeconds = LONG_SECONDS;
    expect([await runInWorker(), await throughProxy(), await state()]).toEqual([200, 200, 'ready']);
  });

  it('while the reply of a strictly rotating provider is in transit asks a person, and sends no expired token', async () => {
    await tokenIsOver();
    const decided = Promise.withResolvers<void>();
    provider.onTokenAnswer(() => {
      decided.resolve();
      return new Promise(() => undefined);
    });
    void runInWorker().catch(() => undefined);
    await decided.promise;
    await crash();
    provider.onTokenAnswer(null);
    await leaseIsOver();
    const refused = await world.svc.api('POST', '/v1/connector-operations/run', RUN);
    expect(refused).toMatchObject({ status: 503, body: { error: { code: 'reauthorisation_required' } } });
    expect(JSON.stringify(refused.body)).toContain('svc connector authorize acme/oauth');
    expect([await throughProxy(), await runInSidecar()]).toEqual([503, 503]);
    expect([world.upstream.requests, await state()]).toEqual([[], 'reauthorisation_required']);
    lifetimeSeconds = LONG_SECONDS;
    await authorise();
    await waitFor('the sidecar to know the new authorisation', async () => (await throughProxy()) === 200);
    expect(await runInWorker()).toBe(200);
  });
});
