import { afterEach, beforeEach, expect, test } from 'vitest';
import { type HostedUser, ownerWithMember, signInBrowser } from '../../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, NO_OUTBOUND } from '../../../../e2e/runtimes/in_process.ts';
import { FRONT, startHostedSignIn } from '../../../../e2e/sign_in/hosted_sign_in.ts';
import { TestBrowser } from '../../../../e2e/sign_in/test_browser.ts';

const CLIENT = 'https://client.example.com/client.json';
const FIELDS = {
  name: 'Acme',
  providers: 'every',
  domain_joining: 'closed',
  oidc_issuer: 'https://id.acme.test',
  oidc_client_id: 'svc',
  oidc_client_secret: 'secret-of-a-test',
  oidc_domains: '',
};

let control: InProcess;
let owner: TestBrowser;
let member: TestBrowser;
beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
  const people = await ownerWithMember(control);
  owner = await browserOf(people.owner);
  member = await browserOf(people.member);
});
afterEach(() => control.stop());

async function browserOf({ caller }: HostedUser): Promise<TestBrowser> {
  const browser = new TestBrowser(control.send, FRONT);
  const [name = '', value = ''] = (await signInBrowser(control, caller)).split('=');
  browser.cookies.set(name, value);
  return browser;
}

async function save(change: Readonly<Record<string, string>>): Promise<Response> {
  const page = await (await owner.get('/enterprise')).text();
  const [, revision = ''] = /name="revision" value="([^"]+)"/.exec(page) ?? [];
  return owner.submit('/enterprise', { ...FIELDS, ...change, revision });
}

test('the settings have the MCP clients of the provider, which members see', async () => {
  expect((await save({ provider_mcp_clients: `${CLIENT}\n` })).headers.get('location')).toBe(
    '/enterprise?done=settings_changed',
  );
  expect(await (await owner.get('/enterprise')).text()).toContain(`${CLIENT}</textarea>`);
  expect(await (await member.get('/enterprise')).text()).toContain(CLIENT);
  // A form without the field changes nothing about them.
  await save({ oidc_client_secret: '' });
  expect(await (await owner.get('/enterprise')).text()).toContain(`${CLIENT}</textarea>`);
  await save({ oidc_client_secret: '', provider_mcp_clients: '' });
  expect(await (await owner.get('/enterprise')).text()).not.toContain(CLIENT);
});

test('what is wrong with them is beside their field', async () => {
  const wrong: readonly Readonly<Record<string, string>>[] = [
    { provider_mcp_clients: 'http://client.example.com/client.json' },
    { provider_mcp_clients: 'svc_client_unknown' },
    { provider_mcp_clients: CLIENT, oidc_issuer: '', oidc_client_id: '', oidc_client_secret: '' },
  ];
  for (const change of wrong) {
    const reply = await save(change);
    expect([reply.status, await reply.text()]).toEqual([
      400,
      expect.stringContaining('id="provider_mcp_clients-problem"'),
    ]);
  }
});
