import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { auditEventsPage, auditVerification } from '../../shared/wire/audit_events.ts';
import {
  CREDENTIALS_TYP,
  credentialsPayload,
  EVENTS_TYP,
  eventsPayload,
  SNAPSHOT_KNOWS_ALSO_HEADER,
  SNAPSHOT_KNOWS_TUNNELS,
  SNAPSHOT_PROOF_HEADER,
  SNAPSHOT_PROOF_TYP,
  SNAPSHOT_TYP,
  snapshotPayload,
  snapshotProof,
} from '../../shared/wire/channel.ts';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { newId } from '../../shared/wire/ids.ts';
import { mcpServerRecord, readSnapshotMcpServers } from '../../shared/wire/mcp/mcp_servers.ts';
import { tunnelHostRecord } from '../../shared/wire/hosts/tunnel_hosts.ts';
import { createdToken, keySet } from '../../shared/wire/tokens.ts';
import { fetchAs } from '../support/fetch_as.ts';
import { describeCodedReplies } from './coded_replies_suite.ts';
import type { ControlPlaneUnderTest } from './programs.ts';
import { TestSidecar } from './sidecar_client.ts';

const page = z.object({ items: z.array(z.record(z.string(), z.unknown())), next_cursor: z.string().nullable() });

/** A control plane, and a person who uses its API. */
export interface ApiUnderTest {
  readonly url: string;
  /** What every call has, such as the headers of a proxy in front of it. */
  readonly headers: Readonly<Record<string, string>>;
  /** What the person's program authenticates with now. */
  readonly bearer: () => Promise<string>;
  readonly output: () => string;
  readonly stop: () => Promise<void>;
}

/** Which control plane it is. */
interface Kind {
  readonly runtime: string;
  readonly mode: 'local' | 'hosted';
}

/** A local control plane, used with its key. */
async function openLocal(start: () => Promise<ControlPlaneUnderTest>): Promise<ApiUnderTest> {
  const control = await start();
  return { ...control, headers: {}, bearer: async () => control.localKey };
}

/** The tour of a local control plane, and how it signs a browser in. */
export function describeLocalApi(runtime: string, start: () => Promise<ControlPlaneUnderTest>): void {
  let control: ApiUnderTest;
  describeControlApi(
    { runtime, mode: 'local' },
    async () => {
      control = await openLocal(start);
      return control;
    },
    () => describeSignInLink(() => control),
  );
}

/** The same tour of the control API on every runtime, hosted or not. The tests of one runtime build on each other. */
export function describeControlApi(
  { runtime, mode }: Kind,
  start: () => Promise<ApiUnderTest>,
  describeMore: () => void = () => undefined,
): void {
  describe(`the control API on ${runtime}`, () => {
    const secret = `planted-${randomBytes(16).toString('hex')}`;
    const replies: string[] = [];
    let control: ApiUnderTest;
    let sidecar: TestSidecar;

    const send = async (path: string, init?: RequestInit) => {
      const headers = { ...Object.fromEntries(new Headers(init?.headers)), ...control.headers };
      const reply = await fetch(control.url + path, { ...init, headers });
      if (reply.headers.get('content-type')?.startsWith('text/event-stream') !== true)
        replies.push(await reply.clone().text());
      return reply;
    };
    const asUser = async (method: string, path: string, body?: unknown) =>
      send(path, {
        method,
        headers: { authorization: `Bearer ${await control.bearer()}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });

    const explain = async (method: string, url: string) =>
      (await asUser('POST', '/v1/host-bindings/explain', { method, url })).json();

    /** The hosts of the snapshot that are not intercepted. */
    const tunnelHosts = async (headers: Record<string, string> = {}) => {
      const reply = await sidecar.call('GET', '/v1/sidecar/snapshot?wait=0', { headers });
      return (await sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload)).tunnel_hosts;
    };

    const prune = async (hoursBack: number) => {
      const before = new Date(Date.now() - hoursBack * 3_600_000).toISOString();
      const reply = await asUser('POST', '/v1/audit-events/prune', { before });
      return [reply.status, await reply.json()];
    };

    beforeAll(async () => {
      control = await start();
      sidecar = await TestSidecar.make(send);
    });
    afterAll(() => control.stop());

    test('is healthy and describes itself', async () => {
      expect(await (await send('/v1/health')).json()).toMatchObject({ status: 'ok', mode });
      const document = z.object({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) });
      expect(Object.keys(document.parse(await (await send('/openapi.json')).json()).paths)).toContain(
        '/v1/secrets/{path}',
      );
      expect(await (await send('/docs')).text()).toContain('/v1/host-bindings/explain');
    });

    describeCodedReplies(() => control, { isPlatformDoing: runtime.startsWith('workerd') });

    test('refuses callers who are not signed in', async () => {
      const reply = await send('/v1/secrets', { headers: { authorization: 'Bearer svc_local_wrong' } });
      expect([reply.status, await reply.json()]).toMatchObject([401, { error: { code: 'unauthenticated' } }]);
    });

    test('publishes its keys, and creates a personal token that works within its scopes', async () => {
      const { keys } = keySet.parse(await (await send('/.well-known/jwks.json')).json());
      expect(keys).toHaveLength(1);
      const made = await asUser('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'] });
      const { id, token } = createdToken.parse(await made.json());
      const asToken = async (path: string) =>
        (await send(path, { headers: { authorization: `Bearer ${token}` } })).status;
      expect([await asToken('/v1/me'), await asToken('/v1/secrets')]).toEqual([200, 403]);
      expect((await asUser('DELETE', `/v1/tokens/${id}`)).status).toBe(204);
      expect(await asToken('/v1/me')).toBe(401);
    });

    test('stores a secret and binds it', async () => {
      expect((await asUser('POST', '/v1/secrets', { path: 'user/demo', value: secret })).status).toBe(201);
      expect((await asUser('POST', '/v1/secrets', { path: 'user/demo', value: secret })).status).toBe(200);
      const binding = {
        host: 'api.example.test',
        scheme: 'bearer',
        credential_ref: 'vault://user/demo',
        effect: 'read',
      };
      const bound = await asUser('POST', '/v1/host-bindings', binding);
      expect([bound.status, bound.headers.get('svc-policy-version')]).toEqual([201, '3']);
      expect(await (await asUser('POST', '/v1/host-bindings', binding)).json()).toMatchObject({
        error: { code: 'duplicate_binding' },
      });
      expect(await (await asUser('DELETE', '/v1/secrets/user/demo')).json()).toMatchObject({
        error: { code: 'secret_in_use' },
      });
      const listed = page.parse(await (await asUser('GET', '/v1/secrets')).json());
      expect(listed.items).toMatchObject([{ path: 'user/demo', version: 2 }]);
    });

    test('explains what the proxy would do', async () => {
      expect(await explain('GET', 'https://api.example.test/x?q=1')).toMatchObject({ decision: 'binding', path: '/x' });
      expect(await explain('POST', 'https://api.example.test/')).toMatchObject({ code: 'effect_not_allowed' });
      expect(await explain('GET', 'https://other.example.test/')).toMatchObject({ decision: 'passthrough' });
    });

    test('sends a sidecar its signed snapshot, or a signed 304 if it has it', async () => {
      expect((await sidecar.enrol(await control.bearer())).status).toBe(201);
      const first = await sidecar.call('GET', '/v1/sidecar/snapshot?wait=0');
      const snapshot = await sidecar.verify(await first.text(), SNAPSHOT_TYP, snapshotPayload);
      expect(snapshot).toMatchObject({ sidecar_id: sidecar.enrolled.sidecar_id, version: 3 });
      expect(snapshot.host_bindings).toMatchObject([{ host: 'api.example.test' }]);
      const held = { 'if-none-match': first.headers.get('etag') ?? '' };
      const again = await sidecar.call('GET', '/v1/sidecar/snapshot?wait=1', { headers: held });
      expect(again.status).toBe(304);
      const proof = again.headers.get(SNAPSHOT_PROOF_HEADER) ?? '';
      expect(await sidecar.verify(proof, SNAPSHOT_PROOF_TYP, snapshotProof)).toMatchObject({ version: 3 });
    });

    test('answers a waiting poll when the policy changes', async () => {
      const waiting = sidecar.call('GET', '/v1/sidecar/snapshot?wait=20', { headers: { 'if-none-match': '"3"' } });
      await asUser('POST', '/v1/secrets', { path: 'user/other', value: `${secret}-2` });
      expect([(await waiting).status, (await waiting).headers.get('etag')]).toEqual([200, '"4"']);
    });

    test('releases a credential, sealed to the sidecar', async () => {
      const body = {
        request_id: crypto.randomUUID(),
        credentials: [
          { owner: 'personal', path: 'user/demo' },
          { owner: 'personal', path: 'user/other' },
        ],
      };
      const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
      const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
      expect(payload).toMatchObject({ request_id: body.request_id, missing: [{ path: 'user/other' }] });
      expect(await sidecar.unseal(payload.credentials[0]?.sealed ?? '')).toEqual({ value: secret });
    });

    test('releases a credential without a binding if the host and the reason are given', async () => {
      const reference = { owner: 'personal', path: 'user/other' };
      const body = { request_id: crypto.randomUUID(), reference, host: 'db.example.test', reason: 'not HTTP' };
      const reply = await sidecar.call('POST', '/v1/sidecar/unsealed', { body });
      const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
      expect(payload).toMatchObject({ request_id: body.request_id, missing: [] });
      expect(await sidecar.unseal(payload.credentials[0]?.sealed ?? '')).toEqual({ value: `${secret}-2` });
      const shared = { ...body, request_id: crypto.randomUUID(), reference: { ...reference, owner: 'enterprise' } };
      expect((await sidecar.call('POST', '/v1/sidecar/unsealed', { body: shared })).status).toBe(400);
    });

    test('finds which values are stored secrets', async () => {
      const reply = await asUser('POST', '/v1/secrets/check', { values: ['other', `${secret}-2`, secret] });
      expect(await reply.json()).toEqual({
        matches: [
          { index: 1, path: 'user/other', owner: 'personal' },
          { index: 2, path: 'user/demo', owner: 'personal' },
        ],
      });
    });

    test('stores events once, and streams, lists and verifies them', async () => {
      const stream = await asUser('GET', '/v1/audit-events/stream?type=sandbox.proxy.');
      const event = passthroughEvent();
      for (const _ of [1, 2]) {
        const sent = await sidecar.call('POST', '/v1/sidecar/events', { body: { events: [event] } });
        const outcome = await sidecar.verify(await sent.text(), EVENTS_TYP, eventsPayload);
        expect(outcome).toMatchObject({ accepted: [event.id], rejected: [] });
      }
      expect(await firstFrame(stream)).toMatchObject({ id: event.id, sidecar_id: sidecar.enrolled.sidecar_id });
      const listed = auditEventsPage.parse(await (await asUser('GET', '/v1/audit-events?host=up.example.test')).json());
      expect(listed.items.map(({ id }) => id)).toEqual([event.id]);
      const verified = auditVerification.parse(await (await asUser('GET', '/v1/audit-events/verify')).json());
      expect(verified).toMatchObject({ ok: true, first_break: null });
      expect(verified.chains).toHaveLength(2);
    });

    test('removes no event of the last day', async () => {
      expect(await prune(25)).toMatchObject([200, { removed: 0, finished: true, broken: [] }]);
      expect(await prune(23)).toMatchObject([400, { error: { code: 'invalid_input' } }]);
    });

    test('stores an MCP server with its credential, sends both to a sidecar, and rolls it back', async () => {
      const server = {
        name: 'files',
        description: 'Files',
        command: ['npx', '-y', 'a-package@1.2.3'],
        env: { KEY: 'x vault://mcp-servers/{id}/KEY' },
      };
      const made = await asUser('POST', '/v1/mcp-servers', server);
      const { id, credentials } = mcpServerRecord.parse(await made.json());
      expect([made.status, credentials]).toMatchObject([201, [{ name: 'KEY', required: true, set: false }]]);
      expect(await (await asUser('POST', '/v1/mcp-servers', server)).json()).toMatchObject({
        error: { code: 'name_taken' },
      });
      const body = { env_var_name: 'KEY', secret_value: `${secret}-3` };
      expect((await asUser('POST', `/v1/mcp-servers/${id}/credentials`, body)).status).toBe(200);
      // A PUT replaces every field except the read-only ones: an omitted field gets its default.
      const { description: _, ...less } = server;
      const put = mcpServerRecord.parse(
        await (await asUser('PUT', `/v1/mcp-servers/${id}`, { ...less, enabled: false })).json(),
      );
      expect(put).toMatchObject({ id, description: '', mode: 'local', status: 'stopped', enabled: false, revision: 2 });
      expect(put.credentials).toMatchObject([{ name: 'KEY', set: true }]);
      for (const field of ['status', 'created_at', 'updated_at']) {
        expect((await asUser('PUT', `/v1/mcp-servers/${id}`, { ...server, [field]: 'running' })).status).toBe(400);
      }
      const back = await asUser('POST', `/v1/mcp-servers/${id}/rollback`, { revision: 1 });
      expect(await back.json()).toMatchObject({
        enabled: true,
        description: 'Files',
        revision: 3,
        credentials: [{ set: true }],
      });
      const report = { id, state: 'running', last_error: null, checked_at: new Date().toISOString() };
      const said = await sidecar.call('POST', '/v1/sidecar/mcp-health', { body: { servers: [report] } });
      expect(said.status).toBe(204);
      const held = await sidecar.call('GET', '/v1/sidecar/snapshot');
      const { mcp_servers } = await sidecar.verify(await held.text(), SNAPSHOT_TYP, snapshotPayload);
      expect(readSnapshotMcpServers(mcp_servers)).toMatchObject({ servers: [{ server: { id } }], problems: [] });
      const request = {
        request_id: crypto.randomUUID(),
        credentials: [{ owner: 'personal', path: `mcp-servers/${id}/KEY` }],
      };
      const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body: request });
      const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
      expect(await sidecar.unseal(payload.credentials[0]?.sealed ?? '')).toEqual({ value: `${secret}-3` });
      const listed = page.parse(await (await asUser('GET', '/v1/mcp-servers')).json());
      expect(listed.items).toMatchObject([{ status: 'stopped', health: { state: 'running' } }]);
      expect((await asUser('DELETE', `/v1/mcp-servers/${id}`)).status).toBe(204);
      expect(JSON.stringify(await (await asUser('GET', '/v1/secrets')).json())).not.toContain(id);
    });

    test('lists a host that is not intercepted, and sends the list to a sidecar that knows of it', async () => {
      const added = await asUser('POST', '/v1/tunnel-hosts', { host: 'Pinned.example.test' });
      const record = tunnelHostRecord.parse(await added.json());
      expect([added.status, record.host]).toEqual([201, 'pinned.example.test']);
      const bound = await asUser('POST', '/v1/tunnel-hosts', { host: 'api.example.test' });
      expect(await bound.json()).toMatchObject({ error: { code: 'conflict' } });
      const knows = { [SNAPSHOT_KNOWS_ALSO_HEADER]: SNAPSHOT_KNOWS_TUNNELS };
      expect([await tunnelHosts(), await tunnelHosts(knows)]).toEqual([undefined, ['pinned.example.test']]);
      expect((await asUser('DELETE', `/v1/tunnel-hosts/${record.id}`)).status).toBe(204);
      expect(await tunnelHosts(knows)).toEqual([]);
    });

    test('refuses a replayed call', async () => {
      const claims = { jti: crypto.randomUUID() };
      const body = { events: [passthroughEvent()] };
      expect((await sidecar.call('POST', '/v1/sidecar/events', { body, claims })).status).toBe(200);
      const replayed = await sidecar.call('POST', '/v1/sidecar/events', { body, claims });
      expect(await replayed.json()).toMatchObject({ error: { code: 'replayed_call' } });
    });

    describeMore();

    test('revokes a sidecar at its next call', async () => {
      await asUser('DELETE', `/v1/sidecars/${sidecar.enrolled.sidecar_id}`);
      const refused = await sidecar.call('GET', '/v1/sidecar/snapshot');
      expect(await refused.json()).toMatchObject({ error: { code: 'sidecar_revoked' } });
    });

    test('showed the secret in no reply and no log line', async () => {
      expect(replies.length).toBeGreaterThan(20);
      expect(replies.filter((text) => text.includes(secret))).toEqual([]);
      expect(control.output()).not.toContain(secret);
      expect(control.output()).not.toContain(await control.bearer());
    });
  });
}

/** Signs a browser in by a link, which only a local control plane gives to whoever has its key. */
function describeSignInLink(control: () => ApiUnderTest): void {
  test('signs a browser in once', async () => {
    const { url, bearer } = control();
    const headers = { authorization: `Bearer ${await bearer()}` };
    const made = await fetch(`${url}/v1/sign-in-links`, { method: 'POST', headers });
    const link = signInLinkReply.parse(await made.json());
    const { pathname: path, host } = new URL(link.url);
    expect(host).toMatch(new RegExp(`^svc-[0-9a-f]{32}\\.localhost:${new URL(url).port}$`));
    const opened = await fetchAs(host, url + path, {});
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect([opened.status, opened.headers.get('location')]).toEqual([303, '/']);
    expect(await (await fetchAs(host, `${url}/`, { headers: { cookie } })).text()).toContain('Local owner');
    expect((await fetch(`${url}/v1/me`, { headers: { cookie } })).status).toBe(401);
    expect((await fetchAs(host, url + path, {})).status).toBe(410);
    const forged = await fetchAs(host, `${url}/v1/secrets/user/other`, {
      method: 'DELETE',
      headers: { cookie, origin: 'https://evil.test' },
    });
    expect(await forged.json()).toMatchObject({ error: { code: 'cross_site_request' } });
  });
}

function passthroughEvent() {
  return {
    id: newId('evt', randomBytes(16)),
    type: 'sandbox.proxy.passthrough',
    time: new Date().toISOString(),
    sidecar_id: null,
    session_id: 'ses_test',
    actor: 'session',
    data: { 'svc.proxy.method': 'GET', 'svc.proxy.upstream.host': 'up.example.test', 'svc.proxy.upstream.path': '/' },
  };
}

/** Reads the first event of a stream, then closes the stream. */
async function firstFrame(stream: Response): Promise<unknown> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of stream.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const data = /^data: (.*)$/m.exec(text)?.[1];
    if (data !== undefined) return JSON.parse(data);
  }
  throw new Error('the stream ended without an event');
}
