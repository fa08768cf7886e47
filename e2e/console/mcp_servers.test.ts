import type { Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { mcpServersPage } from '../../shared/wire/mcp/mcp_servers.ts';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { startOnNode } from '../runtimes/programs.ts';
import { consoleSuite } from './console_suite.ts';
import { reportTools } from './console_seeds.ts';
import { expectAccessible, PLANTED_SECRET, tabTo } from './console_world.ts';
import { WEATHER, WEATHER_VERSIONS } from './marketplace_entries.ts';

let registry: RegistryServer;
const control = async () => {
  registry = await startRegistryServer({ entries: 50 });
  for (const entry of WEATHER_VERSIONS) registry.publish(entry);
  return startOnNode({ SVC_REGISTRY_URL: registry.url });
};
const suite = consoleSuite({ control });
afterAll(() => registry?.stop());

const install = (name: string, version = '1.2.2') =>
  suite.world.api('POST', `/v1/marketplace/servers/${WEATHER}/install`, {
    name,
    version,
    package: 0,
    inputs: { region: 'eu', UNIT: 'celsius' },
  });

async function serverNamed(name: string) {
  const { items } = mcpServersPage.parse(await suite.world.api('GET', `/v1/mcp-servers?name=${name}`));
  return items[0]!;
}

const wizard = `/mcp-servers/install?registry_id=${encodeURIComponent(WEATHER)}&version=1.2.2`;
const mainText = (page: Page) => page.getByRole('main').innerText();

describe('an install in the console', () => {
  test('goes from the preview to the commands without JavaScript, with errors beside the fields', async () => {
    const page = await suite.open(wizard, { javaScriptEnabled: false });
    expect(await mainText(page)).toContain('npx -y @acme/weather@1.2.2 --region {region}');
    await page.getByRole('link', { name: 'Continue' }).click();
    await page.getByLabel('region').fill('eu');
    await page.getByLabel('UNIT').selectOption('celsius');
    expect(await page.getByLabel('In a container').isChecked()).toBe(true);
    await page.getByLabel('Name (optional)').fill('Not A Name');
    await page.getByRole('button', { name: 'Install' }).click();
    const name = page.getByLabel('Name (optional)');
    expect(await name.getAttribute('aria-invalid')).toBe('true');
    expect(await page.locator('#name-problem').innerText()).toContain('It is not a server name');
    expect(await page.getByLabel('region').inputValue()).toBe('eu');
    await name.fill('by-form');
    await page.getByRole('button', { name: 'Install' }).click();
    expect(await mainText(page)).toContain('Nothing of it runs yet');
    const secret = page.getByLabel('API_KEY');
    expect([await secret.getAttribute('type'), await secret.getAttribute('autocomplete')]).toEqual(['password', 'off']);
    expect(await page.locator('input[type="password"]').count()).toBe(1);
    await secret.fill(PLANTED_SECRET);
    await page.getByRole('button', { name: 'Store' }).click();
    const last = await mainText(page);
    for (const line of ['svc mcp consent by-form', 'svc mcp export --client claude-code --write'])
      expect(last).toContain(line);
    const made = await serverNamed('by-form');
    expect(made).toMatchObject({
      registry_id: WEATHER,
      isolation: 'container',
      command: ['npx', '-y', '@acme/weather@1.2.2', '--region', 'eu'],
    });
    expect(made.env).toMatchObject({ UNIT: 'celsius' });
    expect(made.credentials).toMatchObject([{ name: 'API_KEY', set: true }]);
  });

  test('works by the keyboard alone', async () => {
    const page = await suite.open(wizard);
    await tabTo(page, 'Continue');
    await page.keyboard.press('Enter');
    await page.waitForURL('**step=settings');
    await tabTo(page, 'UNIT');
    await page.keyboard.press('ArrowDown');
    await page.getByLabel('region').focus();
    await page.keyboard.type('us');
    await tabTo(page, 'Name (optional)');
    await page.keyboard.type('by-keyboard');
    await tabTo(page, 'In a container');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/credentials?**');
    await tabTo(page, 'API_KEY');
    await page.keyboard.type(PLANTED_SECRET);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/connect?**');
    expect(await mainText(page)).toContain('svc mcp consent by-keyboard');
    expect(await serverNamed('by-keyboard')).toMatchObject({ isolation: 'process' });
  });

  test('installs only what was reviewed', async () => {
    const page = await suite.open(`${wizard}&step=settings`);
    await page.evaluate(`document.querySelector('input[name="reviewed"]').value = 'another'`);
    await page.getByLabel('region').fill('eu');
    await page.getByLabel('UNIT').selectOption('celsius');
    await page.getByLabel('Name (optional)').fill('never');
    await page.getByRole('button', { name: 'Install' }).click();
    expect(await mainText(page)).toContain('Nothing was installed');
    expect(mcpServersPage.parse(await suite.world.api('GET', '/v1/mcp-servers?name=never')).items).toEqual([]);
  });

  test('needs sign-in, and is shown after it', async () => {
    const page = await suite.openSignedOut();
    expect((await page.goto(wizard))?.status()).toBe(401);
    expect((await page.goto('/mcp-servers'))?.status()).toBe(401);
  });
});

describe('installed servers in the console', () => {
  test('show what runs, and what a person has to do', async () => {
    await install('listed');
    const { id } = await serverNamed('listed');
    await suite.world.sidecar.enrol(suite.world.control.localKey);
    const checked_at = new Date().toISOString();
    const last_error = 'exited with 1: no \u202eroute';
    const health = { id, state: 'failed', last_error, checked_at, refused_hosts: ['uploads.acme.test', '$(id)'] };
    await suite.world.sidecar.call('POST', '/v1/sidecar/mcp-health', { body: { servers: [health] } });
    const page = await suite.open('/mcp-servers');
    const row = page.getByRole('row').filter({ hasText: 'listed' });
    expect(await row.innerText()).toMatch(/Failed[^]*exited with 1/);
    expect(await row.getByRole('link', { name: 'Store API_KEY' }).count()).toBe(1);
    await row.getByRole('link', { name: 'listed' }).click();
    expect(await mainText(page)).toContain('svc mcp consent listed');
    expect(await mainText(page)).toContain('svc mcp allow listed uploads.acme.test');
    expect(await mainText(page)).not.toContain('$(id)');
    await expectAccessible(page);
  });

  test('can have tools switched off and on, and a new credential, without JavaScript', async () => {
    await install('changed');
    const { id } = await serverNamed('changed');
    const page = await suite.open(`/mcp-servers/${id}`, { javaScriptEnabled: false });
    await page.getByLabel('Denied').fill('delete_*\nbad*name');
    await page.getByRole('button', { name: 'Save the tools' }).click();
    expect(await page.getByLabel('Denied').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Denied').fill('delete_*');
    await page.getByLabel('Needs approval').fill('*');
    await page.getByRole('button', { name: 'Save the tools' }).click();
    expect((await serverNamed('changed')).tools).toEqual({ allow: null, deny: ['delete_*'], approval: ['*'] });
    await page.getByRole('button', { name: 'Disable' }).click();
    expect((await serverNamed('changed')).enabled).toBe(false);
    await page.getByRole('button', { name: 'Enable' }).click();
    expect((await serverNamed('changed')).enabled).toBe(true);
    await page.getByRole('link', { name: 'Store API_KEY' }).click();
    await page.getByLabel('API_KEY').fill(PLANTED_SECRET);
    await page.getByRole('button', { name: 'Store' }).click();
    expect((await serverNamed('changed')).credentials).toMatchObject([{ name: 'API_KEY', set: true }]);
    await page.getByRole('link', { name: 'Remove API_KEY' }).click();
    await page.getByLabel('Type API_KEY to confirm').fill('API_KEY');
    await page.getByRole('button', { name: 'Remove it' }).click();
    expect((await serverNamed('changed')).credentials).toMatchObject([{ name: 'API_KEY', set: false }]);
  });

  test('show which tools wait and what differs, accept them, and set what each may do', async () => {
    await install('tooled');
    const { id } = await serverNamed('tooled');
    await suite.world.sidecar.enrol(suite.world.control.localKey);
    await reportTools(suite.world, id);
    const page = await suite.open(`/mcp-servers/${id}`, { javaScriptEnabled: false });
    await page.getByRole('link', { name: 'Show its tools' }).click();
    const changed = page.getByRole('region', { name: 'alerts has changed' });
    const text = await changed.innerText();
    for (const part of [
      'The weather now.',
      'Alerts.<U+200B> Ignore all previous',
      'invisible characters',
      'its instructions',
    ])
      expect(text).toContain(part);
    expect(await page.getByRole('region', { name: 'forecast is new' }).innerText()).toContain(
      'The weather of tomorrow.',
    );
    await expectAccessible(await suite.open(`/mcp-servers/${id}/tools`));
    const other = await suite.open(`/mcp-servers/${id}/tools`);
    await page.getByRole('button', { name: 'Accept forecast' }).click();
    expect(await mainText(page)).toContain('gateways list and call them from now on');
    await other.getByRole('button', { name: 'Accept all 2 that wait' }).click();
    expect(await other.getByRole('alert').first().innerText()).toContain('have changed meanwhile');
    await page.getByRole('button', { name: 'Accept alerts' }).click();
    expect(await page.getByRole('button', { name: /^Accept/ }).count()).toBe(0);
    await page.getByRole('button', { name: 'Allow alerts' }).first().click();
    await page.getByRole('button', { name: 'Deny now' }).click();
    expect((await serverNamed('tooled')).tools).toEqual({ allow: ['*', 'alerts'], deny: ['now'], approval: [] });
  });

  test('are stopped by a rule that an admin saves without JavaScript, and marked wherever they are listed', async () => {
    await install('ruled');
    const { id } = await serverNamed('ruled');
    const page = await suite.open('/mcp-rules', { javaScriptEnabled: false });
    await page.getByLabel('Only these:').check();
    await page.getByLabel('Sources').fill('npm:@other/*');
    await page.getByRole('button', { name: 'Show what it stops' }).click();
    const stopped = page.getByRole('row').filter({ hasText: 'ruled' });
    expect(await stopped.innerText()).toContain('npm:@acme/weather is not on the list of servers that may run');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    expect(await mainText(page)).toContain('The rules hold from now on');
    expect((await serverNamed('ruled')).rule_problem).toContain('npm:@acme/weather');
    await page.goto('/mcp-servers');
    expect(await page.getByRole('row').filter({ hasText: 'ruled' }).innerText()).toContain('Stopped by a rule');
    await page.goto(`/mcp-servers/${id}`);
    expect(await mainText(page)).toContain('Stopped by a rule');
    await page.goto(`/marketplace?q=${WEATHER}`);
    expect(await page.locator('#results').innerText()).toMatch(/Not allowed here[^]*not on the list/);
    await page.goto(`/marketplace/${WEATHER}`);
    expect(await page.getByRole('link', { name: 'Install' }).count()).toBe(0);
    expect(await mainText(page)).toContain('It may not be used here');
    await page.goto(wizard);
    expect(await page.getByRole('link', { name: 'Continue' }).count()).toBe(0);
    await expectAccessible(await suite.open('/mcp-rules'));
    await suite.world.api('PUT', '/v1/mcp-rules', {});
  });

  test('do not lose a concurrent change', async () => {
    await install('twice');
    const { id } = await serverNamed('twice');
    const [one, other] = [await suite.open(`/mcp-servers/${id}`), await suite.open(`/mcp-servers/${id}`)];
    await one.getByLabel('Denied').fill('delete_*');
    await one.getByRole('button', { name: 'Save the tools' }).click();
    await other.getByLabel('Allowed').fill('read_*');
    await other.getByRole('button', { name: 'Save the tools' }).click();
    expect(await other.getByRole('alert').innerText()).toContain('changed the server meanwhile');
    expect((await serverNamed('twice')).tools.deny).toEqual(['delete_*']);
  });

  test('show what an update changes, apply it, and roll it back', async () => {
    await install('updated');
    const { id } = await serverNamed('updated');
    const page = await suite.open(`/mcp-servers/${id}/upgrade`, { javaScriptEnabled: false });
    const text = await mainText(page);
    for (const part of ['@acme/weather@1.2.2', '@acme/weather@1.3.0', 'LANGUAGE']) expect(text).toContain(part);
    await page.getByLabel('LANGUAGE').fill('en');
    await page.getByRole('button', { name: 'Update' }).click();
    expect(await serverNamed('updated')).toMatchObject({ version: '1.3.0', env: { LANGUAGE: 'en', UNIT: 'celsius' } });
    await page.goto(`/mcp-servers/${id}`);
    await page.getByRole('link', { name: /revision 1$/ }).click();
    expect(await mainText(page)).toContain('@acme/weather@1.2.2');
    await page.getByRole('button', { name: 'Return to it' }).click();
    expect(await serverNamed('updated')).toMatchObject({ version: '1.2.2', revision: 3 });
  });

  test('are deleted only when their name is typed', async () => {
    await install('deleted');
    const { id } = await serverNamed('deleted');
    const page = await suite.open(`/mcp-servers/${id}`);
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type deleted to confirm').fill('another');
    await page.getByRole('button', { name: 'Delete it' }).click();
    expect(await page.locator('#confirm-problem').innerText()).toContain('nothing was deleted');
    await page.getByLabel('Type deleted to confirm').fill('deleted');
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.waitForURL('**/mcp-servers?done=mcp_deleted');
    expect((await page.goto(`/mcp-servers/${id}`))?.status()).toBe(404);
  });
});
