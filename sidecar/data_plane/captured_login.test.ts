import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { refreshPlaceholder } from '../../shared/connect/token_request.ts';
import { err, ok } from '../../shared/model/result.ts';
import { channelFailure } from '../control/channel_failure.ts';
import type { CapturedTokens, ControlChannel } from '../control/control_channel.ts';
import { CapturedLogin } from '../session/session_login.ts';
import { createAnswering, type DataPlane, readUntil, startDataPlane } from '../testing/data_plane.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';

/** The login of an agent in the session that a person started for it. */

const HOST = 'auth.example.test';
const CLIENT = 'client-of-a-test';
const PLACEHOLDER = 'placeholder-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ';
const ACCESS = 'planted-access-token-0123456789';
const REFRESH = 'planted-refresh-token-0123456789';
const OPEN = {
  id: 'plg_00000000000000000000000000',
  program: 'claude',
  tokenUrl: `https://${HOST}/token`,
  clientId: CLIENT,
  grants: ['authorization_code', 'device_code'],
  key: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' },
  expiresAt: 0,
} as const;
const CODE = { grant_type: 'authorization_code', client_id: CLIENT, code: 'code-of-a-test', code_verifier: 'verifier' };
const DEVICE = {
  grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
  client_id: CLIENT,
  device_code: 'device-of-a-test',
};
const TOKENS = { access_token: ACCESS, refresh_token: REFRESH, expires_in: 3600, token_type: 'Bearer' };
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

let plane: DataPlane;
let seen: string[];
let held: CapturedTokens[];
let login: CapturedLogin;
let answer: string;
let onRequest: () => void;
let holdLogin: ControlChannel['holdLogin'];

function reply(body: string, status = '200 OK', lines = 'Content-Type: application/json\r\n'): string {
  return `HTTP/1.1 ${status}\r\n${lines}Content-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n${body}`;
}

beforeEach(async () => {
  seen = [];
  held = [];
  answer = reply(JSON.stringify(TOKENS));
  onRequest = () => undefined;
  plane = await startDataPlane();
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), onRequest(), answer)),
  );
  holdLogin = async (_login, tokens) => (held.push(tokens), ok(undefined));
  login = new CapturedLogin(OPEN, PLACEHOLDER, { holdLogin: (open, tokens) => holdLogin(open, tokens) });
  plane.scopes.set('login', { ...plane.session, login });
});
afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
  const recorded = JSON.stringify(plane.audit.events);
  for (const secret of ['planted-', 'code-of-a-test', 'device-of-a-test']) expect(recorded).not.toContain(secret);
});

const ASK = { token: 'login', method: 'POST', at: HOST, host: HOST, path: '/token', type: 'json' };

async function ask(body: object | string, changes: Partial<typeof ASK> = {}): Promise<string> {
  const { token, method, at, host, path, type } = { ...ASK, ...changes };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const client = await plane.open(at, at, token);
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/${type}\r\nConnection: close\r\n`;
  client.write(`${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`, 'latin1');
  return readUntil(client, () => false);
}
const bodyOf = (text: string): unknown => JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4));
const lastEvent = () => plane.audit.events.at(-1);

describe('the request for the tokens of a login', () => {
  test.each([
    ['a code with its verifier', CODE],
    ['a device code', DEVICE],
  ])('with %s gives the tokens to the control plane and placeholders to the program', async (_what, body) => {
    const got = await ask(body);
    expect(got).toContain('HTTP/1.1 200 ');
    expect(got).not.toContain('planted-');
    expect(bodyOf(got)).toEqual({
      access_token: PLACEHOLDER,
      refresh_token: refreshPlaceholder(PLACEHOLDER),
      refresh_token_expires_in: 315_360_000,
      token_type: 'Bearer',
      expires_in: 60,
    });
    expect(
      held.map(({ accessToken, refreshToken, expiresIn }) => [accessToken.reveal(), refreshToken?.reveal(), expiresIn]),
    ).toEqual([[ACCESS, REFRESH, 3600]]);
    expect(seen).toHaveLength(1);
    expect(login.state).toBe('held');
    expect(lastEvent()).toMatchObject({
      type: 'sandbox.proxy.passthrough',
      data: { 'svc.proxy.reason': 'login_captured', 'svc.proxy.upstream.status': 200 },
    });
  });

  test('written as a form, with a compressed reply, is captured too', async () => {
    const zipped = gzipSync(JSON.stringify({ access_token: ACCESS, token_type: 'bearer', scope: 'repo' }));
    const lines = 'Content-Type: application/json\r\nContent-Encoding: gzip\r\n';
    answer = reply(zipped.toString('latin1'), '200 OK', lines);
    const got = await ask(new URLSearchParams(DEVICE).toString(), { type: 'x-www-form-urlencoded' });
    expect(bodyOf(got)).toEqual({ access_token: PLACEHOLDER, token_type: 'Bearer', scope: 'repo' });
    expect(held[0]?.refreshToken).toBeNull();
  });

  test('gets no reply if the tokens cannot be stored', async () => {
    holdLogin = async () => err(channelFailure('unreachable', 'down for the test'));
    const got = await ask(CODE);
    expect(got).toContain('HTTP/1.1 503 ');
    expect(got).toContain('login_not_stored');
    expect(got).not.toContain('planted-');
    expect(got).not.toContain(PLACEHOLDER);
    expect(login.state).toBe('not_stored');
    expect(lastEvent()?.type).toBe('sandbox.proxy.rejected');
  });

  test('is not accepted a second time, and then nobody knows whose login it is', async () => {
    await ask(CODE);
    const got = await ask({ ...CODE, code: 'of-another-program' });
    expect(got).toContain('HTTP/1.1 403 ');
    expect(got).toContain('login_not_accepted');
    expect(seen).toHaveLength(1);
    expect(held).toHaveLength(1);
    expect(login.state).toBe('contested');
  });

  test('passes its reply while the person has not confirmed the device', async () => {
    answer = reply('{"error":"authorization_pending"}');
    expect(bodyOf(await ask(DEVICE))).toEqual({ error: 'authorization_pending' });
    answer = reply('{"error":"slow_down"}', '400 Bad Request');
    expect(await ask(DEVICE)).toContain('HTTP/1.1 400 Bad Request');
    answer = reply(JSON.stringify(TOKENS));
    expect(bodyOf(await ask(DEVICE))).toMatchObject({ access_token: PLACEHOLDER });
    expect(login.state).toBe('held');
  });

  test.each([
    ['no JSON', `access_token=${ACCESS}`],
    ['a list', JSON.stringify([TOKENS])],
    ['a key twice', `{"access_token":"${ACCESS}","access_token":"x"}`],
    ['a key twice in another spelling', `{"access_token":"${ACCESS}","access\\u005ftoken":"x"}`],
    ['deep nesting', `${'{"a":'.repeat(200)}"${ACCESS}"${'}'.repeat(200)}`],
    ['only a refresh token', JSON.stringify({ refresh_token: REFRESH })],
    ['a token that is no text', JSON.stringify({ access_token: { value: ACCESS } })],
    ['a token with a line break', JSON.stringify({ access_token: `${ACCESS}\r\nX-Y: z` })],
    ['a refresh token that is no text', JSON.stringify({ ...TOKENS, refresh_token: [REFRESH] })],
    ['a token of another type', JSON.stringify({ ...TOKENS, token_type: 'mac' })],
    ['the placeholder itself', JSON.stringify({ access_token: PLACEHOLDER, refresh_token: REFRESH })],
    ['too much', JSON.stringify({ ...TOKENS, more: 'x'.repeat(70_000) })],
    ['tokens below its top level', JSON.stringify({ data: [{ tokens: TOKENS }] })],
    ['tokens in another spelling', JSON.stringify({ accessToken: ACCESS })],
  ])('gets nothing of a reply with %s', async (_what, body) => {
    answer = reply(body);
    const got = await ask(CODE);
    expect(got).toContain('HTTP/1.1 502 ');
    expect(got).toContain('upstream_invalid_reply');
    expect(got).not.toContain('planted-');
    expect(held).toEqual([]);
    expect(login.state).toBe('withheld');
    answer = reply(JSON.stringify(TOKENS));
    expect(bodyOf(await ask({ ...CODE, code: 'of-the-next-try' }))).toMatchObject({ access_token: PLACEHOLDER });
    expect(login.state).toBe('held');
  });

  test('gets no redirect, which could take the code to another host', async () => {
    const lines = 'Content-Type: application/json\r\nLocation: https://elsewhere.example.test/token\r\n';
    answer = reply('{}', '307 Temporary Redirect', lines);
    const got = await ask(CODE);
    expect(got).toContain('HTTP/1.1 502 ');
    expect(got).not.toContain('elsewhere');
    expect(login.state).toBe('waiting');
  });

  test('may leave a login at the provider if the client goes away before the reply', async () => {
    const client = await plane.open(HOST, HOST, 'login');
    [answer, onRequest] = ['', () => client.destroy()];
    const text = JSON.stringify(CODE);
    const head = `POST /token HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/json\r\n`;
    client.write(`${head}Content-Length: ${text.length}\r\n\r\n${text}`);
    await expect.poll(() => login.state).toBe('withheld');
    expect(held).toEqual([]);
  });

  test('is refused without a place for its event', async () => {
    plane.audit.accepting = false;
    expect(await ask(CODE)).toContain('audit_unavailable');
    expect(seen).toEqual([]);
  });

  test('is refused with the name of another host', async () => {
    expect(await ask(CODE, { host: 'other.example.test' })).toContain('HTTP/1.1 4');
    expect(seen).toEqual([]);
    expect(held).toEqual([]);
  });

  test('that is repeated after its tokens could not be stored is refused, and is no second login', async () => {
    holdLogin = async () => err(channelFailure('unreachable', 'down for the test'));
    await ask(CODE);
    expect(await ask({ ...CODE, code: 'of-the-next-try' })).toContain('login_not_accepted');
    expect(login.state).toBe('not_stored');
    expect(seen).toHaveLength(1);
  });

  test('with the same code again is refused, and is no second login', async () => {
    await ask(CODE);
    expect(await ask(CODE)).toContain('login_not_accepted');
    expect(login.state).toBe('held');
    expect(seen).toHaveLength(1);
  });

  test('gets named texts of the reply, and none with a token in it', async () => {
    const claims = {
      email: 'dev@example.test',
      'https://api.openai.com/auth': { chatgpt_plan_type: 'pro', chatgpt_account_id: ACCESS, user_id: 'usr' },
    };
    answer = reply(
      JSON.stringify({
        ...TOKENS,
        scope: `user:inference ${REFRESH}`,
        id_token: `${part({ alg: 'RS256' })}.${part(claims)}.planted-signature`,
        account: { uuid: 'acc', email_address: 'dev@example.test', secret: 'planted-other' },
        organization: { uuid: ACCESS, name: `of ${REFRESH}` },
        api_key: 'planted-key',
      }),
      '200 OK',
      'Content-Type: application/json\r\nSet-Cookie: planted-cookie=1\r\n',
    );
    const got = await ask(CODE);
    expect(got).not.toContain('planted-');
    const body = Object(bodyOf(got));
    expect(Object.keys(body).toSorted()).toEqual([
      'access_token',
      'account',
      'expires_in',
      'id_token',
      'refresh_token',
      'refresh_token_expires_in',
      'token_type',
    ]);
    expect(body.account).toEqual({ uuid: 'acc', email_address: 'dev@example.test' });
    const shown = Buffer.from(String(body.id_token).split('.')[1] ?? '', 'base64url').toString();
    expect(shown).not.toContain('planted-');
    expect(JSON.parse(shown)).toMatchObject({ email: 'dev@example.test' });
    expect(held[0]?.account).toEqual({ who: 'dev@example.test', plan: 'pro', may_make_keys: true });
  });

  test.each([
    ['user:inference', false],
    ['user:inference org:create_api_key', true],
    [`user:inference ${ACCESS}`, true],
    [undefined, true],
  ])('may make keys unless the provider says what it granted, and that is not in it: %s', async (scope, expected) => {
    answer = reply(JSON.stringify({ ...TOKENS, scope }));
    await ask(CODE);
    expect(held[0]?.account).toMatchObject({ may_make_keys: expected });
  });

  test('gets no text with the real id token in it', async () => {
    const id = 'planted-id-token-0123456789';
    answer = reply(JSON.stringify({ ...TOKENS, id_token: id, scope: `user:inference ${id}` }));
    expect(await ask(CODE)).not.toContain('planted-');
    expect(login.state).toBe('held');
  });
});

describe('a request for tokens that is not the one of this login gets no tokens', () => {
  const others: [string, object | string][] = [
    ['another client', { ...CODE, client_id: 'other' }],
    ['no verifier', { ...CODE, code_verifier: '' }],
    ['another grant', { ...CODE, grant_type: 'password' }],
    ['a body that is not read', 'no form and no JSON'],
  ];
  test.each(others)('%s', async (_what, body) => {
    const got = await ask(body);
    expect(got).toContain('upstream_invalid_reply');
    expect(got).not.toContain('planted-');
    expect(held).toEqual([]);
    expect(login.state).toBe('withheld');
    expect(lastEvent()?.type).toBe('sandbox.proxy.rejected');
  });

  test('a grant that the login does not name', async () => {
    const browser = new CapturedLogin({ ...OPEN, grants: ['authorization_code'] }, PLACEHOLDER, { holdLogin });
    plane.scopes.set('browser', { ...plane.session, login: browser });
    expect(await ask(DEVICE, { token: 'browser' })).toContain('upstream_invalid_reply');
    expect(held).toEqual([]);
    expect(browser.state).toBe('withheld');
  });

  test('but gets a reply without them', async () => {
    answer = reply('{"error":"unsupported_grant_type"}');
    expect(bodyOf(await ask({ ...CODE, grant_type: 'password' }))).toEqual({ error: 'unsupported_grant_type' });
    expect(login.state).toBe('waiting');
  });

  test('and does not change what is known of a login that is held', async () => {
    await ask(CODE);
    await ask({ ...CODE, client_id: 'other' });
    expect(login.state).toBe('held');
  });
});

describe('is passed on unchanged and not captured', () => {
  test('a refresh of tokens of its own', async () => {
    const own = { grant_type: 'refresh_token', client_id: CLIENT, refresh_token: 'own' };
    expect(await ask(own)).toContain(ACCESS);
    expect(held).toEqual([]);
    expect(login.state).toBe('waiting');
  });

  test('a request of another method', async () => {
    expect(await ask(CODE, { method: 'PUT' })).toContain(ACCESS);
    expect(held).toEqual([]);
  });

  test('a request at the same path of another host', async () => {
    const other = 'other.example.test';
    await plane.upstream(
      other,
      createAnswering(() => answer),
    );
    expect(await ask(CODE, { at: other, host: other })).toContain(ACCESS);
    expect(held).toEqual([]);
  });

  test('a login in any other session', async () => {
    expect(await ask(CODE, { token: plane.token })).toContain(ACCESS);
    expect(held).toEqual([]);
  });

  test('a request at another path', async () => {
    expect(await ask(CODE, { path: '/tokens' })).toContain(ACCESS);
    expect(held).toEqual([]);
  });
});

test('in its session a refresh with a placeholder is answered, and any other request with one is refused', async () => {
  const refresh = { grant_type: 'refresh_token', client_id: CLIENT, refresh_token: refreshPlaceholder(PLACEHOLDER) };
  expect(bodyOf(await ask(refresh))).toMatchObject({ access_token: PLACEHOLDER, expires_in: 60 });
  expect(await ask({ ...refresh, client_id: 'other' })).toContain('placeholder_not_accepted');
  expect(seen).toEqual([]);
});

test('a login that is stored already gives its placeholders and adds no credential', async () => {
  const stored = sampleConnector(
    [sampleOperation({ name: 'token', method: 'POST', path: '/token', effect: 'write' })],
    {
      fqn: 'login/claude',
      hosts: [HOST],
    },
  );
  const programLogin = { clientId: CLIENT, tokenRequest: 'json', hosts: [HOST], paths: ['/token'] } as const;
  const credential = { owner: 'personal', path: 'connectors/login/claude' } as const;
  const earlier = 'earlier-placeholder-0123456789abcdefghijklmnopqrstuvwxyz';
  const emit = { mechanism: 'sentinel-swap', sentinel: earlier } as const;
  plane.credentials.set(credential, 'planted-stored-token');
  plane.policy.use(
    [sampleBinding({ host: HOST, credential, emit })],
    [{ ...stored, spec: { ...stored.spec, credential: { kind: 'oauth2', scopes: [], login: programLogin } } }],
  );
  const refresh = { grant_type: 'refresh_token', client_id: CLIENT, refresh_token: refreshPlaceholder(earlier) };
  expect(bodyOf(await ask(refresh))).toMatchObject({ access_token: earlier });
  expect(bodyOf(await ask(CODE))).toMatchObject({ access_token: PLACEHOLDER });
  expect(seen.join('')).not.toContain('planted-');
});
