import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../e2e/runtimes/connector_samples.ts';
import {
  callAs,
  hostedUser,
  type HostedUser,
  outcome,
  signInBrowser,
  startHosted,
} from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { installReply } from '../../shared/wire/connectors/connectors.ts';
import { createdToken, type Scope, SCOPES, tokensPage } from '../../shared/wire/tokens.ts';
import { scopeOf } from './scopes.ts';

let control: InProcess;
let user: HostedUser;
beforeAll(async () => {
  control = await startHosted();
  user = await hostedUser(control);
});
afterAll(() => control.stop());

const make = (scopes: readonly Scope[], more: object = {}) =>
  parseReply(createdToken, user.call('POST', '/v1/tokens', { name: 'ci', scopes, ...more }));

const versionAt = (version: string, host: string) => ({
  ...ITEMS_SPEC,
  connector: { ...ITEMS_SPEC.connector, version },
  hosts: [host],
});

describe('a personal token', () => {
  test('allows what its scopes say and nothing else', async () => {
    const { token } = await make(['secrets:write']);
    const secret = { path: 'user/demo', value: 'v' };
    expect((await callAs(control, token, 'POST', '/v1/secrets', secret)).status).toBe(201);
    expect(await outcome(callAs(control, token, 'GET', '/v1/secrets'))).toBe('insufficient_scope');
    expect(await outcome(callAs(control, token, 'GET', '/v1/host-bindings'))).toBe('insufficient_scope');
    expect(await outcome(callAs(control, token, 'GET', '/v1/me'))).toBe('insufficient_scope');
  });

  test('needs the scopes of host bindings for the list of hosts that are not intercepted', async () => {
    const { token: reader } = await make(['host-bindings:read', 'secrets:write', 'connectors:write']);
    const { token: writer } = await make(['host-bindings:write']);
    const add = (token: string) => callAs(control, token, 'POST', '/v1/tunnel-hosts', { host: 'pinned.example.test' });
    expect(await outcome(add(reader))).toBe('insufficient_scope');
    expect((await callAs(control, reader, 'GET', '/v1/tunnel-hosts')).status).toBe(200);
    expect((await add(writer)).status).toBe(201);
    expect(await outcome(callAs(control, writer, 'GET', '/v1/tunnel-hosts'))).toBe('insufficient_scope');
  });

  test('with every scope cannot manage tokens, sign-ins, members or links', async () => {
    const { token } = await make(SCOPES);
    expect((await callAs(control, token, 'GET', '/v1/me')).status).toBe(200);
    for (const [method, path] of [
      ['GET', '/v1/tokens'],
      ['POST', '/v1/tokens'],
      ['DELETE', '/v1/tokens/tok_00000000000000000000000000'],
      ['GET', '/v1/sessions'],
      ['DELETE', '/v1/sessions/bse_00000000000000000000000000'],
      ['GET', '/v1/members'],
      ['PUT', '/v1/members/usr_00000000000000000000000000'],
      ['POST', '/v1/sign-in-links'],
    ] as const) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : {};
      expect([path, await outcome(callAs(control, token, method, path, body))]).toEqual([path, 'insufficient_scope']);
    }
  });

  test('decides where a stored secret goes only with host-bindings:write, also by way of a connector', async () => {
    const [few, enough] = [
      await make(['connectors:write']),
      await make(['connectors:write', 'host-bindings:write', 'secrets:write']),
    ];
    const made = await callAs(control, few.token, 'POST', '/v1/connectors', versionAt('1.0.0', 'one.example.test'));
    const path = `/v1/connectors/${installReply.parse(await made.json()).id}/credential`;
    const serve = (token: string, ref: string) =>
      outcome(callAs(control, token, 'PUT', path, { kind: 'api_key', credential_ref: ref }));
    await callAs(control, enough.token, 'POST', '/v1/secrets', { path: 'user/served', value: 'v' });
    expect(await serve(few.token, 'vault://user/served')).toBe('insufficient_scope');
    expect(await serve(few.token, 'vault://user/none')).toBe('insufficient_scope');
    expect((await callAs(control, few.token, 'PUT', path, { kind: 'api_key', value: 'its-own-key' })).status).toBe(200);
    const ref = { kind: 'api_key', credential_ref: 'vault://user/served' };
    expect((await callAs(control, enough.token, 'PUT', path, ref)).status).toBe(200);
    const further = versionAt('2.0.0', 'two.example.test');
    expect(await outcome(callAs(control, few.token, 'POST', '/v1/connectors', further))).toBe('insufficient_scope');
    const same = versionAt('3.0.0', 'one.example.test');
    expect((await callAs(control, few.token, 'POST', '/v1/connectors', same)).status).toBe(200);
    expect((await callAs(control, enough.token, 'POST', '/v1/connectors', further)).status).toBe(200);
  });

  test('expires on its day', async () => {
    const { token, expires_at: end } = await make(['account:read'], { expires_in_days: 1 });
    expect(Date.parse(end) - control.clock.now()).toBe(24 * 3600 * 1000);
    const own = await hostedUser(control);
    expect(own.tokens.access_token).toBeTruthy();
    expect((await callAs(control, token, 'GET', '/v1/me')).status).toBe(200);
    control.clock.ms = Date.parse(end);
    expect(await outcome(callAs(control, token, 'GET', '/v1/me'))).toBe('unauthenticated');
    user = await hostedUser(control);
  });

  test('is refused once it is revoked, and only its user can revoke it', async () => {
    const { token, id } = await make(['account:read']);
    const stranger = await hostedUser(control);
    expect(await outcome(stranger.call('DELETE', `/v1/tokens/${id}`))).toBe('not_found');
    expect((await callAs(control, token, 'GET', '/v1/me')).status).toBe(200);
    expect((await user.call('DELETE', `/v1/tokens/${id}`)).status).toBe(204);
    expect(await outcome(callAs(control, token, 'GET', '/v1/me'))).toBe('unauthenticated');
    expect(await outcome(user.call('DELETE', `/v1/tokens/${id}`))).toBe('not_found');
  });

  test('is listed only for its user, without its text, and is in no database file', async () => {
    const { token, id } = await make(['secrets:read', 'account:read', 'secrets:read'], { name: 'listed' });
    const text = await (await user.call('GET', '/v1/tokens')).text();
    expect(text).not.toContain(token);
    const listed = tokensPage.parse(JSON.parse(text)).items.find((each) => each.id === id);
    expect(listed).toMatchObject({ name: 'listed', scopes: ['account:read', 'secrets:read'], revoked_at: null });
    const colleague = await hostedUser(control, user.caller.enterpriseId);
    expect((await parseReply(tokensPage, colleague.call('GET', '/v1/tokens'))).items).toEqual([]);
    expect((await control.databaseBytes()).includes(token)).toBe(false);
  });

  test.each([
    ['no scope', { scopes: [] }, 'scopes'],
    ['an unknown scope', { scopes: ['everything'] }, 'scopes.0'],
    ['no name', { name: ' ' }, 'name'],
    ['no expiry', { expires_in_days: 367 }, 'expires_in_days'],
    ['an expiry in the past', { expires_in_days: 0 }, 'expires_in_days'],
  ])('cannot be created with %s', async (_, change, field) => {
    const reply = await user.call('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'], ...change });
    expect(await reply.json()).toMatchObject({ error: { code: 'invalid_input', details: { fields: [{ field }] } } });
  });

  test('that does not exist gets the same refusal as an expired one', async () => {
    const { token, id } = await make(['account:read']);
    await user.call('DELETE', `/v1/tokens/${id}`);
    const messages = await Promise.all(
      [token, `svc_pat_${'x'.repeat(43)}`, 'svc_pat_', 'nonsense', user.tokens.refresh_token].map(async (each) => {
        const reply = await callAs(control, each, 'GET', '/v1/me');
        return errorBody.parse(await reply.json()).error.message;
      }),
    );
    expect(new Set(messages).size).toBe(1);
  });
});

test('each operation for personal tokens names its scope', () => {
  expect(scopeOf('get', '/v1/secrets')).toBe('secrets:read');
  expect(scopeOf('delete', '/v1/secrets/{path+}')).toBe('secrets:write');
  expect(scopeOf('post', '/v1/connector-operations/run')).toBe('connectors:run');
  expect(scopeOf('put', '/v1/enterprise')).toBe(null);
  expect(scopeOf('post', '/v1/anything-new')).toBe(null);
});

test('a browser can create a token only from our own pages', async () => {
  const cookie = await signInBrowser(control, user.caller);
  const post = (headers: Record<string, string>) =>
    control.send('/v1/tokens', {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ name: 'ci', scopes: ['account:read'] }),
    });
  expect((await post({ origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await post({ origin: 'null' })).status).toBe(403);
  expect((await post({ origin: 'null', 'sec-fetch-site': 'same-origin' })).status).toBe(201);
  expect((await post({ origin: 'https://control.example.test' })).status).toBe(201);
});

test('the local user can create tokens too, and they work beside the local key', async () => {
  const local = await startInProcess();
  const reply = local.asUser('POST', '/v1/tokens', { name: 'script', scopes: ['account:read'] });
  const { token } = await parseReply(createdToken, reply);
  expect((await callAs(local, token, 'GET', '/v1/me')).status).toBe(200);
  expect((await callAs(local, token, 'GET', '/v1/secrets')).status).toBe(403);
  await local.stop();
});
