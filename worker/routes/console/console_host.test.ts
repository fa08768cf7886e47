import { setCookie } from 'hono/cookie';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type InProcess,
  newLocalKey,
  newMasterKey,
  ORIGIN,
  parseReply,
  startInProcess,
} from '../../../e2e/runtimes/in_process.ts';
import { ok } from '../../../shared/model/result.ts';
import { signInLinkReply } from '../../../shared/wire/account.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { createApp } from '../../app.ts';
import { TestBrowser } from '../../../e2e/sign_in/test_browser.ts';
import { fileAssets } from '../../entries/file_assets.ts';
import type { AuthProvider, CallbackRequest } from '../../sign_in/provider.ts';
import { forget } from '../../store/installation.ts';
import { pageTable } from './page_table.ts';

const LOOPBACK = [ORIGIN, 'http://localhost:7420', 'http://[::1]:7420', 'http://127.9.9.9:7420'];

let control: InProcess;
const keys = { masterKey: newMasterKey(), localKey: new Secret(newLocalKey()) };
beforeEach(async () => {
  control = await startInProcess(keys);
});
afterEach(() => control.stop());

const bearer = () => ({ authorization: `Bearer ${keys.localKey.reveal()}` });
const newLink = async () =>
  (await parseReply(signInLinkReply, control.send('/v1/sign-in-links', { method: 'POST', headers: bearer() }))).url;
const cookieOf = (reply: Response) => (reply.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
const signIn = async () => cookieOf(await control.send(await newLink()));
const hostOf = (started: InProcess) => started.context.local?.consoleHost ?? '';
const statusOf = async (url: string, cookie: string, on = control) =>
  (await on.send(url, { headers: { cookie } })).status;

describe('the console of local mode', () => {
  test('has its own host name, which the sign-in link uses', async () => {
    const { hostname, port } = new URL(await newLink());
    expect([hostname, port]).toEqual([expect.stringMatching(/^svc-[0-9a-f]{32}\.localhost$/), '7420']);
    const cookie = await signIn();
    expect(await statusOf(`${control.consoleOrigin}/`, cookie)).toBe(200);
    expect(await statusOf(`${control.consoleOrigin}/v1/me`, cookie)).toBe(200);
  });

  test.each(LOOPBACK)(
    'accepts no cookie at %s, which browsers send to every server of this machine',
    async (origin) => {
      const cookie = await signIn();
      for (const path of ['/v1/me', '/', '/secrets', '/v1/audit-events/stream']) {
        expect([path, await statusOf(origin + path, cookie)]).toEqual([path, 401]);
      }
      const forged = { cookie, origin, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
      const body = JSON.stringify({ path: 'user/one', value: 'value-of-a-test' });
      const sent = await control.send(`${origin}/v1/secrets`, { method: 'POST', headers: forged, body });
      expect(sent.status).toBe(401);
    },
  );

  test.each(LOOPBACK)('sets no cookie at %s, and does not use up the link', async (origin) => {
    const link = new URL(await newLink());
    const opened = await control.send(origin + link.pathname);
    expect([opened.status, opened.headers.get('set-cookie')]).toEqual([401, null]);
    expect((await control.send(link.href)).status).toBe(303);
  });

  test('treats forged headers as no session: without a cookie nothing is allowed', async () => {
    const forged = { origin: control.consoleOrigin, 'sec-fetch-site': 'same-origin', host: hostOf(control) };
    for (const origin of [control.consoleOrigin, ORIGIN]) {
      const sent = await control.send(`${origin}/v1/secrets/none`, { method: 'DELETE', headers: forged });
      expect(sent.status).toBe(401);
    }
  });

  test('refuses changes with its cookie by a page of another origin, including loopback pages', async () => {
    const cookie = await signIn();
    for (const origin of [...LOOPBACK, `http://${hostOf(control)}:9999`, 'http://svc-1.localhost:7420', 'null']) {
      const sent = await control.inBrowser('/v1/secrets/none', { method: 'DELETE', headers: { cookie, origin } });
      expect([origin, sent.status]).toEqual([origin, 403]);
    }
  });

  test('is not named by any page, reply or refusal at a loopback name', async () => {
    const app = createApp({ context: () => control.context, assets: fileAssets(), log: () => undefined });
    const paths = pageTable(app).map(([method, path]) => [method, path.replaceAll(/\{\w+\+?\}/g, 'x')] as const);
    const asked = [...paths, ['get', '/v1/health'], ['get', '/v1/me'], ['get', '/auth/providers']] as const;
    expect(asked.length).toBeGreaterThan(80);
    for (const [method, path] of asked) {
      const reply = await control.send(`${path}?state=console.made-up&code=x`, { method });
      const text = JSON.stringify([...reply.headers]) + (await reply.text());
      expect([path, text.includes(hostOf(control))]).toEqual([path, false]);
      expect(reply.headers.get('set-cookie')).toBeNull();
    }
  });

  test.each(['svc-0.localhost', 'localhost.evil.test', 'x.localhost'])('does not answer as %s', async (name) => {
    expect((await control.send(`http://${name}:7420/v1/health`)).status).toBe(421);
  });

  test('does not answer to names similar to its own', async () => {
    for (const name of [`x.${hostOf(control)}`, `${hostOf(control)}.evil.test`, `${hostOf(control)}.`]) {
      expect([name, (await control.send(`http://${name}:7420/v1/health`)).status]).toEqual([name, 421]);
    }
  });

  test('keeps its name and its sessions after a restart', async () => {
    const cookie = await signIn();
    const again = await startInProcess({ ...keys, database: control.context.database });
    expect(hostOf(again)).toBe(hostOf(control));
    expect(await statusOf(`${again.consoleOrigin}/`, cookie, again)).toBe(200);
    await again.stop();
  });

  test('ends the sessions from before it had a name', async () => {
    const [cookie, link] = [await signIn(), await newLink()];
    const { database } = control.context;
    await database.write([forget(database, 'console_host')]);
    const again = await startInProcess({ ...keys, database });
    expect(hostOf(again)).not.toBe(hostOf(control));
    expect(await statusOf(`${again.consoleOrigin}/`, cookie, again)).toBe(401);
    expect((await again.inBrowser(new URL(link).pathname)).status).toBe(410);
    await again.stop();
  });
});

test('sets no cookie at a loopback name by any route', async () => {
  const app = createApp({ context: () => control.context, assets: fileAssets(), log: () => undefined });
  app.get('/sets-a-cookie', (c) => {
    setCookie(c, 'svc_session', 'of-a-test');
    return c.text('');
  });
  const set = async (origin: string) =>
    (await app.fetch(new Request(`${origin}/sets-a-cookie`))).headers.get('set-cookie');
  expect(await set(control.consoleOrigin)).toContain('svc_session');
  for (const origin of LOOPBACK) expect(await set(origin)).toBeNull();
});

test.each(['/auth/login', '/auth/verify'])('%s gives no session at a loopback name', async (path) => {
  const body = JSON.stringify({
    email: 'a@b.test',
    password: 'correct horse battery',
    signup_id: 'x',
    code: '12345678',
  });
  const sent = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const reply = await control.send(path, sent);
  expect([400, 421]).toContain(reply.status);
  expect(reply.headers.get('set-cookie')).toBeNull();
});

describe('a sign-in at a provider', () => {
  const IDENTITY = {
    subject: '1',
    email: 'a@b.test',
    emailVerified: true,
    displayName: 'A',
    issuer: 'https://id.test',
  };
  const exchanged: CallbackRequest[] = [];
  beforeEach(() => {
    exchanged.length = 0;
    const fake: AuthProvider = {
      name: 'fake',
      title: 'Fake',
      authorizationURL: async ({ state, redirectURL }) =>
        ok({ url: `https://id.test/?${new URLSearchParams({ state, redirectURL }).toString()}`, extraState: 'extra' }),
      exchange: async (request) => {
        exchanged.push(request);
        return ok(IDENTITY);
      },
    };
    Object.assign(control.context, {
      signIn: { ...control.context.signIn, providers: new Map([['fake', fake]]) },
    });
  });

  test('returns to loopback, is redirected once, and completes in the browser that started it', async () => {
    expect((await control.send('/auth/fake/login')).status).toBe(401);
    const browser = new TestBrowser(control.inBrowser);
    const begun = new URL((await browser.get('/auth/fake/login')).headers.get('location') ?? '');
    const { state = '', redirectURL } = Object.fromEntries(begun.searchParams);
    expect(redirectURL).toBe(`${ORIGIN}/auth/fake/callback`);
    const path = `/auth/fake/callback?state=${state}&code=c`;
    const handed = await control.send(path);
    expect([handed.status, handed.headers.get('location')]).toEqual([303, control.consoleOrigin + path]);
    // Somebody who saw the URL lacks the browser's cookie and cannot complete it.
    expect((await control.inBrowser(path)).status).toBeGreaterThanOrEqual(400);
    expect(exchanged).toEqual([]);
    expect((await browser.get(path)).status).toBe(303);
    expect(exchanged).toMatchObject([{ code: 'c', redirectURL: `${ORIGIN}/auth/fake/callback` }]);
    expect((await control.send(path)).headers.get('location')).toBeNull();
  });

  test('with an unknown state is not redirected', async () => {
    const asked = await control.send('/auth/fake/callback?state=made-up&code=c');
    expect([asked.status, asked.headers.get('location')]).toEqual([400, null]);
    expect(await asked.text()).toContain('<a class="button" href="/">Open the console</a>');
  });
});

describe('a command to copy', () => {
  const command = ['/home/ada/the box/bin/svc', '--home', '/home/ada/other'];
  const openAt = (url: string, cookie: string) => {
    const { local } = control.context;
    const context = { ...control.context, local: local === null ? null : { ...local, command } };
    const app = createApp({ context: () => context, assets: fileAssets(), log: () => undefined });
    return app.fetch(new Request(url, { headers: { cookie } }));
  };

  test('is called as svc is on this machine, and so are the configurations of clients', async () => {
    const cookie = await signIn();
    const page = await (await openAt(`${control.consoleOrigin}/mcp-servers/clients`, cookie)).text();
    expect(page).toContain("'/home/ada/the box/bin/svc' --home /home/ada/other mcp export --client cursor --write");
    expect(page).toMatch(/&quot;command&quot;: &quot;\/home\/ada\/the box\/bin\/svc&quot;/);
  });

  test('does not say where svc is at a loopback name, where anybody may ask', async () => {
    const page = await (await openAt(`${ORIGIN}/secrets`, '')).text();
    expect(page).toContain('svc console');
    expect(page).not.toContain('/home/ada');
  });
});

const callElsewhere = async (url: string, cookie = '') => {
  const app = createApp({
    context: () => control.context,
    assets: fileAssets(),
    log: () => undefined,
    isOtherUser: async () => true,
  });
  return app.fetch(new Request(url, { headers: { cookie } }));
};

describe('another user of the machine', () => {
  test('is not signed in with the cookie of the owner’s browser', async () => {
    const cookie = await signIn();
    for (const path of ['/', '/v1/me']) {
      expect([path, (await callElsewhere(control.consoleOrigin + path, cookie)).status]).toEqual([path, 401]);
      expect([path, await statusOf(control.consoleOrigin + path, cookie)]).toEqual([path, 200]);
    }
  });

  test('cannot use a sign-in link first: it stays valid', async () => {
    const link = await newLink();
    const first = await callElsewhere(link);
    expect([first.status, first.headers.get('set-cookie')]).toEqual([403, null]);
    expect((await control.send(link)).status).toBe(303);
  });
});
