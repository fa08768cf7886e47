import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addUser, type InProcess } from '../../../e2e/runtimes/in_process.ts';
import { hostedUser, PUBLIC_URL, signInBrowser, startHosted } from '../../../e2e/runtimes/hosted_users.ts';
import { type AppOptions, createApp } from '../../app.ts';
import { fileAssets } from '../../entries/file_assets.ts';

let control: InProcess;
let cookie = '';
let bearer = '';
beforeAll(async () => {
  control = await startHosted();
  const caller = await addUser(control.context, null);
  cookie = await signInBrowser(control, caller);
  const user = await hostedUser(control);
  bearer = `Bearer ${user.tokens.access_token}`;
  await user.call('POST', '/v1/secrets', { path: 'one', value: 'the value of it', description: 'x'.repeat(500) });
  await user.call('POST', '/v1/secrets', { path: 'two', value: 'the value of it', description: 'y'.repeat(500) });
});
afterAll(() => control.stop());

const appWith = (options: Partial<AppOptions>) =>
  createApp({ context: () => control.context, assets: fileAssets(), log: () => undefined, ...options });

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}
const ask = (path: string, { headers, ...how }: Asked = {}, options: Partial<AppOptions> = { compresses: true }) => {
  const all = { 'accept-encoding': 'gzip, deflate, br, zstd', ...headers };
  return Promise.resolve(appWith(options).fetch(new Request(PUBLIC_URL + path, { ...how, headers: all })));
};
const SAID = ['content-encoding', 'content-length', 'vary', 'content-type'];
const headersOf = (reply?: Response) => SAID.map((name) => reply?.headers.get(name));
const codingOf = (reply: Response) => reply.headers.get('content-encoding');
/** Its content coding, and whether a proxy may compress it. */
const fate = async (asked: Promise<Response>) => {
  const reply = await asked;
  await reply.arrayBuffer();
  return [codingOf(reply), /\bno-transform$/.test(reply.headers.get('cache-control') ?? '') ? 'kept' : 'free'];
};
const LEFT_ALONE = [null, 'kept'];
const SAME_ORIGIN = () => ({ cookie, 'sec-fetch-site': 'same-origin' });

describe('a reply is compressed', () => {
  test.each([
    ['a page', '/', SAME_ORIGIN],
    ['a page that was typed', '/secrets', () => ({ cookie, 'sec-fetch-site': 'none' })],
    ['a page for everybody', '/docs', () => ({ 'sec-fetch-site': 'cross-site' })],
    ['JSON for a program', '/v1/secrets', () => ({ authorization: bearer })],
    ['the description of the API', '/openapi.json', () => ({})],
  ])('when it is %s', async (_, path, headers) => {
    const plain = await ask(path, { headers: { ...headers(), 'accept-encoding': 'identity' } });
    const coded = await ask(path, { headers: headers() });
    expect([plain.status, codingOf(plain), plain.headers.get('vary')]).toEqual([200, null, 'Accept-Encoding']);
    const bytes = Buffer.from(await coded.arrayBuffer());
    const text = await plain.text();
    expect([codingOf(coded), coded.headers.get('vary')]).toEqual(['gzip', 'Accept-Encoding']);
    expect(coded.headers.get('content-length')).toBe(String(bytes.length));
    expect(gunzipSync(bytes).length).toBe(Buffer.byteLength(text));
    expect(coded.headers.get('content-type')).toBe(plain.headers.get('content-type'));
  });

  test('with its headers and cookies unchanged', async () => {
    const reply = await ask('/openapi.json');
    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
    expect(reply.headers.get('svc-request-id')).toMatch(/^req_/);
  });

  test('and HEAD has the headers of GET', async () => {
    const [get, head] = await Promise.all(['GET', 'HEAD'].map((method) => ask('/openapi.json', { method })));
    expect(headersOf(head)).toEqual(headersOf(get));
    expect([codingOf(head!), (await head!.arrayBuffer()).byteLength]).toEqual(['gzip', 0]);
  });

  test.each([
    ['gzip;q=0, *;q=0.5', null],
    ['identity, gzip;q=0.5', null],
    ['br, zstd', null],
    ['*', 'gzip'],
    ['GZIP', 'gzip'],
    ['identity;q=0.5, gzip;q=0.5', 'gzip'],
    ['', null],
    [';;,q=', null],
  ])('as the client prefers: %j', async (accepted, coding) => {
    const reply = await ask('/openapi.json', { headers: { 'accept-encoding': accepted } });
    expect([reply.status, codingOf(reply)]).toEqual([200, coding]);
    await reply.arrayBuffer();
  });
});

describe('a reply is not compressed', () => {
  test.each(['cross-site', 'same-site', undefined])(
    'if a page of another site may have requested it (%s), because its length would reveal its content',
    async (site) => {
      const headers = { cookie, ...(site !== undefined && { 'sec-fetch-site': site }) };
      expect(await fate(ask('/secrets?q=guess', { headers }))).toEqual(LEFT_ALONE);
      expect(await fate(ask('/v1/marketplace/servers?q=guess', { headers }))).toEqual(LEFT_ALONE);
    },
  );

  test('if it shows a token', async () => {
    const headers = { ...SAME_ORIGIN(), origin: PUBLIC_URL, 'content-type': 'application/x-www-form-urlencoded' };
    const fields = { name: 'a script', expires_in_days: '90', 'scope secrets:read': 'on' };
    const shown = ask('/account/tokens', {
      method: 'POST',
      headers,
      body: new URLSearchParams(fields).toString(),
    });
    expect((await shown).status).toBe(201);
    expect(await fate(shown)).toEqual(LEFT_ALONE);
    const json = { authorization: bearer, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'a script', scopes: ['secrets:read'], expires_in_days: 1 });
    expect(await fate(ask('/v1/tokens', { method: 'POST', headers: json, body }))).toEqual(LEFT_ALONE);
  });

  test('if it is a refusal, or on routes with codes and tokens', async () => {
    expect(await fate(ask('/v1/secrets'))).toEqual(LEFT_ALONE);
    expect(await fate(ask('/device', { headers: SAME_ORIGIN() }))).toEqual(LEFT_ALONE);
    expect(await fate(ask('/auth/providers'))).toEqual(LEFT_ALONE);
    expect(await fate(ask('/auth/sso?email=a@example.test'))).toEqual(LEFT_ALONE);
  });

  test('if it is an event stream, which must not be delayed', async () => {
    const reply = await ask('/v1/audit-events/stream', { headers: { authorization: bearer } });
    expect([codingOf(reply), reply.headers.get('vary')]).toEqual([null, null]);
    const reader = reply.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('retry:');
    await reader.cancel();
  });

  test('if it is small', async () => {
    const reply = await ask('/v1/health');
    expect([codingOf(reply), reply.headers.get('vary'), reply.headers.get('content-length')]).toEqual([
      null,
      'Accept-Encoding',
      String((await reply.arrayBuffer()).byteLength),
    ]);
  });

  test('if the platform compresses', async () => {
    const reply = await ask('/openapi.json', {}, {});
    expect([codingOf(reply), reply.headers.get('vary')]).toEqual([null, 'Accept-Encoding']);
    expect(await fate(ask('/v1/secrets', {}, {}))).toEqual(LEFT_ALONE);
  });
});
