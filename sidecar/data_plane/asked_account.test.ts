import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ok } from '../../shared/model/result.ts';
import type { CapturedTokens } from '../control/control_channel.ts';
import { CapturedLogin } from '../session/session_login.ts';
import { createAnswering, type DataPlane, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** The login of gh, whose token reply does not say whose it is: the sidecar asks, and the program gets only the name. */

const HOST = 'github.com';
const API = 'api.github.com';
const PLACEHOLDER = 'svc-stand-in-not-a-key-github';
const TOKEN = 'planted-gho-0123456789abcdefghij';
const OPEN = {
  id: 'plg_00000000000000000000000000',
  program: 'gh',
  tokenUrl: `https://${HOST}/login/oauth/access_token`,
  clientId: 'client-of-a-test',
  grants: ['device_code'],
  key: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' },
  expiresAt: 0,
} as const;
const POLL = new URLSearchParams({
  client_id: OPEN.clientId,
  device_code: 'device-of-a-test',
  grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
}).toString();
const ISSUED = new URLSearchParams({ access_token: TOKEN, scope: 'gist,repo', token_type: 'bearer' }).toString();
const QUESTION = '{"query":"query UserCurrent{viewer{login}}"}';

let plane: DataPlane;
let toApi: string[];
let login: CapturedLogin;
let held: CapturedTokens[];
let tokenReply: string;
let apiReply: string;

function reply(body: string, type: string, status = '200 OK'): string {
  return `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
const form = (body: string): string => reply(body, 'application/x-www-form-urlencoded; charset=utf-8');
const json = (value: object, status?: string): string => reply(JSON.stringify(value), 'application/json', status);

beforeEach(async () => {
  [toApi, held] = [[], []];
  tokenReply = form(ISSUED);
  apiReply = json({ data: { viewer: { login: 'octo', email: 'planted-email' } }, extensions: 'planted-more' });
  plane = await startDataPlane();
  await plane.upstream(
    HOST,
    createAnswering(() => tokenReply),
  );
  await plane.upstream(
    API,
    createAnswering((request) => (toApi.push(request), apiReply)),
  );
  login = new CapturedLogin(OPEN, PLACEHOLDER, {
    holdLogin: async (_open, tokens) => (held.push(tokens), ok(undefined)),
  });
  plane.scopes.set('login', { ...plane.session, login });
});
afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
  expect(JSON.stringify(plane.audit.events)).not.toContain('planted-');
});

async function send(host: string, head: string, body: string, session = 'login'): Promise<string> {
  const client = await plane.open(host, host, session);
  client.write(`${head}\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  return readUntil(client, () => false);
}
const poll = (body = POLL): Promise<string> =>
  send(HOST, 'POST /login/oauth/access_token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded', body);
const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4);

interface Asked {
  readonly line?: string;
  readonly body?: string;
  readonly authorization?: string;
  readonly session?: string;
}
const ask = ({ line, body = QUESTION, authorization = `token ${PLACEHOLDER}`, session }: Asked = {}): Promise<string> =>
  send(
    API,
    `${line ?? 'POST /graphql'} HTTP/1.1\r\nX-Own: of-the-program\r\nAuthorization: ${authorization}`,
    body,
    session,
  );

describe('the reply to a poll, written as a form,', () => {
  test('gives the token to the control plane and the placeholder to the program, as a form', async () => {
    const got = await poll();
    expect(got).toContain('Content-Type: application/x-www-form-urlencoded\r\n');
    const fields = Object.fromEntries(new URLSearchParams(bodyOf(got)));
    expect(fields).toEqual({ access_token: PLACEHOLDER, token_type: 'Bearer', scope: 'gist,repo' });
    expect(held.map(({ accessToken, refreshToken }) => [accessToken.reveal(), refreshToken])).toEqual([[TOKEN, null]]);
  });

  test.each(['authorization_pending', 'slow_down', 'expired_token', 'access_denied'])(
    'passes with %s',
    async (error) => {
      tokenReply = form(`error=${error}&error_description=Not+yet.`);
      expect(bodyOf(await poll())).toBe(`error=${error}&error_description=Not+yet.`);
      expect(login.state).toBe('waiting');
    },
  );

  test.each([
    ['a name twice', `access_token=${TOKEN}&access_token=${TOKEN}2`],
    ['a name twice in another spelling', `access_token=${TOKEN}&access%5Ftoken=${TOKEN}2`],
    ['a separator that some parsers know', `error=x;access_token=${TOKEN}`],
    ['a broken escape', `error=%&access_token=${TOKEN}`],
    ['JSON', JSON.stringify({ access_token: TOKEN })],
  ])('is withheld with %s', async (_what, body) => {
    tokenReply = form(body);
    const got = await poll();
    expect(got).toContain('HTTP/1.1 502 ');
    expect(got).not.toContain('planted-');
    expect(held).toEqual([]);
  });
});

describe('the question whose login it is', () => {
  test('is asked by the sidecar with the new token, and the program gets only the name', async () => {
    await poll();
    const got = await ask();
    expect(got).toContain('HTTP/1.1 200 ');
    expect(JSON.parse(bodyOf(got))).toEqual({ data: { viewer: { login: 'octo' } } });
    expect(got).not.toContain('planted-');
    expect(toApi).toHaveLength(1);
    expect(toApi[0]).toContain(`\r\nAuthorization: Bearer ${TOKEN}\r\n`);
    expect(toApi[0]).not.toContain('of-the-program');
    expect(bodyOf(toApi[0] ?? '')).toBe(QUESTION);
    expect(login.who).toBe('octo');
    expect(plane.audit.events.at(-1)).toMatchObject({
      type: 'sandbox.proxy.passthrough',
      data: { 'svc.proxy.reason': 'login_account_asked', 'svc.proxy.upstream.status': 200 },
    });
  });

  test('is not asked again once it is answered', async () => {
    await poll();
    await ask();
    expect(await ask()).toContain('login_not_accepted');
    expect(toApi).toHaveLength(1);
  });

  test('is asked three times at most', async () => {
    apiReply = json({ message: 'down for the test' }, '503 Service Unavailable');
    await poll();
    for (let times = 1; times <= 3; times += 1) expect(await ask()).toContain('upstream_invalid_reply');
    expect(await ask()).toContain('login_not_accepted');
    expect(toApi).toHaveLength(3);
    expect(login.who).toBeNull();
  });

  test.each([
    ['no name', { data: { viewer: null } }],
    ['a name with an escape sequence', { data: { viewer: { login: 'octo\u001B[31m' } } }],
    ['the token as the name', { data: { viewer: { login: `${TOKEN}.` } } }],
  ])('is not answered with %s', async (_what, body) => {
    apiReply = json(body);
    await poll();
    const got = await ask();
    expect(got).toContain('upstream_invalid_reply');
    expect(got).not.toContain('planted-');
    expect(login.who).toBeNull();
  });

  test('is not asked in a login that two programs have begun', async () => {
    await poll();
    expect(await poll(POLL.replace('device-of-a-test', 'device-of-another'))).toContain('login_not_accepted');
    await ask();
    expect(toApi.join('')).not.toContain(TOKEN);
  });
});

describe('the new token is in no other request', () => {
  test.each<[string, Asked]>([
    ['another question', { body: '{"query":"query UserCurrent{viewer{login email}}"}' }],
    ['a mutation', { body: '{"query":"mutation{createGist}"}' }],
    ['variables', { body: '{"query":"query UserCurrent{viewer{login}}","variables":{"a":1}}' }],
    ['a second operation', { body: `{"query":"query UserCurrent{viewer{login}}","operationName":"x"}` }],
    ['two questions', { body: '{"query":"mutation{x}","query":"query UserCurrent{viewer{login}}"}' }],
    ['a list of questions', { body: `[${QUESTION}]` }],
  ])('with %s, which is refused', async (_what, asked) => {
    await poll();
    expect(await ask(asked)).toContain('placeholder_not_accepted');
    expect(toApi).toEqual([]);
  });

  test.each<[string, Asked]>([
    ['another path', { line: 'POST /user' }],
    ['a path below', { line: 'POST /graphql/x' }],
    ['a query', { line: 'POST /graphql?a=b' }],
    ['another method', { line: 'PUT /graphql' }],
    ['another credential', { authorization: 'token own' }],
    ['another session', { session: 'other' }],
  ])('to %s', async (_what, asked) => {
    plane.scopes.set('other', plane.session);
    await poll();
    await ask(asked);
    expect(toApi).toHaveLength(1);
    expect(toApi[0]).not.toContain('planted-');
    expect(toApi[0]).toContain('of-the-program');
  });

  test('before the token is held', async () => {
    await ask();
    expect(toApi[0]).toContain(`token ${PLACEHOLDER}`);
  });

  test('without a record of it', async () => {
    await poll();
    plane.audit.accepting = false;
    expect(await ask()).toContain('audit_unavailable');
    expect(toApi).toEqual([]);
  });
});
