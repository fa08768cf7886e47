import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { mcpServerRecord, mcpServersPage } from '../../shared/wire/mcp/mcp_servers.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import { CLIENT_ID, CLIENT_SECRET, type OAuthProvider, startOAuthProvider } from '../runtimes/oauth_provider.ts';
import { listen } from '../support/tls_upstream.ts';
import { consoleSuite } from './console_suite.ts';
import { expectAccessible, expectFits, PLANTED_SECRET, tabTo } from './console_world.ts';

// Issue 8: servers outside any registry, from the first field to the sign-in, and the authorisation of connectors, all in a
// browser, against a worker on Node and a provider that registers clients.

const withoutScripts = { javaScriptEnabled: false };
const created = z.object({ id: z.string() });

let provider: OAuthProvider;
/** One that registers no clients. */
let closed: OAuthProvider;
let remote: Server;
let remoteUrl: string;

const suite = consoleSuite({
  prepare: async (world) => {
    await world.sidecar.enrol(world.control.localKey);
    remote = createServer(protectedServers);
    remoteUrl = `http://127.0.0.1:${await listen(remote)}`;
    const redirectUris = [`${world.control.url}/auth/connectors/callback`];
    provider = await startOAuthProvider({ redirectUris, registration: true, resources: [`${remoteUrl}/open`] });
    closed = await startOAuthProvider({ redirectUris });
  },
});
afterAll(async () => {
  await provider?.stop();
  await closed?.stop();
  remote?.closeAllConnections();
  remote?.close();
});

/** A remote server at /open and one at /closed, which requires a token and says where to get it. */
function protectedServers({ url = '/' }: IncomingMessage, response: ServerResponse): void {
  const [, kind = '', document] = url.split('/');
  if (document === 'metadata') {
    const issuer = kind === 'open' ? provider.origin : closed.origin;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ resource: `${remoteUrl}/${kind}`, authorization_servers: [issuer] }));
    return;
  }
  const challenge = `Bearer resource_metadata="${remoteUrl}/${kind}/metadata", scope="openid offline_access tools"`;
  response.writeHead(401, { 'www-authenticate': challenge }).end();
}

async function register(name: string, fields: object): Promise<string> {
  return created.parse(await suite.world.api('POST', '/v1/mcp-servers', { name, ...fields })).id;
}

async function serverNamed(name: string) {
  const { items } = mcpServersPage.parse(await suite.world.api('GET', `/v1/mcp-servers?name=${name}`));
  return items[0];
}

const mainText = (page: Page) => page.getByRole('main').innerText();
const local = (more: object = {}) => ({ command: ['npx', '-y', 'a-package@1.2.3'], ...more });
const signIn = (kind: 'open' | 'closed') => ({ mode: 'remote', url: `${remoteUrl}/${kind}` });

describe('a custom local server', () => {
  test('is registered without JavaScript, its secret sealed and on no page', async () => {
    const page = await suite.open('/mcp-servers', withoutScripts);
    await page.getByRole('link', { name: 'Register your own' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill('Not A Name');
    await page.getByLabel('Program', { exact: true }).fill('npx');
    await page.getByLabel('Arguments').fill('-y\na-package@1.2.3\n"with a\\nline break"');
    await page.getByLabel('Variables').fill(`LOG_LEVEL=info\nAPI_KEY=${PLANTED_SECRET}`);
    expect(await page.getByLabel('In a container').isChecked()).toBe(true);
    await page.getByText('Version, description, which tools').click();
    await page.getByLabel('Denied').fill('bad*name');
    await page.getByRole('button', { name: 'Register' }).click();
    expect(await page.locator('#name-problem').innerText()).toContain('It is not a server name');
    expect(await page.locator('#name').getAttribute('aria-invalid')).toBe('true');
    expect(await page.locator('#env-problem').innerText()).toContain('a plaintext value of API_KEY');
    expect(await page.locator('#deny-problem').innerText()).toContain('"*" may stand only at the end');
    expect(await page.getByLabel('Variables').inputValue()).toBe('LOG_LEVEL=info\nAPI_KEY');
    expect(await page.getByLabel('Arguments').inputValue()).toContain('"with a\\nline break"');
    expect(await page.getByLabel('In a container').isChecked()).toBe(true);
    expect(await page.content()).not.toContain(PLANTED_SECRET);
    await page.getByLabel('Name', { exact: true }).fill('by-form');
    await page.getByLabel('Denied').fill('delete_*');
    await page.getByRole('button', { name: 'Register' }).click();
    expect(await mainText(page)).toContain('Nothing of it runs yet');
    await page.getByLabel('API_KEY').fill(PLANTED_SECRET);
    await page.getByRole('button', { name: 'Store' }).click();
    const last = await mainText(page);
    expect(last).toContain('by-form is registered');
    for (const line of [
      'svc mcp consent by-form',
      'Run this on this machine with your rights?',
      'registered by hand',
      'in a container',
    ])
      expect(last).toContain(line);
    for (const line of ['API_KEY={API_KEY}', 'svc mcp export --client claude-code --write'])
      expect(last).toContain(line);
    expect(await page.content()).not.toContain(PLANTED_SECRET);
    const made = await serverNamed('by-form');
    expect(made).toMatchObject({
      registry_id: null,
      command: ['npx', '-y', 'a-package@1.2.3', 'with a\nline break'],
      env: { LOG_LEVEL: 'info', API_KEY: `vault://mcp-servers/${made?.id}/API_KEY` },
      isolation: 'container',
      tools: { allow: null, deny: ['delete_*'], approval: [] },
      credentials: [{ name: 'API_KEY', set: true }],
    });
  });

  test('is refused with the reason beside the field, also if its name is taken', async () => {
    await register('taken', local());
    const page = await suite.open('/mcp-servers/new', withoutScripts);
    await page.getByLabel('Name', { exact: true }).fill('taken');
    await page.getByLabel('Program', { exact: true }).fill('bash');
    await page.getByLabel('Arguments').fill('-c\necho hello');
    await page.getByRole('button', { name: 'Register' }).click();
    expect(await page.locator('#program-problem').innerText()).not.toBe('');
    expect(await page.getByLabel('Arguments').inputValue()).toBe('-c\necho hello');
    await page.getByLabel('Program', { exact: true }).fill('npx');
    await page.getByLabel('Arguments').fill('-y\na-package@1.2.3\n--token=abc-123');
    await page.getByRole('button', { name: 'Register' }).click();
    expect(await page.locator('#arguments-problem').innerText()).toContain('a plaintext value of token');
    expect(await page.getByLabel('Arguments').inputValue()).toContain('--token=vault://mcp-servers/{id}/TOKEN');
    await page.getByLabel('Arguments').fill('-y\na-package@1.2.3');
    await page.getByRole('button', { name: 'Register' }).click();
    expect(await page.locator('#name-problem').innerText()).toContain('is taken');
  });

  test('is edited in place, and only from the version that was shown', async () => {
    const id = await register('edited', local({ env: { LOG_LEVEL: 'info', KEPT_TOKEN: 'plain-and-old' } }));
    const page = await suite.open(`/mcp-servers/${id}`, withoutScripts);
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Variables').fill('LOG_LEVEL=debug\nKEPT_TOKEN=plain-and-old');
    const before = mcpServerRecord.parse(await suite.world.api('GET', `/v1/mcp-servers/${id}`));
    const { owner, name, mode, command, env } = before;
    await suite.world.api('PUT', `/v1/mcp-servers/${id}`, {
      owner,
      name,
      mode,
      command,
      env,
      description: 'Of a colleague',
    });
    await page.getByRole('button', { name: 'Save' }).click();
    expect(await mainText(page)).toContain('Somebody changed the server meanwhile');
    expect(await page.getByRole('table').innerText()).toMatch(/variable LOG_LEVEL\s+info\s+debug/);
    expect(await page.getByLabel('Variables').inputValue()).toContain('LOG_LEVEL=debug');
    expect((await serverNamed('edited'))?.env['LOG_LEVEL']).toBe('info');
    await page.getByRole('button', { name: 'Save' }).click();
    expect(await mainText(page)).toContain('The configuration is saved');
    expect(await serverNamed('edited')).toMatchObject({ revision: 3, env: { LOG_LEVEL: 'debug' } });
  });

  test('that is saved unchanged stays unchanged, for any arguments', async () => {
    const command = ['npx', '-y', 'a-package@1.2.3', '', ' spaced ', '"quoted"', 'two\nlines', '{braces}'];
    const env = { EMPTY: '', TEXT: '{NAME} "x"', AUTH: 'Bearer vault://mcp-servers/{id}/KEY' };
    const id = await register('odd', local({ command, env }));
    const page = await suite.open(`/mcp-servers/${id}/edit`, withoutScripts);
    await page.getByRole('button', { name: 'Save' }).click();
    expect((await serverNamed('odd'))?.revision).toBe(1);
    await page.goto(`/mcp-servers/${id}/edit`);
    await page.getByLabel('Arguments').press('End');
    await page.getByLabel('Arguments').fill(`${await page.getByLabel('Arguments').inputValue()}\n--more`);
    await page.getByLabel('Variables').fill(`${await page.getByLabel('Variables').inputValue()}\nMORE=1`);
    await page.getByRole('button', { name: 'Save' }).click();
    expect(await serverNamed('odd')).toMatchObject({
      revision: 2,
      command: [...command, '--more'],
      env: { EMPTY: '', TEXT: '{NAME} "x"', AUTH: `Bearer vault://mcp-servers/${id}/KEY`, MORE: '1' },
    });
  });

  test('shows its history, and where to read its output', async () => {
    const id = await register('failing', local());
    const data = { 'svc.mcp.server': 'failing', 'svc.mcp.server_id': id };
    await suite.world.record('mcp.server.started', data);
    await suite.world.record('mcp.server.failed', { ...data, 'svc.mcp.reason': 'exited' });
    await suite.world.record('mcp.server.failed', {
      'svc.mcp.server': 'another',
      'svc.mcp.server_id': await register('another', local()),
    });
    const page = await suite.open(`/mcp-servers/${id}`);
    const panel = page.getByRole('region', { name: 'What happened' });
    expect(await panel.innerText()).toContain('svc mcp logs failing');
    expect(await panel.getByRole('row').count()).toBe(3);
    expect(await panel.innerText()).toMatch(/Failed\s+once/);
    expect(await panel.getByRole('row').filter({ hasText: 'MCP server failed' }).innerText()).toContain(
      'The program ended.',
    );
  });
});

describe('a custom remote server', () => {
  test('is registered by the keyboard alone, its header by reference', async () => {
    const page = await suite.open('/mcp-servers/new');
    await tabTo(page, 'A remote server');
    await page.keyboard.press('Enter');
    await page.waitForURL('**?mode=remote');
    await tabTo(page, 'Name');
    await page.keyboard.type('tickets');
    await tabTo(page, 'URL');
    await page.keyboard.type(`https://mcp.example.com/mcp?api_key=${PLANTED_SECRET}`);
    await tabTo(page, 'Headers');
    await page.keyboard.type(`Authorization: Bearer ${PLANTED_SECRET}`);
    await tabTo(page, 'Register');
    await page.keyboard.press('Enter');
    await page.locator('#headers-problem').waitFor();
    expect(await page.getByLabel('URL').inputValue()).toBe('https://mcp.example.com/mcp?api_key={api_key}');
    expect(await page.getByLabel('Headers').inputValue()).toBe('Authorization: Bearer {Authorization}');
    expect(await page.content()).not.toContain(PLANTED_SECRET);
    await tabTo(page, 'Register');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/credentials?**');
    await tabTo(page, 'Authorization');
    await page.keyboard.type(PLANTED_SECRET);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/connect?**');
    expect(await mainText(page)).toContain('tickets is registered');
    const made = await serverNamed('tickets');
    expect(made).toMatchObject({ transport: 'streamable-http', env: {}, isolation: 'process' });
    expect(made?.headers).toEqual({ Authorization: `Bearer vault://mcp-servers/${made?.id}/Authorization` });
    expect(made?.url).toBe(`https://mcp.example.com/mcp?api_key=vault://mcp-servers/${made?.id}/api_key`);
  });

  test('is signed in to from its page, to which the browser returns', async () => {
    const id = await register('hub', signIn('open'));
    const page = await suite.open(`/mcp-servers/${id}`, withoutScripts);
    expect(await mainText(page)).toContain('Nobody is signed in');
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(await mainText(page)).toContain('its sign-in uses other hosts');
    expect(await mainText(page)).toContain(new URL(provider.origin).host);
    expect(await page.getByRole('link', { name: 'Continue to' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Sign in there' }).click();
    expect(await mainText(page)).toContain(new URL(provider.origin).host);
    await page.getByRole('link', { name: 'Continue to' }).click();
    await page.waitForURL(`**/mcp-servers/${id}?done=mcp_signed_in`);
    const panel = page.getByRole('region', { name: 'Sign-in' });
    expect(await panel.innerText()).toMatch(/Signed in[^]*renews the tokens[^]*openid offline_access tools/);
    expect(await serverNamed('hub')).toMatchObject({ authorization: { state: 'ready' } });
    await panel.getByRole('link', { name: 'Forget it' }).click();
    await page.getByLabel('Type hub to confirm').fill('other');
    await page.getByRole('button', { name: 'Forget it' }).click();
    expect(await page.locator('#confirm-problem').innerText()).toContain('nothing was forgotten');
    await page.getByLabel('Type hub to confirm').fill('hub');
    await page.getByRole('button', { name: 'Forget it' }).click();
    expect(await mainText(page)).toContain('The sign-in is deleted');
    expect(await serverNamed('hub')).toMatchObject({ authorization: null });
  });

  test("shows its provider's refusal, and accepts each answer once", async () => {
    const id = await register('refused', signIn('open'));
    const page = await suite.open(`/mcp-servers/${id}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign in there' }).click();
    await page.getByRole('link', { name: 'Continue to' }).waitFor();
    const link = (await page.getByRole('link', { name: 'Continue to' }).getAttribute('href')) ?? '';
    const state = new URL(link).searchParams.get('state');
    const back = `/auth/connectors/callback?state=${state}&iss=${provider.origin}&error=access_denied`;
    expect((await page.goto(back))?.status()).toBe(400);
    expect(await page.getByRole('alert').innerText()).toContain('The provider refused: access_denied.');
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Back to the server' }).click();
    expect(new URL(page.url()).pathname).toBe(`/mcp-servers/${id}`);
    expect(await mainText(page)).toContain('Not finished');
    await page.goto(back);
    expect(await page.getByRole('alert').innerText()).toContain('used already');
  });

  test('accepts a manually registered client if its provider registers none', async () => {
    const id = await register('by-hand', signIn('closed'));
    const page = await suite.open(`/mcp-servers/${id}`, withoutScripts);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign in there' }).click();
    expect(await page.locator('#client_id-problem').innerText()).toContain('does not register clients automatically');
    expect(await mainText(page)).toContain(`${suite.world.control.url}/auth/connectors/callback`);
    await page.getByLabel('Client secret').fill(PLANTED_SECRET);
    await page.getByRole('button', { name: 'Sign in' }).click();
    expect(await page.locator('#client_secret-problem').innerText()).toContain('belongs to a client');
    expect(await page.getByLabel('Client secret').inputValue()).toBe('');
    expect(await page.content()).not.toContain(PLANTED_SECRET);
    await page.getByLabel('Client id').fill(CLIENT_ID);
    await page.getByLabel('Client secret').fill(CLIENT_SECRET);
    await page.getByRole('button', { name: 'Sign in' }).click();
    const link = (await page.getByRole('link', { name: 'Continue to' }).getAttribute('href')) ?? '';
    expect(new URL(link).searchParams.get('client_id')).toBe(CLIENT_ID);
  });
});

describe('a connector that is authorised in the browser', () => {
  test('is shown as ready when the provider sends the browser back, or with the reason why not', async () => {
    const spec = {
      ...ITEMS_SPEC,
      connector: { ...ITEMS_SPEC.connector, fqn: 'acme/authorised' },
      credential: {
        kind: 'oauth2',
        authorization_url: 'https://auth.example.test/authorize',
        token_url: 'https://auth.example.test/token',
        scopes: ['openid', 'offline_access'],
      },
    };
    const { id } = created.parse(await suite.world.api('POST', '/v1/connectors', spec));
    await suite.world.api('PUT', `/v1/connectors/${id}/credential`, {
      kind: 'oauth2',
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
      authorization_url: `${provider.origin}/auth`,
      token_url: `${provider.origin}/token`,
    });
    const page = await suite.open(`/connectors/${id}`, withoutScripts);
    await page.getByRole('link', { name: 'Authorise', exact: true }).click();
    await page.waitForURL(`**/connectors/${id}?done=connector_authorised`);
    expect(await mainText(page)).toMatch(/It is authorised[^]*Ready/);
    await page.goto('/auth/connectors/callback?state=made-up&code=x');
    expect(await page.getByRole('alert').innerText()).toContain('start again');
    await page.goto('/auth/connectors/con_00000000000000000000000000/authorize');
    expect(await page.getByRole('link', { name: 'Back to the connector' }).count()).toBe(1);
  });
});

describe('the pages of custom servers', () => {
  test('are accessible while showing errors, and afterwards', async () => {
    const page = await suite.open('/mcp-servers/new');
    await page.getByLabel('Name', { exact: true }).fill('Not A Name');
    await page.getByLabel('Program', { exact: true }).fill('npx');
    await page.getByRole('button', { name: 'Register' }).click();
    await page.locator('#name-problem').waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('name');
    await expectAccessible(page);
    const id = await register('looked-at', signIn('open'));
    await page.goto(`/mcp-servers/${id}/connect`);
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Sign in there' }).click();
    await page.getByRole('link', { name: 'Continue to' }).waitFor();
    await page.setViewportSize({ width: 360, height: 900 });
    await expectAccessible(page);
    await expectFits(page);
  });

  test('refuse changes from pages of other sites', async () => {
    const [own, hub] = [await register('untouched', local()), await register('untouched-too', signIn('open'))];
    const page = await suite.open('/mcp-servers');
    const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    const headers = { cookie, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    for (const path of ['', `/${own}/edit`, `/${hub}/authorize`, `/${hub}/authorize/forget`]) {
      const body = new URLSearchParams({ name: 'evil', program: 'npx', confirm: 'untouched-too' });
      const reply = await suite.world.send(`/mcp-servers${path}`, { method: 'POST', headers, body });
      expect([path, reply.status]).toEqual([path, 403]);
    }
  });
});
