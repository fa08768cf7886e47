import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { itemsSpec } from '../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, ORIGIN, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import { CLIENT_ID, CLIENT_SECRET, type OAuthProvider, startOAuthProvider } from '../e2e/runtimes/oauth_provider.ts';
import { ok } from '../shared/model/result.ts';
import { signInLinkReply } from '../shared/wire/account.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload } from '../shared/wire/channel.ts';
import { authorizeReply } from '../shared/wire/connectors/connector_credentials.ts';
import {
  connectorCredentialRecord,
  connectorRecord,
  installReply,
  revocationReply,
} from '../shared/wire/connectors/connectors.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import { nodeOutbound } from './entries/node_outbound.ts';
import { ProgramLifetime } from './kernel/lifetime.ts';
import { accessToken } from './services/oauth/oauth_access_token.ts';
import { beginAuthorisation, finishAuthorisation } from './services/oauth/oauth_authorisation.ts';
import { revokeConnectorTokens } from './services/oauth/oauth_revocation.ts';
import type { Outbound, OutboundRequest } from './kernel/outbound.ts';
import { findSealedSecret } from './store/secrets.ts';

const CALLBACK = `${ORIGIN}/auth/connectors/callback`;
const HOUR_MS = 3_600_000;
let provider: OAuthProvider;
let control: InProcess;
let id = '';
/** Bearer tokens that the upstream received. */
let sent: string[] = [];

/** Calls the provider on loopback; every other host is an upstream that answers 200. */
const real = nodeOutbound({ isLocal: true, pinned: new Map() });
const outbound: Outbound = {
  async call(request: OutboundRequest) {
    if (request.url.startsWith(provider.origin)) return real.call(request);
    sent.push(String(request.headers['authorization']).slice('Bearer '.length));
    return ok({ status: 200, contentType: 'text/plain', body: new Uint8Array() });
  },
};

beforeEach(async () => {
  sent = [];
  provider = await startOAuthProvider({ redirectUris: [CALLBACK] });
  control = await startInProcess({ outbound });
  const spec = itemsSpec('1.0.0', { credential: { kind: 'oauth2', scopes: ['openid', 'offline_access'] } });
  id = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', spec))).id;
});
afterEach(async () => {
  await control.stop();
  await provider.stop();
});

const put = (more: object = {}) =>
  control.asUser('PUT', `/v1/connectors/${id}/credential`, {
    kind: 'oauth2',
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    authorization_url: `${provider.origin}/auth?prompt=login`,
    token_url: `${provider.origin}/token`,
    device_authorization_url: `${provider.origin}/device/auth`,
    ...more,
  });
const begin = (body: object = {}) => control.asUser('POST', `/v1/connectors/${id}/credential/authorize`, body);
const credential = async () =>
  (await parseReply(connectorRecord, control.asUser('GET', `/v1/connectors/${id}`))).credential;
const run = () =>
  control.asUser('POST', '/v1/connector-operations/run', {
    connector_fqn: 'acme/items',
    operation: 'get-item',
    args: { id: '1' },
  });
const types = async () =>
  (await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events'))).items.map(({ type }) => type);

async function refusal(answered: Response | Promise<Response>) {
  const { error } = errorBody.parse(await (await answered).json());
  expect((await answered).status).toBe(ERROR_STATUS[error.code]);
  return error;
}

async function link(): Promise<string> {
  const begun = await parseReply(authorizeReply, begin());
  if (begun.grant !== 'browser') throw new Error('a link was expected');
  return begun.authorization_url;
}

/** Authorises in the browser, as a person does. */
async function authorise(): Promise<void> {
  const back = await provider.authorise(await link());
  const page = await control.send(back.pathname + back.search);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('acme/items is authorised')]);
}

const beginInConsole = async (cookie: string): Promise<URL> => {
  const begun = await control.inBrowser(`/auth/connectors/${id}/authorize`, { headers: { cookie } });
  return provider.authorise(begun.headers.get('location') ?? '');
};
const signIn = async () => {
  const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
  return (await control.send(url)).headers.get('set-cookie')?.split(';')[0] ?? '';
};

describe('an authorisation in the browser', () => {
  test('is started by a link with PKCE, and makes the credential usable', async () => {
    expect(await parseReply(connectorCredentialRecord, put())).toMatchObject({
      state: 'authorisation_required',
      client_id: CLIENT_ID,
      scopes: ['openid', 'offline_access'],
    });
    expect(await refusal(run())).toMatchObject({ code: 'binding_required' });
    const url = new URL(await link());
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      prompt: 'login',
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid offline_access',
      code_challenge_method: 'S256',
    });
    await authorise();
    expect(await credential()).toMatchObject({ state: 'ready', renewable: true });
    expect((await run()).status).toBe(200);
    expect(sent[0]).toMatch(/^[\w-]{30,}$/);
    expect(provider.tokenCalls()).toBe(1);
  });

  test('works once per link, for ten minutes', async () => {
    await put();
    const back = await provider.authorise(await link());
    const open = (target: string) => control.send(target);
    expect((await open(back.pathname + back.search)).status).toBe(200);
    expect((await open(back.pathname + back.search)).status).toBe(400);
    const late = await provider.authorise(await link());
    control.clock.ms += 10 * 60_000 + 1_000;
    expect((await open(late.pathname + late.search)).status).toBe(400);
    expect((await open('/auth/connectors/callback')).status).toBe(400);
    expect((await open('/auth/connectors/callback?state=made-up&code=x')).status).toBe(400);
    expect(provider.tokenCalls()).toBe(1);
  });

  test('stores nothing if the provider refuses or another provider answers', async () => {
    await put();
    for (const change of [{ error: 'access_denied', code: '' }, { iss: 'https://evil.example' }, { code: 'stolen' }]) {
      const back = await provider.authorise(await link());
      for (const [name, value] of Object.entries(change)) {
        if (value === '') back.searchParams.delete(name);
        else back.searchParams.set(name, value);
      }
      const page = await control.send(back.pathname + back.search);
      expect([change, page.status]).toEqual([change, 400]);
    }
    expect(await credential()).toMatchObject({ state: 'authorisation_required' });
  });

  test('starts on a page for a signed-in browser', async () => {
    await put();
    const path = `/auth/connectors/${id}/authorize`;
    expect([(await control.send(path)).status, (await control.inBrowser(path)).status]).toEqual([401, 401]);
    const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
    const opened = await control.send(url);
    const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    const reply = await control.inBrowser(path, { headers: { cookie } });
    expect([reply.status, reply.headers.get('location')]).toEqual([
      303,
      expect.stringContaining(`${provider.origin}/auth`),
    ]);
  });

  describe('started in the console', () => {
    test('returns to loopback, is redirected once to the console, and ends there once', async () => {
      await put();
      const cookie = await signIn();
      const back = await beginInConsole(cookie);
      expect(back.origin).toBe(ORIGIN);
      const handed = await control.send(back.href);
      const location = handed.headers.get('location') ?? '';
      expect([handed.status, location]).toEqual([303, control.consoleOrigin + back.pathname + back.search]);
      expect(provider.tokenCalls()).toBe(0);
      const ended = await control.send(location, { headers: { cookie } });
      expect([ended.status, ended.headers.get('location')]).toEqual([
        303,
        `/connectors/${id}?done=connector_authorised`,
      ]);
      expect(await credential()).toMatchObject({ state: 'ready' });
      const again = await control.send(back.href);
      expect([again.status, again.headers.get('location')]).toEqual([400, null]);
      expect((await control.send(location, { headers: { cookie } })).status).toBe(400);
    });

    test('cannot be completed from the callback URL without the session that started it', async () => {
      await put();
      const cookie = await signIn();
      const back = await beginInConsole(cookie);
      const replayed = await control.inBrowser(back.pathname + back.search);
      expect(replayed.status).toBe(400);
      expect([provider.tokenCalls(), await credential()]).toEqual([
        0,
        expect.objectContaining({ state: 'authorisation_required' }),
      ]);
      expect((await control.inBrowser(back.pathname + back.search, { headers: { cookie } })).status).toBe(303);
    });

    test('does not reveal the console’s host name for an expired or unknown state', async () => {
      await put();
      const back = await beginInConsole(await signIn());
      control.clock.ms += 10 * 60_000 + 1_000;
      for (const state of [back.searchParams.get('state') ?? '', 'console.made-up']) {
        const asked = await control.send(`/auth/connectors/callback?state=${state}&code=x`);
        expect([asked.status, asked.headers.get('location')]).toEqual([400, null]);
      }
    });
  });

  test('of a hosted control plane accepts tokens only for the user who started it', async () => {
    await put();
    const hosted = { ...control.context, local: null };
    const begun = await beginAuthorisation(hosted, await owner(), id, {
      grant: 'browser',
      origin: ORIGIN,
      inConsole: false,
    });
    const url = begun.ok && begun.value.grant === 'browser' ? begun.value.authorization_url : '';
    const { searchParams } = await provider.authorise(url);
    const callback = {
      state: searchParams.get('state') ?? '',
      code: searchParams.get('code'),
      error: null,
      issuer: searchParams.get('iss'),
    };
    const stranger = await addUser(control.context, null);
    expect(await finishAuthorisation(hosted, callback, null)).toMatchObject({ ok: false, error: { id: null } });
    expect(await finishAuthorisation(hosted, callback, stranger)).toMatchObject({ ok: false, error: { id: null } });
    expect(await finishAuthorisation(hosted, callback, await owner())).toMatchObject({ ok: true });
  });
});

async function owner() {
  const me = await (await control.asUser('GET', '/v1/me')).json();
  return { userId: String(Object(me).id), enterpriseId: String(Object(me).enterprise_id), role: 'admin' as const };
}

test("the redirect URL uses the control plane's public name if it has one", async () => {
  await control.stop();
  control = await startInProcess({ outbound, publicUrl: 'https://control.example.com' });
  const spec = itemsSpec('1.0.0', { credential: { kind: 'oauth2' } });
  id = (await parseReply(installReply, control.asUser('POST', '/v1/connectors', spec))).id;
  await put();
  const url = new URL(await link());
  expect(url.searchParams.get('redirect_uri')).toBe('https://control.example.com/auth/connectors/callback');
});

describe('the client of a credential', () => {
  test.each(['client_secret_basic', 'none'] as const)('authenticates by %s', async (authentication) => {
    await provider.stop();
    provider = await startOAuthProvider({ redirectUris: [CALLBACK], authentication });
    await put(authentication === 'none' ? { client_secret: undefined } : { client_authentication: 'basic' });
    await authorise();
    expect((await run()).status).toBe(200);
  });

  test.each([
    [{ token_url: undefined }, 'token_url', 'the spec has no default'],
    [{ token_url: 'http://auth.example.test/token' }, 'token_url', 'https URL on port 443'],
    [{ token_url: 'https://10.0.0.1/token' }, 'token_url', 'https URL on port 443'],
    [{ token_url: 'https://auth.example.test:8443/token' }, 'token_url', 'https URL on port 443'],
    [{ authorization_url: undefined, device_authorization_url: undefined }, 'authorization_url', 'no token was given'],
  ])('is refused with %j', async (change, field, problem) => {
    const error = await refusal(put(change));
    expect(error).toMatchObject({ code: 'invalid_input', details: { fields: [{ field }] } });
    expect(error.message).toContain(problem);
  });

  test("of a hosted control plane cannot have URLs on the control plane's own machine", async () => {
    const { storeConnectorCredential } = await import('./services/connectors/connector_credentials.ts');
    const hosted = { ...control.context, local: null };
    const input = {
      kind: 'oauth2',
      client_id: 'x',
      client_authentication: 'post',
      token_url: `${provider.origin}/token`,
      refresh_token: 'r',
    } as const;
    expect(await storeConnectorCredential(hosted, await owner(), id, input)).toMatchObject({
      error: { code: 'invalid_input' },
    });
  });
});

const outcome = () => parseReply(revocationReply, control.asUser('POST', `/v1/connectors/${id}/credential/revoke`));
const named = () => put({ revocation_url: `${provider.origin}/token/revocation` });

const REMOVALS = [
  ['remove', '/connectors?done=connector_removed'],
  ['credential/delete', '?done=credential_deleted'],
] as const;

const submitRemoval = async (path: string): Promise<string> => {
  const headers = { cookie: await signIn(), origin: control.consoleOrigin };
  const body = new URLSearchParams({ confirm: 'acme/items' });
  const done = await control.inBrowser(`/connectors/${id}/${path}`, { method: 'POST', headers, body });
  expect(done.status).toBe(303);
  return done.headers.get('location') ?? '';
};

describe('a revocation', () => {
  test('ends the tokens at the provider, and their use here, and is recorded', async () => {
    await named();
    await authorise();
    expect((await run()).status).toBe(200);
    expect(await outcome()).toEqual({ outcome: 'revoked', message: null });
    expect(await credential()).toMatchObject({ state: 'reauthorisation_required' });
    expect(await refusal(run())).toMatchObject({ code: 'reauthorisation_required' });
    expect(sent).toHaveLength(1);
    expect(await types()).toContain('control.connector.tokens_revoked');
    expect(provider.revoked()).toBe(1);
    await authorise();
    expect((await run()).status).toBe(200);
  });

  test('revokes the tokens of a refresh that is on its way, not those before it', async () => {
    await named();
    await authorise();
    control.clock.ms += HOUR_MS;
    const answered = Promise.withResolvers<void>();
    provider.onTokenAnswer(() => answered.promise);
    const refreshing = accessToken(control.context, id);
    while (provider.tokenCalls() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    control.clock.sleep = () => new Promise((resolve) => setTimeout(resolve, 5));
    const revoking = outcome();
    answered.resolve();
    const refreshed = await refreshing;
    expect(refreshed.ok).toBe(true);
    expect(await revoking).toMatchObject({ outcome: 'revoked' });
    expect(await refusal(run())).toMatchObject({ code: 'reauthorisation_required' });
  });

  test('that fails changes nothing, is recorded, and repeats no text of the provider', async () => {
    await named();
    await authorise();
    provider.onRevocation((response) => void response.writeHead(503).end('a text of the provider'));
    const failed = await outcome();
    expect(failed).toEqual({ outcome: 'failed', message: '127.0.0.1 did not revoke them (status 503)' });
    expect(await types()).toContain('control.connector.tokens_not_revoked');
    expect(await credential()).toMatchObject({ state: 'ready' });
    expect((await run()).status).toBe(200);
  });

  test.each(['invalid_token', 'invalid_grant', 'token_revoked'])(
    'is done if the provider says that the token has ended (%s)',
    async (error) => {
      await named();
      await authorise();
      provider.onRevocation((response) => void response.writeHead(400).end(JSON.stringify({ error })));
      expect(await outcome()).toEqual({ outcome: 'revoked', message: null });
      expect(await credential()).toMatchObject({ state: 'reauthorisation_required' });
    },
  );

  test.each([
    [400, 'invalid_client'],
    [400, 'access_denied'],
    [401, 'invalid_token'],
  ])('is not done with %i %s', async (status, error) => {
    await named();
    await authorise();
    provider.onRevocation((response) => void response.writeHead(status).end(JSON.stringify({ error })));
    expect(await outcome()).toMatchObject({ outcome: 'failed' });
    expect(await credential()).toMatchObject({ state: 'ready' });
  });

  test('is recorded also if the credential is replaced meanwhile, which stays as it is', async () => {
    await named();
    await authorise();
    const replace = async (response: ServerResponse): Promise<void> => {
      await named();
      response.writeHead(200).end();
    };
    provider.onRevocation((response) => void replace(response));
    const before = await types();
    expect(await outcome()).toEqual({ outcome: 'revoked', message: null });
    expect(before).not.toContain('control.connector.tokens_revoked');
    expect((await types()).filter((type) => type === 'control.connector.tokens_revoked')).toHaveLength(1);
  });

  test('is not tried without a URL for it, or without a token', async () => {
    await named();
    expect(await outcome()).toEqual({ outcome: 'nothing', message: null });
    await put();
    expect(await outcome()).toEqual({ outcome: 'nothing', message: null });
    await authorise();
    expect(await outcome()).toEqual({ outcome: 'not_named', message: null });
    expect((await types()).filter((type) => type.includes('revoked'))).toEqual([]);
  });

  test('sends a token to no server but the one that issued it', async () => {
    const other = 'http://127.0.0.1:1/revoke';
    expect(await refusal(put({ revocation_url: other }))).toMatchObject({ code: 'invalid_input' });
    const spec = itemsSpec('2.0.0', {
      credential: {
        kind: 'oauth2',
        scopes: ['openid', 'offline_access'],
        token_url: 'https://auth.example.test/token',
        revocation_url: 'https://auth.example.test/revoke',
      },
    });
    expect((await control.asUser('POST', '/v1/connectors', spec)).status).toBe(200);
    // Its token URL is another one than that of the spec.
    await put();
    await authorise();
    expect(await outcome()).toEqual({ outcome: 'not_named', message: null });
  });

  test.each(REMOVALS)('comes before the console deletes the tokens: %s', async (path, next) => {
    await named();
    await authorise();
    expect(await submitRemoval(path)).toMatch(new RegExp(`${next.replace('?', '\\?')}$`));
    expect(provider.revoked()).toBe(1);
    const order = (await types()).filter((type) => /tokens_revoked|credential_deleted/.test(type));
    expect(order.toSorted()).toEqual(['control.connector.credential_deleted', 'control.connector.tokens_revoked']);
  });

  test.each(REMOVALS)('is not missed in the console where no token was issued: %s', async (path, next) => {
    await put();
    expect((await submitRemoval(path)).endsWith(next)).toBe(true);
  });

  test.each(REMOVALS)(
    'that fails does not prevent a deletion in the console, which says so: %s',
    async (path, next) => {
      await named();
      await authorise();
      provider.onRevocation((response) => void response.writeHead(503).end());
      const location = await submitRemoval(path);
      expect(location.endsWith(`${next}_tokens_valid`)).toBe(true);
      expect(await types()).toContain('control.connector.credential_deleted');
      const page = await control.inBrowser(location, { headers: { cookie: await signIn() } });
      expect(await page.text()).toContain('Its tokens may stay valid at the provider');
    },
  );

  test('is for those who may change the connector', async () => {
    await named();
    await authorise();
    const stranger = await addUser(control.context, null);
    expect(await revokeConnectorTokens(control.context, stranger, id)).toMatchObject({
      ok: false,
      error: { code: 'not_found' },
    });
    expect((await run()).status).toBe(200);
  });
});

describe('a token refresh', () => {
  beforeEach(async () => {
    await put();
    await authorise();
  });

  test('happens one minute before expiry, and rotates the refresh token', async () => {
    await run();
    control.clock.ms += HOUR_MS - 61_000;
    await run();
    expect(provider.tokenCalls()).toBe(1);
    control.clock.ms += 2_000;
    await run();
    control.clock.ms += HOUR_MS;
    await run();
    expect(provider.tokenCalls()).toBe(3);
    expect(new Set(sent).size).toBe(3);
    expect(sent[0]).toBe(sent[1]);
    expect((await types()).filter((type) => type === 'control.connector.credential_refreshed')).toHaveLength(2);
  });

  test('of a short-lived token happens after half of its lifetime', async () => {
    await provider.stop();
    provider = await startOAuthProvider({ redirectUris: [CALLBACK], accessTokenSeconds: () => 20 });
    await put();
    await authorise();
    control.clock.ms += 9_000;
    expect((await run()).status).toBe(200);
    expect(provider.tokenCalls()).toBe(1);
    control.clock.ms += 2_000;
    expect((await run()).status).toBe(200);
    expect(provider.tokenCalls()).toBe(2);
    expect(new Set(sent).size).toBe(2);
  });

  test('that returns an expired token is done once, and the token is not sent', async () => {
    control.clock.ms += HOUR_MS;
    provider.onToken(async (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"access_token":"over-at-once","token_type":"bearer","expires_in":0}');
      return true;
    });
    expect(await refusal(run())).toMatchObject({ code: 'oauth_provider_failed' });
    expect(provider.tokenCalls()).toBe(2);
    expect(sent).toEqual([]);
  });

  test("happens once for a hundred concurrent requests at a token's expiry", async () => {
    control.clock.ms += HOUR_MS;
    // A hundred waiting calls must not advance the clock a hundred times as fast.
    control.clock.sleep = () => new Promise((resolve) => setTimeout(resolve, 5));
    const replies = await Promise.all(Array.from({ length: 100 }, () => accessToken(control.context, id)));
    expect(new Set(replies.map((reply) => reply.ok)).size).toBe(1);
    expect(new Set(replies.map((reply) => (reply.ok ? JSON.stringify(reply.value.expiresAt) : ''))).size).toBe(1);
    expect(provider.tokenCalls()).toBe(2);
  });

  test('by another worker leaves the current token in use until it expires', async () => {
    await run();
    control.clock.ms += HOUR_MS - 30_000;
    const held = Promise.withResolvers<boolean>();
    provider.onToken(() => held.promise);
    const refreshing = run();
    while (provider.tokenCalls() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await run()).status).toBe(200);
    held.resolve(false);
    expect((await refreshing).status).toBe(200);
    expect(sent[1]).toBe(sent[0]);
    expect(sent[2]).not.toBe(sent[0]);
  });

  test('is taken over by another worker when the lease of a dead one expires', async () => {
    control.clock.ms += HOUR_MS;
    const never = Promise.withResolvers<boolean>();
    provider.onToken(() => never.promise);
    const first = accessToken(control.context, id);
    while (provider.tokenCalls() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    provider.onToken(null);
    const second = await accessToken(control.context, id);
    expect(second).toMatchObject({ ok: true });
    expect(provider.tokenCalls()).toBe(3);
    // The worker that was thought dead overwrites nothing and uses the token that the other one stored.
    never.resolve(false);
    expect(await first).toEqual(second);
  });

  test('that fails temporarily keeps the authorisation and does not hammer the provider', async () => {
    control.clock.ms += HOUR_MS;
    provider.onToken(async (response) => {
      response.writeHead(503).end('later');
      return true;
    });
    const replies = await Promise.all(Array.from({ length: 10 }, () => run()));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([502]));
    expect(provider.tokenCalls()).toBe(2);
    expect(sent).toEqual([]);
    provider.onToken(null);
    control.clock.ms += 5_000;
    expect((await run()).status).toBe(200);
  });

  test('that the provider refuses tells a person how to authorise again, until that is done', async () => {
    await provider.revoke();
    control.clock.ms += HOUR_MS;
    const error = await refusal(run());
    expect(error).toMatchObject({
      code: 'reauthorisation_required',
      details: { connector_id: id, authorise_path: `/auth/connectors/${id}/authorize` },
    });
    expect(error.message).toContain('svc connector authorize acme/items');
    expect(await refusal(run())).toMatchObject({ code: 'reauthorisation_required' });
    expect(provider.tokenCalls()).toBe(2);
    expect(await credential()).toMatchObject({ state: 'reauthorisation_required' });
    expect((await types()).filter((type) => type === 'control.connector.reauthorisation_required')).toHaveLength(1);
    await authorise();
    expect((await run()).status).toBe(200);
  });

  test('delays the shutdown of the program, even if its caller has gone', async () => {
    control.clock.ms += HOUR_MS;
    const answered = Promise.withResolvers<void>();
    provider.onTokenAnswer(() => answered.promise);
    const lifetime = new ProgramLifetime(() => undefined);
    void accessToken({ ...control.context, defer: lifetime.defer }, id);
    while (provider.tokenCalls() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    let isDone = false;
    const draining = lifetime.drain().then(() => (isDone = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isDone).toBe(false);
    answered.resolve();
    await draining;
    expect((await run()).status).toBe(200);
    expect(provider.tokenCalls()).toBe(2);
  });

  test('never overwrites a credential that was stored meanwhile', async () => {
    control.clock.ms += HOUR_MS;
    const held = Promise.withResolvers<boolean>();
    provider.onToken(() => held.promise);
    const refreshing = run();
    while (provider.tokenCalls() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await put({ access_token: 'token-of-another-account' });
    held.resolve(false);
    expect((await refreshing).status).toBe(200);
    expect(sent).toEqual(['token-of-another-account']);
  });
});

describe('tokens that the user already has', () => {
  test('are used until they expire, then a new authorisation is required', async () => {
    const end = new Date(control.clock.now() + HOUR_MS).toISOString();
    await put({ access_token: 'ready-made-token', expires_at: end });
    expect((await run()).status).toBe(200);
    expect(sent).toEqual(['ready-made-token']);
    control.clock.ms += HOUR_MS;
    expect(await refusal(run())).toMatchObject({ code: 'reauthorisation_required' });
    expect(provider.tokenCalls()).toBe(0);
  });

  test('with a refresh token but no expiry are refreshed first', async () => {
    await put({ access_token: 'who-knows-how-old', refresh_token: 'of-nobody' });
    expect(await refusal(run())).toMatchObject({ code: 'reauthorisation_required' });
    expect(sent).toEqual([]);
  });
});

describe('a device authorisation', () => {
  test('is completed with a code that a person types on another device', async () => {
    await put();
    const begun = await parseReply(authorizeReply, begin({ grant: 'device' }));
    if (begun.grant !== 'device') throw new Error('a code was expected');
    expect(begun.verification_uri).toContain(provider.origin);
    expect(await credential()).toMatchObject({ state: 'authorisation_required' });
    expect(provider.tokenCalls()).toBe(0);
    control.clock.ms += begun.interval_seconds * 1000;
    expect(await credential()).toMatchObject({ state: 'authorisation_required' });
    expect(await credential()).toMatchObject({ state: 'authorisation_required' });
    expect(provider.tokenCalls()).toBe(1);
    await provider.authoriseDevice(begun.user_code);
    control.clock.ms += (begun.interval_seconds + 5) * 1000;
    expect(await credential()).toMatchObject({ state: 'ready', renewable: true });
    expect((await run()).status).toBe(200);
  });

  test('cannot be started if the client has no URL for it', async () => {
    await put({ device_authorization_url: undefined });
    expect(await refusal(begin({ grant: 'device' }))).toMatchObject({ details: { fields: [{ field: 'grant' }] } });
  });
});

test('a sidecar receives only the access token with its expiry, or the reason there is none', async () => {
  const sidecar = await control.enrolSidecar();
  const release = async () => {
    const body = {
      request_id: crypto.randomUUID(),
      credentials: [{ owner: 'personal', path: 'connectors/acme/items' }],
    };
    const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
    return sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
  };
  await put();
  expect(await release()).toMatchObject({ missing: [], unavailable: [{ reason: 'credential_unavailable' }] });
  await authorise();
  const { credentials } = await release();
  expect(credentials).toMatchObject([{ expires_at: (await credential()).expires_at }]);
  await run();
  expect(await sidecar.unseal(credentials[0]?.sealed ?? '')).toEqual({ value: sent[0] });
  await provider.revoke();
  control.clock.ms += HOUR_MS;
  expect(await release()).toMatchObject({
    credentials: [],
    missing: [],
    unavailable: [{ owner: 'personal', path: 'connectors/acme/items', reason: 'reauthorisation_required' }],
  });
});

test('no token or client secret appears in a reply, log line, event or database file', async () => {
  await put();
  await authorise();
  await run();
  control.clock.ms += HOUR_MS;
  await run();
  const row = await findSealedSecret(control.context.database, {
    ownerId: (await owner()).userId,
    path: 'connectors/acme/items',
  });
  const opened = await control.context.vault.open(
    { owner: row!.ownerId, path: row!.path, version: row!.version },
    row!.sealed,
  );
  const bundle: Record<string, string> = JSON.parse(opened!.reveal());
  const planted = [...Object.values(bundle), ...sent];
  expect(planted.every((value) => value.length > 15)).toBe(true);
  const replies = await Promise.all(
    [`/v1/connectors/${id}`, '/v1/connectors', '/v1/secrets', '/v1/audit-events'].map(async (path) =>
      (await control.asUser('GET', path)).text(),
    ),
  );
  const database = await control.databaseBytes();
  for (const value of planted) {
    expect(replies.filter((text) => text.includes(value))).toEqual([]);
    expect(JSON.stringify(control.log)).not.toContain(value);
    expect(database.includes(value)).toBe(false);
  }
});
