import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  type HostedUser,
  ownerWithMember,
  outcome,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../e2e/runtimes/sidecar_client.ts';
import { ok } from '../../shared/model/result.ts';
import { createApp } from '../app.ts';
import { fileAssets } from '../entries/file_assets.ts';
import type { Database } from '../store/database.ts';
import { requestDeviceCode } from '../tokens/device_codes.ts';
import { commit } from './commit.ts';
import { controlChain } from './policy_change.ts';

let control: InProcess;
let owner: HostedUser;
let admin: HostedUser;
let path: string;
beforeAll(async () => {
  control = await startHosted();
});
beforeEach(async () => {
  ({ owner, member: admin } = await ownerWithMember(control));
  path = `/v1/members/${admin.caller.userId}`;
  await owner.call('PUT', path, { role: 'admin', suspended: false });
});
afterAll(() => control.stop());

const identified = z.looseObject({ id: z.string() });
const demote = () => owner.call('PUT', path, { role: 'member', suspended: false });
const promote = () => owner.call('PUT', path, { role: 'owner', suspended: false });
const remove = () => owner.call('DELETE', path);
const suspend = () => owner.call('PUT', path, { role: 'admin', suspended: true });

async function send(app: ReturnType<typeof createApp>, method: string, at: string, body: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${admin.tokens.access_token}`, 'content-type': 'application/json' };
  const init = { method, headers, ...(body !== null && { body: JSON.stringify(body) }) };
  return app.fetch(new Request(PUBLIC_URL + at, init));
}

/** A control plane where something happens once a handler has decided, and before it writes. */
function disturbedBy(meanwhile: () => Promise<Response>) {
  const { context } = control;
  let isDone = false;
  const write: Database['write'] = async (statements) => {
    if (!isDone) {
      isDone = true;
      const { ok: isMade, status } = await meanwhile();
      if (!isMade) throw new Error(`what happens meanwhile was refused with ${status}`);
    }
    return context.database.write(statements);
  };
  const disturbed = { ...context, database: { ...context.database, write } };
  return createApp({ context: () => disturbed, assets: fileAssets(), log: () => undefined });
}

const SETTINGS = { name: 'Acme', billing_email: null, allowed_domains: [], allowed_providers: null };
const SAVED = { ...SETTINGS, sso_required: false, oidc: null };
const BINDING = { host: 'api.example.test', scheme: 'bearer', credential_ref: 'vault://a', effect: 'read' };
const ACCOUNT = { name: 'job', issuer: 'https://id.example.test', audience: 'svc', claims: { sub: 'a' } };
const RULE = { subject: 'connector', name: '*', action: '*', effects: null, role: 'admin', group_id: null, persons: 1 };

const LOGIN = {
  program: 'claude',
  token_url: 'https://id.example.test/token',
  client_id: 'a',
  grants: ['authorization_code'],
};

/** What only admins may do, and a change that has no event, each with what has to be there before it. */
const ACTIONS: readonly (readonly [
  name: string,
  method: string,
  at: string,
  body: object | null,
  before: object | null,
])[] = [
  ['an invitation', 'POST', '/v1/invitations', { email: 'kim@acme.test', role: 'member' }, null],
  [
    'a sink',
    'POST',
    '/v1/audit-sinks',
    { kind: 'slack', name: 'a', from: 'now', url: 'https://a.example.test/x' },
    null,
  ],
  ['a service account', 'POST', '/v1/service-accounts', ACCOUNT, null],
  ['a policy of a service account', 'PUT', '/v1/service-accounts/{id}', { ...ACCOUNT, minutes: 5 }, ACCOUNT],
  ['the end of a service account', 'DELETE', '/v1/service-accounts/{id}', null, ACCOUNT],
  ['a secret of a service account', 'POST', '/v1/service-accounts/{id}/secrets', { path: 'a', value: 'v' }, ACCOUNT],
  ['a secret', 'POST', '/v1/secrets', { owner: 'enterprise', path: 'a', value: 'v' }, null],
  ['a binding', 'POST', '/v1/host-bindings', { ...BINDING, owner: 'enterprise' }, null],
  ['a tunnelled host', 'POST', '/v1/tunnel-hosts', { owner: 'enterprise', host: 'a.example.test' }, null],
  [
    'a server',
    'POST',
    '/v1/mcp-servers',
    { owner: 'enterprise', name: 'one', mode: 'remote', url: 'https://mcp.example.test/' },
    null,
  ],
  ['rules of servers', 'PUT', '/v1/mcp-rules', { pinned_only: true }, null],
  ['a rule about approvals', 'POST', '/v1/approval-rules', RULE, null],
  ['a group', 'POST', '/v1/groups', { name: 'Data' }, null],
  ['a login', 'POST', '/v1/pending-logins', LOGIN, null],
  ['a name of a group', 'PUT', '/v1/groups/{id}', { name: 'Other' }, { name: 'Data' }],
];

describe.each([
  ['demoted', demote, 'admin_required'],
  ['suspended', suspend, 'unauthenticated'],
  ['removed', remove, 'unauthenticated'],
] as const)('who is %s after the decision and before the write', (_how, meanwhile, code) => {
  test.each(ACTIONS)('changes nothing: %s', async (_name, method, at, body, before) => {
    const [, list = ''] = /^(\/v1\/[\w-]+)/.exec(at) ?? [];
    const made = before === null ? null : await parseReply(identified, owner.call('POST', list, before));
    expect(await outcome(send(disturbedBy(meanwhile), method, at.replace('{id}', made?.id ?? ''), body))).toBe(code);
  });

  test('changes no member', async () => {
    const { member: other } = await ownerWithMember(control);
    await control.context.database.client.execute({
      sql: 'UPDATE users SET enterprise_id = ? WHERE id = ?',
      args: [owner.caller.enterpriseId, other.caller.userId],
    });
    const theirs = `/v1/members/${other.caller.userId}`;
    const body = { role: 'member', suspended: true };
    expect(await outcome(send(disturbedBy(meanwhile), 'PUT', theirs, body))).toBe(code);
    expect(await outcome(owner.call('PUT', theirs, { role: 'admin', suspended: false }))).toBe(200);
  });
});

test('an owner who is demoted meanwhile saves no settings, makes no SCIM token, and deletes no enterprise', async () => {
  const demoteOwner = async () => {
    const args = [owner.caller.userId];
    await control.context.database.client.execute({ sql: `UPDATE users SET role = 'admin' WHERE id = ?`, args });
    return new Response();
  };
  const { slug } = await parseReply(z.looseObject({ slug: z.string() }), owner.call('GET', '/v1/enterprise'));
  for (const [method, at, body] of [
    ['PUT', '/v1/enterprise', SAVED],
    ['POST', '/v1/scim-tokens', { name: 'directory' }],
    ['DELETE', `/v1/enterprise?confirm=${slug}`, undefined],
  ] as const) {
    const args = [owner.caller.userId];
    await control.context.database.client.execute({ sql: `UPDATE users SET role = 'owner' WHERE id = ?`, args });
    const headers = { authorization: `Bearer ${owner.tokens.access_token}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const reply = disturbedBy(demoteOwner).fetch(new Request(PUBLIC_URL + at, init));
    expect([at, await outcome(reply)]).toEqual([at, 'admin_required']);
  }
});

test('what a demoted user changes of its own is written when it is repeated', async () => {
  const body = { path: 'mine', value: 'v' };
  expect(await outcome(send(disturbedBy(demote), 'POST', '/v1/secrets', body))).toBe('admin_required');
  expect(await outcome(admin.call('POST', '/v1/secrets', body))).toBe(201);
});

test('a promotion meanwhile refuses nothing', async () => {
  expect(await outcome(send(disturbedBy(promote), 'POST', '/v1/groups', { name: 'Data' }))).toBe(201);
});

test.each([
  ['demoted', demote],
  ['suspended', suspend],
  ['removed', remove],
])('what somebody did before they were %s is recorded', async (_how, meanwhile) => {
  const caller = { ...admin.caller, role: 'admin' as const };
  expect((await meanwhile()).ok).toBe(true);
  const events = [{ type: 'mcp.tool.called' as const, actor: caller.userId, data: { 'svc.mcp.tool': 'search' } }];
  const happened = async () => ok({ statements: [], events, value: null });
  expect(await commit(control.context, controlChain(caller), happened)).toMatchObject({ ok: true });
  const { rows } = await control.context.database.client.execute({
    sql: `SELECT type FROM audit_events WHERE actor = ? AND type = 'mcp.tool.called'`,
    args: [caller.userId],
  });
  expect(rows).toHaveLength(1);
});

/** A body that comes in two halves, between which something happens. */
function slowBody(text: string, meanwhile: () => Promise<void>): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  const halves = [bytes.slice(0, 5), bytes.slice(5)];
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    if (halves.length === 1) await meanwhile();
    controller.enqueue(halves.shift() ?? new Uint8Array());
    if (halves.length === 0) controller.close();
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

/** Sends a body in whose middle something happens, and a minute passes. */
function holdBody(
  url: string,
  text: string,
  headers: Readonly<Record<string, string>>,
  meanwhile: () => Promise<Response>,
): Promise<Response> {
  const body = slowBody(text, async () => {
    expect((await meanwhile()).status).toBeLessThan(300);
    control.clock.ms += 60_000;
  });
  const init = { method: 'POST', headers: { ...headers, 'content-length': String(text.length) }, body };
  return control.send(url, Object.assign(init, { duplex: 'half' as const }));
}

test('a sidecar that is revoked while a body is held open gets no credential', async () => {
  const sidecar = await TestSidecar.make(control.send, 'P-256', () => control.clock.now());
  expect((await sidecar.enrol(admin.tokens.access_token)).status).toBe(201);
  const target = '/v1/sidecar/credentials';
  const text = JSON.stringify({ request_id: 'a', refs: [] });
  const token = await sidecar.token(await sidecar.claims('POST', target, text));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const revoke = () => admin.call('DELETE', `/v1/sidecars/${sidecar.enrolled.sidecar_id}`);
  expect(await outcome(holdBody(target, text, headers, revoke))).toBe('sidecar_revoked');
});

test('who is removed while a code is held open is not told which program waits', async () => {
  const { user_code: code } = z
    .object({ value: z.looseObject({ user_code: z.string() }) })
    .parse(await requestDeviceCode(control.context, { clientName: 'waiting-program', address: null })).value;
  const headers = {
    cookie: await signInBrowser(control, admin.caller),
    origin: PUBLIC_URL,
    'content-type': 'application/x-www-form-urlencoded',
  };
  const form = new URLSearchParams({ user_code: code }).toString();
  const reply = await holdBody(`${control.consoleOrigin}/device`, form, headers, remove);
  expect([reply.status, await reply.text()]).toEqual([401, expect.not.stringContaining('waiting-program')]);
});

describe.each([
  ['demoted', demote, 403],
  ['removed', remove, 401],
] as const)('who is %s while a body is held open', (_how, meanwhile, expected) => {
  const hold = (url: string, text: string, headers: Readonly<Record<string, string>>) =>
    holdBody(url, text, headers, meanwhile);

  test('is told nothing by the API that only admins are told', async () => {
    const headers = { authorization: `Bearer ${admin.tokens.access_token}`, 'content-type': 'application/json' };
    expect((await hold('/v1/mcp-rules/check', '{"pinned_only":true}', headers)).status).toBe(expected);
  });

  test('is told nothing by a form', async () => {
    const headers = {
      cookie: await signInBrowser(control, admin.caller),
      origin: PUBLIC_URL,
      'content-type': 'application/x-www-form-urlencoded',
    };
    const { revision } = await parseReply(z.looseObject({ revision: z.string() }), owner.call('GET', '/v1/mcp-rules'));
    const form = new URLSearchParams({ before: revision, isolation: 'process', pinned_only: 'on', step: 'check' });
    const url = `${control.consoleOrigin}/mcp-rules`;
    expect((await hold(url, form.toString(), headers)).status).toBe(expected);
  });
});
