import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type RegistryServer, startRegistryServer } from '../marketplace/registry_server.ts';
import { chromiumProblem, startChromium } from '../support/chromium.ts';
import { HANGS_MS } from '../support/hangs.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { SVC } from '../support/program.ts';
import { waitFor } from '../support/wait_for.ts';
import { startWorld, type World } from '../support/world.ts';
import { WEATHER, WEATHER_VERSIONS } from './marketplace_entries.ts';

// Issue 8: a person's first walk through the console, from the link that `svc up` prints to a server that a client may
// start. Each step continues from the one before.

const HOST = 'api.example.test';
const TOKEN = plantSecret();
const API_KEY = plantSecret();
const MISSING = chromiumProblem();

let registry: RegistryServer;
let world: World;
let browser: Browser;
let page: Page;
/** Of the browser's requests. */
const origins = new Set<string>();

beforeAll(async () => {
  if (MISSING !== null) return;
  registry = await startRegistryServer({ entries: 40 });
  for (const entry of WEATHER_VERSIONS) registry.publish(entry);
  world = await startWorld([HOST], { flags: ['--registry-url', registry.url] });
  browser = await startChromium();
  page = await browser.newPage({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
  page.setDefaultTimeout(HANGS_MS);
  page.on('request', (request) => void origins.add(new URL(request.url()).origin));
});
afterAll(async () => {
  await browser?.close();
  await world?.stop();
  await registry?.stop();
});
beforeEach(({ skip }) => {
  if (MISSING !== null) skip(MISSING);
});

const main = () => page.getByRole('main');
const open = (name: string) => page.getByRole('navigation').getByRole('link', { name, exact: true }).first().click();

it('the link that svc up prints signs in once', async () => {
  await waitFor('the link', () => /\/auth\/link\/\S+/.test(world.svc.output));
  const link = /http:\S+\/auth\/link\/[\w-]+/.exec(world.svc.output)?.[0] ?? '';
  await page.goto(link);
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('Overview');
  const again = await browser.newContext();
  const other = await again.newPage();
  await other.goto(link);
  expect(await other.getByRole('heading', { level: 1 }).textContent()).not.toContain('Overview');
  await again.close();
});

it('a credential is sealed', async () => {
  await open('Secrets');
  await page.getByRole('link', { name: 'Store a secret' }).first().click();
  await page.getByLabel('Path').fill('user/demo');
  await page.getByLabel('Value').fill(TOKEN);
  await page.getByRole('button', { name: 'Store' }).click();
  await page.waitForURL('**/secrets?done=secret_stored');
  expect(await main().innerText()).toContain('user/demo');
});

it('the credential is bound to a host, and the console explains a request', async () => {
  await open('Host rules');
  await page.getByRole('link', { name: 'New binding' }).first().click();
  await page.getByLabel('Host', { exact: true }).fill(HOST);
  await page.getByRole('combobox', { name: 'Credential' }).fill('vault://user/demo');
  await page.getByRole('button', { name: 'Bind' }).click();
  await page.waitForURL('**/bindings?done=binding_created');
  await page.getByLabel('URL').fill(`https://${HOST}/v1/things`);
  const answer = page.locator('#explanation');
  await answer.getByText(`${HOST} matches a personal binding`).waitFor();
  expect(await answer.innerText()).toContain('Binding: its credential is added');
});

it('the requests of an agent appear in the audit log as they are made', async () => {
  await open('Audit');
  await page.locator('[data-live-of=events]').getByText('Live').waitFor();
  expect(await page.locator('#events').innerText()).not.toContain('/v1/things');
  expect(await world.svc.ok(['run', '--', 'curl', '-sS', `https://${HOST}/v1/things`])).toBe('ok');
  expect(world.upstream.last().headers('authorization')).toEqual([`Bearer ${TOKEN}`]);
  await page.locator('#events').getByText(`GET ${HOST}/v1/things`).first().waitFor();
});

it('an MCP server is installed from the marketplace, its credential sealed, and the remaining steps are shown', async () => {
  await open('MCP servers');
  await open('Marketplace');
  await page.getByLabel('Search').fill('snow');
  await page.waitForURL('**/marketplace?q=snow');
  await page.getByRole('link', { name: 'Acme Weather' }).click();
  await page.getByRole('link', { name: 'Install', exact: true }).click();
  expect(await main().innerText()).toContain('npx -y @acme/weather@1.3.0 --region {region}');
  await page.getByRole('link', { name: 'Continue' }).click();
  await page.getByLabel('region').fill('eu');
  await page.getByLabel('UNIT').selectOption('celsius');
  await page.getByLabel('LANGUAGE').fill('en');
  await page.getByLabel('Name (optional)').fill('weather');
  await page.getByRole('button', { name: 'Install' }).click();
  await page.getByLabel('API_KEY').fill(API_KEY);
  await page.getByRole('button', { name: 'Store' }).click();
  await page.waitForURL('**/connect?**');
  const text = await main().innerText();
  // As svc is called on this machine, and with the state directory of this one.
  const own = `${SVC} --home ${world.svc.home}`;
  for (const line of ['mcp consent weather', 'mcp export --client claude-code --write'])
    expect(text).toContain(`${own} ${line}`);
  expect(await world.svc.ok(['mcp', 'show', 'weather', '--json'])).toContain(WEATHER);
});

it("every request of the browser went to the console's own origin", () => {
  const { port } = new URL(world.svc.runFile.control_url);
  expect([...origins]).toEqual([expect.stringMatching(new RegExp(`^http://svc-[0-9a-f]{32}\\.localhost:${port}$`))]);
});
