import { compactDecrypt, exportJWK, generateKeyPair } from 'jose';
import { createdView, viewReply } from '../shared/wire/approval_views.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { plantSecret } from './support/planted_secret.ts';
import { connectThroughProxy } from './support/raw_client.ts';
import type { ApiReply, Session } from './support/svc.ts';
import { reply } from './support/tls_upstream.ts';
import { startWorld, type World } from './support/world.ts';

// Specification section 1, order 1: requests to operations of installed connectors, with a real control plane beside the sidecar.

const HOST = 'connector.example.test';
const SHARED_HOST = 'shared.example.test';
const input = { name: 'id', in: 'path', type: 'string', required: true };
const SPEC = {
  schema_version: 1,
  connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items' },
  hosts: [HOST],
  credential: { kind: 'api_key' },
  operations: [
    {
      name: 'get-item',
      method: 'GET',
      path: '/items/{id}',
      effect: 'read',
      inputs: [input],
      audit: [{ name: 'item', source: 'path.id' }],
    },
    {
      name: 'delete-item',
      method: 'DELETE',
      path: '/items/{id}',
      effect: 'delete',
      approval: 'required',
      inputs: [input],
    },
  ],
};
const installed = z.object({ id: z.string() });
const ran = z.object({ status: z.literal('proxied'), upstream_status: z.number(), body_base64: z.string() });
const events = z.object({
  items: z.array(z.object({ type: z.string(), data: z.record(z.string(), z.unknown()) })),
});
const approvals = z.object({ items: z.array(z.object({ id: z.string(), state: z.string(), summary: z.string() })) });

let world: World;
let session: Session;
let secret: string;

beforeAll(async () => {
  world = await startWorld([HOST, SHARED_HOST]);
  secret = plantSecret();
  const connector = await world.svc.api('POST', '/v1/connectors', SPEC);
  const { id } = installed.parse(connector.body);
  const stored = await world.svc.api('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: secret });
  if (stored.status !== 200) throw new Error(`the credential was not stored: ${stored.status}`);
});
afterAll(() => world.stop());
beforeEach(async () => {
  world.upstream.reset();
  world.upstream.onRequest((exchange) => {
    exchange.write(reply(200, `{"got":"${secret}"}`, ['Set-Cookie: a=b']));
  });
  session = await world.svc.session();
});

/** Calls the local API with the session's token. */
async function local(path: string, body: object): Promise<ApiReply> {
  const response = await fetch(`${world.svc.runFile.proxy_url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${session.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

function runHere(operation: string): Promise<ApiReply> {
  return local('/v1/connector-operations/run', { connector_fqn: 'acme/items', operation, args: { id: '7' } });
}

async function sendRequest(request: string, host = HOST): Promise<{ readonly status: number; readonly raw: string }> {
  const client = await connectThroughProxy(session, host);
  const seen = await client.exchange(request);
  client.close();
  return { status: seen.status, raw: seen.raw.toString('latin1') };
}

async function connectorEvents(): Promise<z.infer<typeof events>['items']> {
  const page = await world.svc.api('GET', `/v1/audit-events?type=connector.&session=${session.sessionId}`);
  return events.parse(page.body).items;
}

/** The held request, as its sidecar shows it to a page. */
async function viewOf(id: string): Promise<unknown> {
  const { publicKey, privateKey } = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
  const asked = await world.svc.api('POST', `/v1/approvals/${id}/views`, { key: await exportJWK(publicKey) });
  const { id: view } = createdView.parse(asked.body);
  const read = async () =>
    viewReply.parse((await world.svc.api('GET', `/v1/approvals/${id}/views/${view}`)).body).sealed;
  const sealed = await expect.poll(read).not.toBeNull().then(read);
  const { plaintext } = await compactDecrypt(sealed ?? '', privateKey);
  return JSON.parse(new TextDecoder().decode(plaintext));
}

describe('an operation of an installed connector', () => {
  it('gives the same reply through the proxy, the local API and the request endpoint, masked and without cookies', async () => {
    const { status, raw } = await sendRequest(
      `GET /items/7 HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer own\r\n\r\n`,
    );
    const masked = `{"got":"${'*'.repeat(secret.length)}"}`;
    expect([status, raw.endsWith(masked), /set-cookie/i.test(raw)]).toEqual([200, true, false]);
    const boundary = await local('/v1/sandbox-proxy/requests', {
      connector_fqn: 'acme/items',
      operation: 'get-item',
      method: 'GET',
      upstream_url: `https://${HOST}/items/7`,
    });
    for (const { body } of [await runHere('get-item'), boundary]) {
      const { upstream_status: upstream, body_base64: text } = ran.parse(body);
      expect([upstream, Buffer.from(text, 'base64').toString()]).toEqual([200, masked]);
    }
    for (const request of world.upstream.requests) {
      expect(request.text).toMatch(/^GET \/items\/7 HTTP\/1\.1\r\n/);
      expect(request.text).toContain(`\r\nAuthorization: Bearer ${secret}\r\n`);
      expect(request.text).not.toContain('own');
    }
    expect(world.upstream.requests).toHaveLength(3);
    await session.end();
    const recorded = await connectorEvents();
    // The newest is first.
    expect(recorded.map(({ type, data }) => [type, data['svc.proxy.source'], data['svc.connector.fields']])).toEqual(
      ['generated_connector_shim', 'daemon_request_boundary', 'transparent_connect_tls'].map((source) => [
        'connector.proxy.proxied',
        source,
        { item: '7' },
      ]),
    );
    expect(JSON.stringify(recorded)).not.toContain(secret);
  });

  it.each(['//items/7', '/%69tems/7', '/x/..%2fitems/7', '/items/7/'])(
    'cannot be bypassed: %s is refused',
    async (path) => {
      const seen = await sendRequest(`GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
      expect([seen.status, seen.raw.includes('ambiguous_target')]).toEqual([400, true]);
      expect(world.upstream.requests).toEqual([]);
    },
  );

  it('that needs an approval is held until a person decides, and the approval covers that request', async () => {
    const held = sendRequest(`DELETE /items/7 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    const pending = async (): Promise<z.infer<typeof approvals>['items']> =>
      approvals.parse((await world.svc.api('GET', '/v1/approvals?state=pending')).body).items;
    await expect.poll(async () => (await pending()).length).toBe(1);
    const [approval] = await pending();
    expect(approval?.summary).toContain('delete-item');
    expect(world.upstream.requests).toEqual([]);
    expect(await viewOf(approval?.id ?? '')).toMatchObject({
      approval_id: approval?.id,
      line: `DELETE https://${HOST}/items/7`,
      text: '',
    });
    await world.svc.ok(['approvals', 'approve', approval?.id ?? '', '--times', '2']);
    expect((await held).status).toBe(200);
    expect(world.upstream.requests).toHaveLength(1);
    // By the grant, whatever the query is.
    expect((await sendRequest(`DELETE /items/7?force=1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)).status).toBe(200);
    expect(world.upstream.requests).toHaveLength(2);
    const again = runHere('delete-item');
    await expect.poll(async () => (await pending()).length).toBe(1);
    const [other] = await pending();
    await world.svc.api('POST', `/v1/approvals/${other?.id}/decide`, { decision: 'deny' });
    expect(await again).toMatchObject({ status: 403, body: { error: { code: 'approval_denied' } } });
    expect(world.upstream.requests).toHaveLength(2);
  });
});

describe('a connector beside a binding of its host, served by the same secret', () => {
  const own = { ...SPEC, connector: { ...SPEC.connector, fqn: 'acme/shared' }, hosts: [SHARED_HOST] };

  /** The status of a request in a session that has the newest policy, its reply, and the credential that the upstream got. */
  async function send(method: string): Promise<readonly [status: number, raw: string, sent: string | null]> {
    world.upstream.reset();
    world.upstream.onRequest((exchange) => exchange.write(reply(200, '{}')));
    session = await world.svc.session();
    const { status, raw } = await sendRequest(
      `${method} /items/7 HTTP/1.1\r\nHost: ${SHARED_HOST}\r\n\r\n`,
      SHARED_HOST,
    );
    return [status, raw, world.upstream.requests[0]?.header('authorization') ?? null];
  }

  it('changes nothing while it is inactive, then has its operations, and never gives them back to the binding', async () => {
    const { svc } = world;
    const shared = plantSecret();
    const byBinding = [200, expect.any(String), `Bearer ${shared}`];
    await svc.api('POST', '/v1/secrets', { path: 'user/shared', value: shared });
    const binding = { host: SHARED_HOST, scheme: 'bearer', credential_ref: 'vault://user/shared', effect: 'write' };
    await svc.api('POST', '/v1/host-bindings', binding);
    const { id } = installed.parse((await svc.api('POST', '/v1/connectors', own)).body);
    expect(await send('DELETE')).toEqual(byBinding);

    const path = `/v1/connectors/${id}/credential`;
    await svc.api('PUT', path, { kind: 'api_key', credential_ref: 'vault://user/shared' });
    expect(await send('GET')).toEqual(byBinding);
    await session.end();
    expect((await connectorEvents()).map(({ data }) => data['svc.connector.credential_ref'])).toEqual([
      'vault://user/shared',
    ]);
    expect(await svc.api('DELETE', '/v1/secrets/user/shared')).toMatchObject({ status: 409 });

    // Whoever takes its credential away does not get its operations without an approval.
    await svc.api('DELETE', path);
    for (const method of ['GET', 'DELETE']) {
      expect(await send(method)).toEqual([503, expect.stringContaining('credential_unavailable'), null]);
    }

    await svc.api('DELETE', `/v1/connectors/${id}`);
    await svc.api('POST', '/v1/connectors', own);
    expect(await send('DELETE')).toEqual(byBinding);
  });
});
