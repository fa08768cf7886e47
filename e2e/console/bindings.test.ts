import { expect, test } from 'vitest';
import { consoleSuite } from './console_suite.ts';
import { expectGoodInEveryLook, PLANTED_SECRET, tabTo } from './console_world.ts';

// The page of an existing host binding, and editing it.

let path: string;

const suite = consoleSuite({
  prepare: async (world) => {
    path = `/bindings/${(await world.seed()).bindingId}`;
  },
});

test('its page says what it matches, which secret it uses, and who changed it when', async () => {
  const page = await suite.open(path, { javaScriptEnabled: false });
  const words = await page.locator('main').innerText();
  for (const part of ['Requests to api.github.com', 'Only GET, HEAD and OPTIONS', 'vault://user/github', 'Stored']) {
    expect(words).toContain(part);
  }
  expect(words).toMatch(/By\s+Local owner\s+usr_/);
  expect(await page.content()).not.toContain(PLANTED_SECRET);
  await page.getByRole('link', { name: 'Explain a request' }).click();
  expect(await page.locator('#explanation').innerText()).toContain('api.github.com matches');
});

test('by keyboard alone: it is edited from its row', async () => {
  const page = await suite.open('/bindings');
  await tabTo(page, 'Edit the binding for api.github.com');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**${path}/edit`);
  expect(await page.getByLabel('Host', { exact: true }).inputValue()).toBe('api.github.com');
  await tabTo(page, 'Effect');
  await page.keyboard.press('e');
  await tabTo(page, 'Save');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**${path}?done=binding_changed`);
  expect(await page.locator('main').innerText()).toContain('Every method');
});

test('its list is filtered while a word is typed, and its form says at once that a secret is missing', async () => {
  const page = await suite.open('/bindings');
  await page.getByLabel('Search').fill('no such host');
  await page.getByText('Nothing has these words').waitFor();
  expect(new URL(page.url()).search).toBe('?q=no+such+host');
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'api.github.com', exact: true }).waitFor();
  await page.goto('/bindings/new');
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  const field = page.getByLabel('Credential', { exact: true });
  await field.fill('vault://user/never-stored');
  await page.getByText('Its requests get status 503').waitFor();
  // What may be the credential itself is not sent, and what was said of the reference goes.
  await field.fill(PLANTED_SECRET);
  await page.getByText('Its requests get status 503').waitFor({ state: 'detached' });
  await field.fill('vault://user/github');
  await page.locator('#credential-state').getByText('Stored', { exact: true }).waitFor();
  expect(asked.join(' ')).not.toContain(PLANTED_SECRET);
});

test('two concurrent edits do not overwrite each other', async () => {
  const [first, second] = [await suite.open(null, { javaScriptEnabled: false }), await suite.open()];
  for (const page of [first, second]) {
    await page.goto(`${path}/edit`);
    await page.locator('details.more > summary').click();
  }
  await first.getByLabel('Description').fill('of the first');
  await first.getByRole('button', { name: 'Save' }).click();
  await first.waitForURL(`**${path}?done=binding_changed`);
  await second.getByLabel('Description').fill('of the second');
  await second.getByRole('button', { name: 'Save' }).click();
  expect(await second.getByRole('alert').innerText()).toContain('Nothing was saved');
  const differences = second.getByRole('table', { name: 'What differs' });
  expect(await differences.innerText()).toMatch(/Description[^]*of the first[^]*of the second/);
  await expectGoodInEveryLook(second);
  await second.getByRole('button', { name: 'Save mine in its place' }).click();
  await second.waitForURL(`**${path}?done=binding_changed`);
  expect(await second.locator('h1 + .lead, .lead').first().innerText()).toContain('of the second');
});

test.each(['', '/edit', '/edit?scheme=sigv4-resign'])(
  'axe finds nothing and nothing overflows at its page%s, at every width and colour scheme',
  async (below) => {
    const page = await suite.open(path + below);
    expect(await page.locator('h1').count()).toBe(1);
    await expectGoodInEveryLook(page);
  },
);

test("a page of another site cannot edit it with the console's cookie", async () => {
  const page = await suite.open();
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const headers = { cookie, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
  const body = new URLSearchParams({ scheme: 'bearer', host: 'evil.example', credential_ref: 'vault://user/github' });
  const reply = await suite.world.send(`${path}/edit`, {
    method: 'POST',
    headers,
    body,
  });
  expect(reply.status).toBe(403);
});
