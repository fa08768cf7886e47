import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ITEMS_SPEC, itemsSpec } from '../runtimes/connector_samples.ts';
import { OAUTH_SPEC } from './console_seeds.ts';
import { consoleSuite } from './console_suite.ts';
import { expectAccessible, PLANTED_SECRET, tabTo } from './console_world.ts';

const created = z.object({ id: z.string() });

let keyed: string;
let oauth: string;
const suite = consoleSuite({
  prepare: async (world) => {
    keyed = created.parse(await world.api('POST', '/v1/connectors', ITEMS_SPEC)).id;
    oauth = created.parse(await world.api('POST', '/v1/connectors', OAUTH_SPEC)).id;
    const client = { kind: 'oauth2', client_id: 'client-of-a-test', client_secret: `${PLANTED_SECRET}-client` };
    await world.api('PUT', `/v1/connectors/${oauth}/credential`, client);
  },
});

describe('the pages of connectors', () => {
  test('hidden characters of a spec are shown by name', async () => {
    const page = await suite.open('/connectors');
    expect(await page.locator('.revealed').first().innerText()).toBe('<U+200B>');
  });

  test.each(['', '/remove', '/credential/delete'])("another user's connector is not found: %s", async (below) => {
    const page = await suite.open();
    const reply = await page.goto(`/connectors/con_00000000000000000000000000${below}`);
    expect(reply?.status()).toBe(404);
    expect(await page.locator('main').innerText()).toContain('There is no connector');
    await expectAccessible(page);
  });
});

test('by keyboard alone: a spec is installed, its key stored, and it is removed by its name', async () => {
  const page = await suite.open('/connectors');
  await tabTo(page, 'Install a connector');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/connectors/install');
  await tabTo(page, 'Connector spec');
  const spec = { ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, fqn: 'acme/keyboard', title: 'Keyboard' } };
  await page.keyboard.insertText(JSON.stringify(spec));
  await tabTo(page, 'Install');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/connectors/con_*?done=connector_installed');
  await tabTo(page, 'API key');
  await page.keyboard.type(`${PLANTED_SECRET}-key`);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/connectors/con_*?done=credential_stored');
  expect(await page.locator('main').innerText()).toContain('Ready');
  expect(await page.content()).not.toContain(PLANTED_SECRET);
  await page.goto(new URL(page.url()).pathname);
  await tabTo(page, 'Remove');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/remove');
  await tabTo(page, 'Type acme/keyboard to confirm');
  await page.keyboard.type('acme/keyboard');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/connectors?done=connector_removed');
  expect(await page.locator('table').innerText()).not.toContain('acme/keyboard');
});

describe('without JavaScript', () => {
  const withoutScripts = { javaScriptEnabled: false };

  test('errors in a spec are listed by place, and the text stays', async () => {
    const page = await suite.open('/connectors/install', withoutScripts);
    const [operation] = ITEMS_SPEC.operations;
    const wrong = { ...ITEMS_SPEC, operations: [{ ...operation, method: 'FETCH', effect: undefined }] };
    await page.getByLabel('Connector spec').fill(JSON.stringify(wrong));
    await page.getByRole('button', { name: 'Install', exact: true }).click();
    const places = await page.getByRole('alert').locator('li code').allInnerTexts();
    expect(places).toEqual(expect.arrayContaining(['operations.0.method', 'operations.0.effect']));
    expect(await page.getByLabel('Connector spec').inputValue()).toBe(JSON.stringify(wrong));
    expect(await page.getByLabel('Connector spec').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Connector spec').fill('schema_version: 1\nhosts: [not a host]');
    await page.getByRole('button', { name: 'Install', exact: true }).click();
    expect(await page.getByRole('alert').innerText()).toContain('Line 2: hosts.0');
    await page.getByLabel('Connector spec').fill('{"schema_version": 1');
    await page.getByRole('button', { name: 'Install', exact: true }).click();
    expect(await page.getByRole('alert').innerText()).toContain('is not JSON');
  });

  test('a spec is checked without a change; a new version names its new host', async () => {
    const page = await suite.open(null, withoutScripts);
    await suite.world.sidecar.enrol(suite.world.control.localKey);
    await suite.world.record('sandbox.proxy.passthrough', {
      'svc.proxy.method': 'GET',
      'svc.proxy.upstream.host': 'api.example.test',
      'svc.proxy.upstream.path': '/items/7',
      'svc.proxy.upstream.status': 200,
    });
    const more = itemsSpec('1.1.0', { hosts: [...ITEMS_SPEC.hosts, 'more.example.test'] });
    await page.goto('/connectors/install');
    await page.getByLabel('Connector spec').fill(JSON.stringify(more));
    await page.getByRole('button', { name: 'Check only' }).click();
    expect(await page.locator('main').innerText()).toContain('Nothing was changed');
    const matches = await page.getByRole('table', { name: 'What it would have matched' }).innerText();
    expect(matches.replaceAll(/\s+/g, ' ')).toContain('get-item 1 GET api.example.test/items/7');
    expect(await suite.world.api('GET', `/v1/connectors/${keyed}`)).toMatchObject({ version: '1.0.0' });
    await page.getByRole('button', { name: 'Install', exact: true }).click();
    expect(await page.locator('main').innerText()).toContain('more.example.test did not receive the credential before');
    expect(await suite.world.api('GET', `/v1/connectors/${keyed}`)).toMatchObject({ version: '1.1.0' });
  });

  test('a rule for a JSON body is written into the text of a spec, with errors beside its fields', async () => {
    const page = await suite.open('/connectors/install', withoutScripts);
    const spec = { ...ITEMS_SPEC, connector: { ...ITEMS_SPEC.connector, fqn: 'acme/ruled' } };
    await page.getByLabel('Connector spec').fill(JSON.stringify(spec));
    await page.getByText('Add a rule for a JSON body').click();
    const add = page.getByRole('button', { name: 'Add the rule and check' });
    await page.getByLabel('Operation', { exact: true }).fill('gone');
    await page.getByLabel('JSON pointer').fill('/title');
    await page.getByLabel('Allowed values').fill('draft\nfinal');
    await add.click();
    expect(await page.locator('#rule_operation-problem').innerText()).not.toBe('');
    expect(await page.getByLabel('Connector spec').inputValue()).toBe(JSON.stringify(spec));
    expect(await page.getByLabel('Allowed values').inputValue()).toBe('draft\nfinal');
    await page.getByLabel('Operation', { exact: true }).fill('create-item');
    await add.click();
    expect(await page.locator('main').innerText()).toContain('Nothing was changed');
    const matches = await page.getByRole('table', { name: 'What it would have matched' }).innerText();
    expect(matches).toContain('create-item');
    const changed: unknown = JSON.parse(await page.getByLabel('Connector spec').inputValue());
    const ruled = { name: 'create-item', json: [{ pointer: '/title', equals: ['draft', 'final'] }] };
    expect(changed).toMatchObject({ operations: [{}, ruled, {}] });
    await page.getByRole('button', { name: 'Install', exact: true }).click();
    expect(await page.locator('main').innerText()).toContain('The connector is installed');
  });

  test('different content under an installed version is refused with the reason', async () => {
    const page = await suite.open('/connectors/install', withoutScripts);
    const changed = { ...OAUTH_SPEC, hosts: ['other.example.test'] };
    await page.getByLabel('Connector spec').fill(JSON.stringify(changed));
    await page.getByRole('button', { name: 'Install', exact: true }).click();
    expect(await page.getByRole('alert').innerText()).toContain('change the version of the spec');
  });

  test('a refused client form is returned without its secrets', async () => {
    const page = await suite.open(`/connectors/${oauth}`, withoutScripts);
    await page.getByLabel('Client id').fill('another-client');
    await page.getByLabel('Client secret').fill(`${PLANTED_SECRET}-other`);
    await page.getByText('Other URLs and scopes').click();
    await page.getByLabel('Token URL').fill('http://tokens.example.test/');
    await page.getByRole('button', { name: 'Replace' }).click();
    expect(await page.locator('#token_url-problem').innerText()).toContain('https');
    expect(await page.getByLabel('Client id').inputValue()).toBe('another-client');
    expect(await page.getByLabel('Client secret').inputValue()).toBe('');
    expect(await page.content()).not.toContain(PLANTED_SECRET);
  });

  test('the credential is deleted by the name of its connector', async () => {
    const page = await suite.open(`/connectors/${oauth}`, withoutScripts);
    expect(await page.getByRole('link', { name: 'Authorise', exact: true }).getAttribute('href')).toBe(
      `/auth/connectors/${oauth}/authorize`,
    );
    await page.getByRole('link', { name: 'Delete the credential' }).click();
    await page.getByLabel('Type acme/calendar to confirm').fill('acme/other');
    await page.getByRole('button', { name: 'Delete it' }).click();
    expect(await page.locator('#confirm-problem').innerText()).toContain('nothing was deleted');
    await page.getByLabel('Type acme/calendar to confirm').fill('acme/calendar');
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.waitForURL('**?done=credential_deleted');
    expect(await page.locator('main').innerText()).toContain('No credential');
  });
});

test("a page of another site cannot change a connector with the console's cookie", async () => {
  const page = await suite.open();
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const paths = ['', `/${keyed}/remove`, `/${keyed}/credential`, `/${keyed}/credential/delete`, `/${keyed}/authorize`];
  for (const path of paths) {
    const body = new URLSearchParams({ spec: JSON.stringify(ITEMS_SPEC), confirm: 'acme/items', value: 'x' });
    const headers = { cookie, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const sent = { method: 'POST', headers, body };
    expect([path, (await suite.world.send(`/connectors${path}`, sent)).status]).toEqual([path, 403]);
  }
});
