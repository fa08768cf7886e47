import { afterAll, describe, expect, test } from 'vitest';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { fetchAs } from '../support/fetch_as.ts';
import { sampleOf } from '../support/full_counts.ts';
import { signupReply } from '../../shared/wire/auth.ts';
import {
  type ControlPlaneUnderTest,
  startLibsqlServer,
  startOnDeno,
  startOnNode,
  startOnWorkerd,
} from '../runtimes/programs.ts';

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});

async function onServer(start: (url: string) => Promise<ControlPlaneUnderTest>): Promise<ControlPlaneUnderTest> {
  const server = await startLibsqlServer();
  stops.push(() => server.stop());
  return start(server.url);
}

/** As a sample, workerd: on Node, browser.test.ts signs up and in by a password. */
const RUNTIMES: readonly (readonly [string, () => Promise<ControlPlaneUnderTest>])[] = [
  ['workerd', () => onServer((url) => startOnWorkerd({ url }))],
  ['Node', startOnNode],
  ['Deno', () => onServer((url) => startOnDeno({ url }))],
];

describe('specification section 5: email and password', () => {
  test.each(sampleOf(RUNTIMES, 1))('sign up and in on %s; the code is printed in local mode', async (_, start) => {
    const control = await start();
    stops.push(() => control.stop());
    const link = await fetch(`${control.url}/v1/sign-in-links`, {
      method: 'POST',
      headers: { authorization: `Bearer ${control.localKey}` },
    });
    const { host } = new URL(signInLinkReply.parse(await link.json()).url);
    const post = (path: string, body: object) =>
      fetchAs(host, control.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const credentials = { email: 'alice@acme.test', password: 'correct horse battery' };
    const asked = signupReply.parse(await (await post('/auth/signup', credentials)).json());
    const code = /Your code is (\d{8})/.exec(control.output())?.[1] ?? '';
    const verified = await post('/auth/verify', { signup_id: asked.signup_id, code });
    expect([verified.status, verified.headers.get('set-cookie')]).toEqual([
      200,
      expect.stringContaining('svc_session='),
    ]);
    const signedIn = await post('/auth/login', credentials);
    expect(signedIn.status).toBe(200);
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    const me = await fetchAs(host, `${control.url}/v1/me`, { headers: { cookie } });
    expect(await me.json()).toMatchObject({ email: credentials.email, role: 'owner' });
    expect((await post('/auth/login', { ...credentials, password: 'not the right one' })).status).toBe(401);
  });
});
