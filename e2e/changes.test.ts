import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { plantSecret } from './support/planted_secret.ts';
import { ConnectionEnded, connectThroughProxy, type SeenReply } from './support/raw_client.ts';
import type { Session } from './support/svc.ts';
import { waitFor } from './support/wait_for.ts';
import { startWorld, type World } from './support/world.ts';

// The effect of changes to bindings and secrets on running sessions, and whose secret a binding may name.

const HOST = 'api.example.test';
const SHARED = 'shared.example.test';
const BEARER = { scheme: 'bearer', credential_ref: 'vault://user/key' };
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([HOST, SHARED]);
});
afterAll(() => world.stop());
beforeEach(async () => {
  world.upstream.reset();
  session = await world.svc.session();
});

/**
 * A credentialed reply that is in progress when the sidecar learns of a change is cut off, and a sidecar that is revoked ends
 * its tunnels, also during their handshake: the request is repeated.
 */
async function get(host = HOST): Promise<SeenReply> {
  for (;;) {
    const client = await connectThroughProxy(session, host).catch((error: unknown) => {
      if (
        error instanceof ConnectionEnded ||
        (error instanceof Error && 'code' in error && error.code === 'ECONNRESET')
      )
        return null;
      throw error;
    });
    if (client === null) continue;
    client.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    const seen = await client.reply();
    client.close();
    if (seen !== null) return seen;
  }
}

/** The credential that the upstream received; `refused` if the request does not get there. */
async function credentialSeen(host = HOST): Promise<readonly string[] | 'refused'> {
  return (await get(host)).status === 200 ? world.upstream.last().headers('authorization') : 'refused';
}

describe('in a running session', () => {
  it('a new binding, a new value and a removed binding take effect without a restart', async () => {
    const [first, second] = [plantSecret(), plantSecret()];
    expect(await credentialSeen()).toEqual([]);
    await world.svc.secret('user/key', first);
    const id = await world.svc.binding({ ...BEARER, host: HOST });
    await waitFor('the binding', async () => (await credentialSeen())[0] === `Bearer ${first}`);
    await world.svc.secret('user/key', second);
    await waitFor('the new value', async () => (await credentialSeen())[0] === `Bearer ${second}`);
    await world.svc.api('DELETE', `/v1/host-bindings/${id}`);
    await waitFor('passthrough', async () => (await credentialSeen()).length === 0);
    expect((await world.svc.api('DELETE', '/v1/secrets/user/key')).status).toBe(204);
  });
});

describe('a secret in use', () => {
  it('cannot be deleted, and the error names what uses it', async () => {
    await world.svc.secret('user/key', plantSecret());
    const id = await world.svc.binding({ ...BEARER, host: HOST });
    const refused = await world.svc.api('DELETE', '/v1/secrets/user/key');
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'secret_in_use' } } });
    expect(JSON.stringify(refused.body)).toContain(id);
    await world.svc.api('DELETE', `/v1/host-bindings/${id}`);
    expect((await world.svc.api('DELETE', '/v1/secrets/user/key')).status).toBe(204);
  });
});

describe('the namespace of a reference', () => {
  it('is that of its binding: a personal binding never gets an enterprise secret, and overrides an enterprise binding', async () => {
    const [personal, shared] = [plantSecret(), plantSecret()];
    const stored = await world.svc.api('POST', '/v1/secrets', { path: 'user/key', value: shared, owner: 'enterprise' });
    expect(stored.status).toBe(201);
    await world.svc.binding({ ...BEARER, host: SHARED, owner: 'enterprise' });
    const own = await world.svc.binding({ ...BEARER, host: HOST });
    session = await world.svc.session();
    expect(await credentialSeen(SHARED)).toEqual([`Bearer ${shared}`]);
    const refused = await get(HOST);
    expect(refused.status).toBe(503);
    expect(refused.json()).toMatchObject({ error: { code: 'credential_unavailable' } });
    await world.svc.secret('user/key', personal);
    await world.svc.binding({ ...BEARER, host: SHARED });
    session = await world.svc.session();
    expect(await credentialSeen(HOST)).toEqual([`Bearer ${personal}`]);
    expect(await credentialSeen(SHARED)).toEqual([`Bearer ${personal}`]);
    await world.svc.api('DELETE', `/v1/host-bindings/${own}`);
  });
});

describe('svc explain', () => {
  it('says what the proxy does', async () => {
    const explain = await world.svc.ok(['explain', 'GET', `https://${SHARED}/v1/items`]);
    expect(explain).toMatch(/binding/);
    expect(await world.svc.ok(['explain', 'GET', 'https://unbound.example.test/'])).toMatch(/passthrough/);
  });
});

describe('a sidecar that is revoked', () => {
  const sidecars = z.object({ items: z.array(z.object({ id: z.string() })) });

  it('refuses every request within one poll, also with cached data', async () => {
    expect((await get(SHARED)).status).toBe(200);
    const { items } = sidecars.parse((await world.svc.api('GET', '/v1/sidecars')).body);
    expect(items).toHaveLength(1);
    expect((await world.svc.api('DELETE', `/v1/sidecars/${items[0]?.id}`)).status).toBe(204);
    await waitFor('the refusal', async () => (await get(SHARED)).status === 503);
    expect((await get(SHARED)).json()).toMatchObject({ error: { code: 'control_plane_unavailable' } });
    expect((await get(HOST)).status).toBe(503);
  });
});
