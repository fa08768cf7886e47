import { CompactEncrypt, exportJWK, generateKeyPair, importJWK } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOGIN_BINDING, LOGIN_SPEC } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { CREDENTIALS_TYP, credentialsPayload } from '../shared/wire/channel.ts';
import { err, ok } from '../shared/model/result.ts';
import { connectorRecord, installReply } from '../shared/wire/connectors/connectors.ts';
import {
  HELD_LOGIN_TYP,
  heldLoginPayload,
  LOGIN_TOKENS_TYP,
  PENDING_LOGIN_TYP,
  type PendingLogin,
  discardedLogins,
  pendingLogin,
  pendingLoginPayload,
  type StoreLoginInput,
} from '../shared/wire/pending_logins.ts';
import type { Outbound, OutboundRequest } from './kernel/outbound.ts';
import { discardPendingLogins, removeExpiredLogins } from './services/connectors/pending_logins.ts';
import { holdPendingLogin, insertPendingLogin } from './store/pending_logins.ts';
import { pendingLogins } from './store/tables.ts';

const { token_url: TOKEN_URL, login: LOGIN } = LOGIN_SPEC.credential;
const CLIENT = LOGIN.client_id;
const OPENED = { program: 'claude', token_url: TOKEN_URL, client_id: CLIENT, grants: ['authorization_code'] };
const SPEC = {
  ...LOGIN_SPEC,
  credential: { ...LOGIN_SPEC.credential, login: { ...LOGIN, paths: ['/v1'] } },
};
const ACCOUNT = { who: 'dev@example.test', plan: 'max', may_make_keys: false };
const TOKENS = {
  access_token: 'planted-access-token',
  refresh_token: 'planted-refresh-token',
  expires_in: 28_800,
  account: ACCOUNT,
};
const HALF_AN_HOUR_MS = 1_800_000;

/** What the provider was asked, and what it answers. */
let revocations: OutboundRequest[] = [];
let answer: () => Awaited<ReturnType<Outbound['call']>>;
let control: InProcess;
let sidecar: TestSidecar;
let login: PendingLogin;
const bodies: string[] = [];

beforeEach(async () => {
  revocations = [];
  answer = () => ok({ status: 200, contentType: '', body: new Uint8Array() });
  const call = async (request: OutboundRequest) => {
    revocations.push(request);
    return answer();
  };
  control = await startInProcess({ outbound: { call } });
  sidecar = await control.enrolSidecar();
  bodies.length = 0;
  login = await open();
});
afterEach(async () => {
  const database = await control.databaseBytes();
  const texts = [database.toString('latin1'), JSON.stringify(control.log), ...bodies];
  for (const text of texts) expect(text).not.toContain('planted-');
  await control.stop();
});

const open = async (changes: object = {}): Promise<PendingLogin> =>
  parseReply(pendingLogin, control.asUser('POST', '/v1/pending-logins', { ...OPENED, ...changes }));

const ask = async (method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> => {
  const reply = await control.asUser(method, path, body);
  const text = await reply.text();
  bodies.push(text);
  return { status: reply.status, text };
};

const tell = async (id = login.id) => {
  const reply = await sidecar.call('GET', `/v1/sidecar/pending-logins/${id}`);
  return sidecar.verify(await reply.text(), PENDING_LOGIN_TYP, pendingLoginPayload);
};

/** The tokens sealed to the login's key, as its sidecar sends them. */
const seal = async (tokens: object, header: object = {}): Promise<string> => {
  const { login: told } = await tell();
  return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(tokens)))
    .setProtectedHeader({
      alg: 'ECDH-ES',
      enc: 'A256GCM',
      typ: LOGIN_TOKENS_TYP,
      login: login.id,
      sidecar: sidecar.enrolled.sidecar_id,
      ...header,
    })
    .encrypt(await importJWK(told.key, 'ECDH-ES'));
};

const send = async (sealed: string, by = sidecar): Promise<{ status: number; text: string }> => {
  const reply = await by.call('POST', `/v1/sidecar/pending-logins/${login.id}`, { body: { sealed } });
  const text = await reply.text();
  bodies.push(text);
  return { status: reply.status, text };
};

/** Installs the connector. Gives what a person who has read its hosts agrees to. */
const install = async (changes: object = {}, owner = 'personal'): Promise<StoreLoginInput> => {
  const body = { ...SPEC, ...changes };
  const reply = await parseReply(installReply, control.asUser('POST', `/v1/connectors?owner=${owner}`, body));
  return { connector_id: reply.id, content_hash: reply.content_hash };
};

const release = async (): Promise<object> => {
  const credential = { owner: 'personal', path: 'connectors/login/claude' };
  const body = { request_id: crypto.randomUUID(), credentials: [credential] };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  return sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
};

describe('tokens of a login', () => {
  test('are held, shown with their account and without their values, and used by nothing', async () => {
    await install();
    expect((await control.asUser('POST', '/v1/host-bindings', LOGIN_BINDING)).status).toBe(201);
    const held = await send(await seal(TOKENS));
    expect(await sidecar.verify(held.text, HELD_LOGIN_TYP, heldLoginPayload)).toMatchObject({ login_id: login.id });
    const shown = await ask('GET', `/v1/pending-logins/${login.id}`);
    expect(JSON.parse(shown.text)).toMatchObject({ state: 'held', account: ACCOUNT });
    expect(await release()).toMatchObject({ credentials: [] });
  });

  test('become the credential of the connector of their program, once', async () => {
    const target = await install();
    await control.asUser('POST', '/v1/host-bindings', LOGIN_BINDING);
    await send(await seal(TOKENS));
    const path = `/v1/pending-logins/${login.id}/store`;
    expect(await ask('POST', path, target)).toMatchObject({ status: 200 });
    expect(await release()).toMatchObject({ credentials: [{ path: 'connectors/login/claude' }] });
    const shown = await parseReply(
      connectorRecord,
      control.asUser('GET', `/v1/connectors/${Object(target).connector_id}`),
    );
    expect(shown.credential).toMatchObject({
      state: 'ready',
      client_id: CLIENT,
      token_url: TOKEN_URL,
      renewable: true,
    });
    expect(await ask('POST', path, target)).toMatchObject({ status: 404 });
  });

  test('that cannot be refreshed become a secret', async () => {
    await send(await seal({ ...TOKENS, refresh_token: null, expires_in: null }));
    const stored = await ask('POST', `/v1/pending-logins/${login.id}/store`, { path: 'user/github' });
    expect(stored.status).toBe(200);
    expect(JSON.parse(stored.text)).toEqual({ ref: 'vault://user/github', created: true });
  });

  test('that replace a secret are said to', async () => {
    await ask('POST', '/v1/secrets', { path: 'user/github', value: 'planted-earlier', owner: 'personal' });
    await send(await seal({ ...TOKENS, refresh_token: null, expires_in: null }));
    const stored = await ask('POST', `/v1/pending-logins/${login.id}/store`, { path: 'user/github' });
    expect(JSON.parse(stored.text)).toEqual({ ref: 'vault://user/github', created: false });
  });

  test('that are refreshed become no secret', async () => {
    await send(await seal(TOKENS));
    const stored = await ask('POST', `/v1/pending-logins/${login.id}/store`, { path: 'user/github' });
    expect(stored.status).toBe(400);
  });

  test.each([
    ['another program', { connector: { ...SPEC.connector, fqn: 'login/codex' } }],
    ['another client', { credential: { ...SPEC.credential, login: { ...SPEC.credential.login, client_id: 'other' } } }],
    [
      'another token URL',
      {
        hosts: ['evil.example.test'],
        credential: { ...SPEC.credential, token_url: 'https://evil.example.test/token' },
      },
    ],
  ])('are not stored for a connector of %s', async (_what, changes) => {
    const target = await install(changes);
    await send(await seal(TOKENS));
    const stored = await ask('POST', `/v1/pending-logins/${login.id}/store`, target);
    expect(stored.status).toBe(400);
    expect(stored.text).toContain('must be the personal login/claude');
  });

  test('are not stored for a connector of the enterprise with the same name', async () => {
    const target = await install({}, 'enterprise');
    await send(await seal(TOKENS));
    const stored = await ask('POST', `/v1/pending-logins/${login.id}/store`, target);
    expect(stored.status).toBe(400);
    expect(stored.text).toContain('must be the personal login/claude');
  });

  test('are not stored for another version than the one whose hosts were shown', async () => {
    const target = await install();
    await send(await seal(TOKENS));
    const wider = { ...SPEC.credential.login, hosts: ['api.example.test', 'evil.example.test'] };
    await install({
      connector: { ...SPEC.connector, version: '9.9.9' },
      credential: { ...SPEC.credential, login: wider },
    });
    const path = `/v1/pending-logins/${login.id}/store`;
    const stored = await ask('POST', path, target);
    expect(stored.status).toBe(409);
    expect(stored.text).toContain('9.9.9');
    expect(await ask('POST', path, { connector_id: Object(target).connector_id })).toMatchObject({ status: 400 });
    const shown = await parseReply(
      connectorRecord,
      control.asUser('GET', `/v1/connectors/${Object(target).connector_id}`),
    );
    expect(shown.credential.state).toBe('missing');
    expect(await ask('POST', path, await install({}))).toMatchObject({ status: 200 });
  });

  test('of an import are not stored for another version than the one that was installed for it', async () => {
    const { connector_id: id, content_hash } = Object(await install());
    await install({ connector: { ...SPEC.connector, version: '9.9.9' } });
    const body = { kind: 'oauth2', client_id: CLIENT, access_token: 'planted-imported', content_hash };
    expect(await ask('PUT', `/v1/connectors/${id}/credential`, body)).toMatchObject({ status: 409 });
    const shown = await parseReply(connectorRecord, control.asUser('GET', `/v1/connectors/${id}`));
    expect(shown.credential.state).toBe('missing');
    const again = { ...body, content_hash: shown.content_hash };
    expect(await ask('PUT', `/v1/connectors/${id}/credential`, again)).toMatchObject({ status: 200 });
  });

  test('are not stored before they have arrived', async () => {
    const target = await install();
    const stored = await ask('POST', `/v1/pending-logins/${login.id}/store`, target);
    expect(stored.status).toBe(409);
  });

  test('are gone when the person says no, and with them the login', async () => {
    const sealed = await seal(TOKENS);
    await send(sealed);
    expect(await ask('DELETE', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 204 });
    expect(await ask('GET', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 404 });
    expect(await send(sealed)).toMatchObject({ status: 404 });
  });

  test('are gone, of all programs, when a person stops everything, and those of others are not', async () => {
    await send(await seal(TOKENS));
    const other = await open({ program: 'codex' });
    const stranger = await addUser(control.context, null);
    expect(await discardPendingLogins(control.context, stranger)).toEqual({ ok: true, value: { discarded: [] } });
    expect(await ask('GET', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 200 });
    const done = await parseReply(discardedLogins, control.asUser('DELETE', '/v1/pending-logins'));
    expect(new Set(done.discarded)).toEqual(new Set([login.id, other.id]));
    for (const { id } of [login, other]) {
      expect(await ask('GET', `/v1/pending-logins/${id}`)).toMatchObject({ status: 404 });
    }
    expect((await ask('GET', '/v1/audit-events?type=control.login.')).text).toContain('control.login.discarded');
  });

  test('are gone after half an hour', async () => {
    const target = await install();
    await send(await seal(TOKENS));
    control.clock.ms += HALF_AN_HOUR_MS + 1_000;
    const stored = await ask('POST', `/v1/pending-logins/${login.id}/store`, target);
    expect(stored.status).toBe(404);
    expect(await ask('GET', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 404 });
  });

  test('are gone when a new login of the program begins', async () => {
    await send(await seal(TOKENS));
    await open();
    expect(await ask('GET', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 404 });
  });

  test('that a new login of the program replaces have an event', async () => {
    await send(await seal(TOKENS));
    await open();
    const events = await ask('GET', '/v1/audit-events?type=control.login.');
    expect(events.text).toContain('control.login.discarded');
    expect(events.text).toContain(login.id);
  });

  test('have events, and none names an account', async () => {
    await send(await seal(TOKENS));
    await ask('DELETE', `/v1/pending-logins/${login.id}`);
    const events = await ask('GET', '/v1/audit-events?type=control.login.');
    expect(events.text).toContain('control.login.held');
    expect(events.text).toContain('control.login.discarded');
    expect(events.text).not.toContain('dev@example.test');
  });
});

const REVOCATION = { revocation_url: new URL('/revoke', TOKEN_URL).href, token_request: 'json' };

/** A login whose tokens can be revoked, and are held. */
const holdRevocable = async (): Promise<void> => {
  login = await open(REVOCATION);
  expect(await send(await seal(TOKENS))).toMatchObject({ status: 200 });
};

const recorded = async (): Promise<unknown[]> => {
  await control.settle();
  const { items } = JSON.parse((await ask('GET', '/v1/audit-events?type=control.connector.')).text);
  return Object.values(items).map((event) => [Object(event).type, Object(event).actor === null]);
};

describe('tokens that nobody keeps are revoked at their provider', () => {
  test.each<[string, () => Promise<unknown>, boolean]>([
    ['a person says no', () => ask('DELETE', `/v1/pending-logins/${login.id}`), false],
    ['a person stops everything', () => ask('DELETE', '/v1/pending-logins'), false],
    ['a new login of the program begins', () => open(), false],
    ['they expire', () => removeExpiredLogins(control.context), true],
  ])('when %s', async (_when, act, isOfNobody) => {
    await holdRevocable();
    if (isOfNobody) control.clock.ms += HALF_AN_HOUR_MS + 1_000;
    await act();
    expect(await recorded()).toEqual([['control.connector.tokens_revoked', isOfNobody]]);
    expect(revocations.map(({ url }) => url)).toEqual([REVOCATION.revocation_url]);
    expect(JSON.parse(new TextDecoder().decode(revocations[0]?.body ?? new Uint8Array()))).toEqual({
      client_id: CLIENT,
      token: TOKENS.refresh_token,
      token_type_hint: 'refresh_token',
    });
    await removeExpiredLogins(control.context);
    await act();
    expect(await recorded()).toHaveLength(1);
  });

  test('after half an hour also if a login of somebody else begins meanwhile', async () => {
    await holdRevocable();
    control.clock.ms += HALF_AN_HOUR_MS + 1_000;
    await open({ program: 'codex' });
    await removeExpiredLogins(control.context);
    expect(await recorded()).toHaveLength(1);
  });

  test('and a refusal of the provider is recorded and prevents no deletion', async () => {
    answer = () => err({ reason: 'upstream_unreachable', message: 'gone' });
    await holdRevocable();
    expect(await ask('DELETE', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 204 });
    expect(await recorded()).toEqual([['control.connector.tokens_not_revoked', false]]);
    expect(await ask('GET', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 404 });
  });

  test('and tokens that the vault cannot open keep no other login from being revoked, and no new one from beginning', async () => {
    await holdRevocable();
    const damaged = login.id;
    const { client } = control.context.database;
    await client.execute({ sql: "UPDATE pending_logins SET sealed = 'v1.AAAA.AAAA' WHERE id = ?", args: [damaged] });
    login = await open({ ...REVOCATION, program: 'codex' });
    expect(await send(await seal(TOKENS))).toMatchObject({ status: 200 });
    control.clock.ms += HALF_AN_HOUR_MS + 1_000;
    await removeExpiredLogins(control.context);
    expect(await recorded()).toEqual([['control.connector.tokens_revoked', true]]);
    expect((await client.execute('SELECT id FROM pending_logins')).rows).toEqual([]);
  });

  test('also if they arrive while a new login begins', async () => {
    const { database } = control.context;
    const [before] = await database.read.select().from(pendingLogins);
    if (before === undefined) throw new Error('no row');
    expect(await send(await seal(TOKENS))).toMatchObject({ status: 200 });
    const limit = { most: 16, nowSeconds: before.expiresAt - 1 };
    const insert = (earlier: typeof before) =>
      database.write(insertPendingLogin(database, { ...before, id: `plg_${'n'.repeat(26)}` }, earlier, limit));
    expect(await insert(before)).toMatchObject({ ok: false });
    expect(await insert({ ...before, state: 'held' })).toMatchObject({ ok: true });
  });

  test.each([
    ['once they are stored', async () => ask('POST', `/v1/pending-logins/${login.id}/store`, await install())],
    ['while they wait', async () => removeExpiredLogins(control.context)],
  ])('but not %s', async (_when, act) => {
    await holdRevocable();
    await act();
    await control.settle();
    expect(revocations).toEqual([]);
  });

  test('but not where that could end an earlier login of the program that is in use', async () => {
    const target = await install();
    await holdRevocable();
    await ask('POST', `/v1/pending-logins/${login.id}/store`, target);
    await holdRevocable();
    expect(await ask('DELETE', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 204 });
    await control.settle();
    expect(revocations).toEqual([]);
  });

  test('at the server that issued them, and at no other', async () => {
    const elsewhere = { ...OPENED, revocation_url: 'https://evil.example.test/revoke' };
    const refused = await ask('POST', '/v1/pending-logins', elsewhere);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('must be on the server of token_url');
  });
});

test('a sidecar is told the key that the control plane can open, whatever the database says', async () => {
  const { login: before } = await tell();
  const pair = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
  const { database } = control.context;
  const publicKey = JSON.stringify(await exportJWK(pair.publicKey));
  expect(await database.write([database.read.update(pendingLogins).set({ publicKey })])).toMatchObject({ ok: true });
  expect((await tell()).login.key).toEqual(before.key);
  expect(await send(await seal(TOKENS))).toMatchObject({ status: 200 });
});

describe('a login is for the sidecar that asks for it first', () => {
  test('and no other is told of it or can send tokens', async () => {
    const sealed = await seal(TOKENS);
    const other = await control.enrolSidecar();
    expect((await other.call('GET', `/v1/sidecar/pending-logins/${login.id}`)).status).toBe(404);
    expect(await send(sealed, other)).toMatchObject({ status: 404 });
    expect(await send(sealed)).toMatchObject({ status: 200 });
  });

  test('which may ask again', async () => {
    expect((await tell()).login.id).toBe(login.id);
    expect((await tell()).login.id).toBe(login.id);
  });

  test('and nobody sends tokens of one that nobody asked for', async () => {
    const mine = login;
    login = await open({ program: 'codex' });
    const sealed = await seal(TOKENS, { login: mine.id });
    login = mine;
    expect(await send(sealed)).toMatchObject({ status: 404 });
  });
});

describe('a sidecar cannot send tokens', () => {
  test('twice', async () => {
    const sealed = await seal(TOKENS);
    expect(await send(sealed)).toMatchObject({ status: 200 });
    expect(await send(sealed)).toMatchObject({ status: 404 });
    expect((await sidecar.call('GET', `/v1/sidecar/pending-logins/${login.id}`)).status).toBe(404);
  });

  test('twice at the same time: the second write is a conflict', async () => {
    await send(await seal(TOKENS));
    const { database } = control.context;
    const again = holdPendingLogin(database, login.id, { sealed: 'x', account: null });
    expect(await database.write(again)).toMatchObject({ ok: false });
    expect(await ask('GET', `/v1/pending-logins/${login.id}`)).toMatchObject({ status: 200 });
  });

  test.each([
    ['sealed for another login', TOKENS, { login: 'plg_00000000000000000000000000' }],
    ['sealed by another sidecar', TOKENS, { sidecar: 'sdc_00000000000000000000000000' }],
    ['of another type', TOKENS, { typ: 'JWT' }],
    ['without an access token', { ...TOKENS, access_token: '' }, {}],
    ['with a line break', { ...TOKENS, access_token: 'planted-\r\nx' }, {}],
    ['with a further member', { ...TOKENS, client_secret: 'planted-secret' }, {}],
    ['that are the placeholders of svc', { ...TOKENS, refresh_token: 'svc-placeholder-refresh-0123' }, {}],
  ])('%s', async (_what, tokens, header) => {
    expect(await send(await seal(tokens, header))).toMatchObject({ status: 400 });
    expect(JSON.parse((await ask('GET', `/v1/pending-logins/${login.id}`)).text)).toMatchObject({ state: 'open' });
  });

  test('that are the placeholder of a binding', async () => {
    await install();
    await control.asUser('POST', '/v1/host-bindings', LOGIN_BINDING);
    expect(await send(await seal({ ...TOKENS, access_token: LOGIN_BINDING.sentinel.value }))).toMatchObject({
      status: 400,
    });
  });

  test('that are not sealed to the key of the login', async () => {
    const mine = login;
    login = await open({ program: 'codex' });
    const sealed = await seal(TOKENS, { login: mine.id });
    login = mine;
    await tell();
    expect(await send(sealed)).toMatchObject({ status: 400 });
  });

  test('without a login of its user that is open', async () => {
    const reply = await sidecar.call('POST', '/v1/sidecar/pending-logins/plg_00000000000000000000000000', {
      body: { sealed: 'x' },
    });
    expect(reply.status).toBe(404);
  });
});

test('a user cannot have more logins waiting than are of use', async () => {
  for (let at = 1; at < 16; at += 1) await open({ program: `p${at}` });
  expect(await ask('POST', '/v1/pending-logins', { ...OPENED, program: 'more' })).toMatchObject({ status: 409 });
  expect(await ask('POST', '/v1/pending-logins', OPENED)).toMatchObject({ status: 201 });
});

test('also not by opening them at the same time', async () => {
  for (let at = 1; at < 15; at += 1) await open({ program: `p${at}` });
  const { database } = control.context;
  const rows = await database.read.select().from(pendingLogins);
  const [row] = rows;
  if (row === undefined) throw new Error('no row');
  const limit = { most: rows.length + 1, nowSeconds: row.expiresAt - 1 };
  const insert = (name: string) =>
    database.write(insertPendingLogin(database, { ...row, id: `plg_${name}`, program: name }, null, limit));
  const written = await Promise.all([insert('one'), insert('two')]);
  expect(written.filter(({ ok: isOk }) => isOk)).toHaveLength(1);
});

test('a personal token opens, reads, stores and deletes no login', async () => {
  const created = await ask('POST', '/v1/tokens', { name: 'ci', scopes: ['connectors:write', 'secrets:write'] });
  const { token } = JSON.parse(created.text);
  const one = `/v1/pending-logins/${login.id}`;
  const calls: [string, string, object | null][] = [
    ['POST', '/v1/pending-logins', OPENED],
    ['GET', one, null],
    ['POST', `${one}/store`, { path: 'user/x' }],
    ['DELETE', one, null],
  ];
  for (const [method, path, body] of calls) {
    const reply = await control.send(path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== null && { body: JSON.stringify(body) }),
    });
    expect(reply.status).toBe(403);
  }
});
