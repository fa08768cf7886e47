import { afterAll, beforeAll, expect, test } from 'vitest';
import { hostedUser, outcome, signInBrowser, startHosted } from '../../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../../e2e/runtimes/in_process.ts';

let control: InProcess;
let cookie: string;
beforeAll(async () => {
  control = await startHosted();
  Object.assign(control.context, {
    publicUrl: 'https://control.acme.test',
    signIn: { ...control.context.signIn, allowedHosts: ['control.acme.test', 'other.acme.test'] },
  });
  cookie = await signInBrowser(control, (await hostedUser(control)).caller);
});
afterAll(() => control.stop());

/** A change with a browser's cookie at a worker behind a TLS proxy that calls it over http. */
function change(headers: Record<string, string>): Promise<unknown> {
  const body = JSON.stringify({ path: `some/${crypto.randomUUID()}`, value: 'value-of-a-test' });
  const type = { 'content-type': 'application/json', host: 'control.acme.test', cookie };
  return outcome(control.send('/v1/secrets', { method: 'POST', headers: { ...type, ...headers }, body }));
}

test.each(['https://control.acme.test', 'https://other.acme.test'])(
  'a page of %s, a name of this control plane, can change things',
  async (origin) => expect(await change({ origin })).toBe(201),
);

test.each([
  ['of another site', { origin: 'https://evil.test' }],
  ['of the same name over plain http', { origin: 'http://control.acme.test' }],
  ['of the same name at another port', { origin: 'https://control.acme.test:8443' }],
  ['of a name below it', { origin: 'https://pages.control.acme.test' }],
  ['of the address that the proxy calls', { origin: 'http://127.0.0.1:7420' }],
  ['that has no origin', { origin: 'null' }],
  ['that says nothing', {}],
  ['of another name of the domain', { origin: 'https://control.acme.test', 'sec-fetch-site': 'same-site' }],
])('a page %s cannot change anything', async (_, headers) => expect(await change(headers)).toBe('cross_site_request'));
