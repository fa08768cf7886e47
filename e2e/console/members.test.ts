import { expect, test } from 'vitest';
import { meReply } from '../../shared/wire/account.ts';
import { connectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import type { Caller } from '../../worker/kernel/caller.ts';
import { installConnector } from '../../worker/services/connectors/connectors.ts';
import type { ProgramContext } from '../../worker/installation/program_context.ts';
import { createPersonalToken } from '../../worker/tokens/personal_tokens.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import { addUser } from '../runtimes/in_process.ts';
import { consoleSuite } from './console_suite.ts';
import { type ConsoleWorld, PLANTED_SECRET, tabTo } from './console_world.ts';
import { serveInProcess } from './serve_in_process.ts';

let member: Caller;
let stranger: Caller;
/** Of the stranger. */
let foreign: { readonly connectorId: string; readonly tokenId: string };
let context: ProgramContext;
const control = async () => {
  const served = await serveInProcess();
  ({ context } = served);
  return served;
};
const prepare = async (world: ConsoleWorld) => {
  const me = meReply.parse(await world.api('GET', '/v1/me'));
  member = await addUser(context, me.enterprise_id);
  stranger = await addUser(context, null);
  foreign = await createOwned(stranger);
};
const suite = consoleSuite({ control, prepare });

/** A connector and a token of somebody. */
async function createOwned(caller: Caller) {
  const installed = await installConnector(context, caller, 'personal', connectorSpec.parse(ITEMS_SPEC));
  const token = await createPersonalToken(context, caller, { name: 'x', scopes: ['secrets:read'], expires_in_days: 1 });
  if (!installed.ok || !token.ok) throw new Error('the stranger could not be given anything');
  return { connectorId: installed.value.value.reply.id, tokenId: token.value.id };
}

test('data of another enterprise is not found, for any query', async () => {
  const page = await suite.open();
  const members = [`/members/${stranger.userId}`, `/members/${stranger.userId}/suspend`];
  const connector = ['', '/remove', '/credential/delete'].map((below) => `/connectors/${foreign.connectorId}${below}`);
  for (const path of [...members, ...connector, `/account/tokens/${foreign.tokenId}/revoke`]) {
    expect((await page.goto(path))?.status()).toBe(404);
  }
  await page.goto('/members');
  expect(await page.locator('main').innerHTML()).not.toContain(stranger.userId);
});

test('by keyboard alone: a member is suspended by name, and resumed', async () => {
  const page = await suite.open(`/members/${member.userId}`);
  await tabTo(page, 'Suspend');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/suspend');
  await tabTo(page, `Type ${member.userId} to confirm`);
  await page.keyboard.type(member.userId);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/members?done=member_suspended');
  expect(await page.locator('table').innerText()).toContain('Suspended');
  await page.goto(`/members/${member.userId}`);
  await tabTo(page, 'Resume');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/members?done=member_resumed');
});

test('without JavaScript: a role is changed, but the only owner stays one', async () => {
  const page = await suite.open(`/members/${member.userId}`, { javaScriptEnabled: false });
  await page.getByLabel('admin').check();
  await page.getByRole('button', { name: 'Change the role' }).click();
  await page.waitForURL('**/members?done=member_changed');
  const { id } = meReply.parse(await suite.world.api('GET', '/v1/me'));
  await page.goto(`/members/${id}`);
  await page.getByLabel('member', { exact: true }).check();
  await page.getByRole('button', { name: 'Change the role' }).click();
  expect(await page.getByRole('alert').innerText()).toContain('make another person an owner first');
});

test('without JavaScript: settings are refused beside their fields, without the secret, and saved', async () => {
  const page = await suite.open('/enterprise', { javaScriptEnabled: false });
  await page.getByLabel('Email domains').fill('Not A Domain');
  await page.getByLabel('Single sign-on is required').check();
  await page.getByLabel('Issuer').fill('no url');
  await page.getByLabel('Client secret').fill(PLANTED_SECRET);
  await page.getByRole('button', { name: 'Save the settings' }).click();
  for (const field of ['allowed_domains', 'oidc_issuer']) {
    expect(await page.locator(`#${field}-problem`).count()).toBe(1);
    expect(await page.locator(`#${field}`).getAttribute('aria-invalid')).toBe('true');
  }
  expect(await page.content()).not.toContain(PLANTED_SECRET);
  await page.getByLabel('Email domains').fill('');
  await page.getByLabel('Issuer').fill('');
  await page.getByLabel('Name').fill('Acme');
  await page.getByRole('button', { name: 'Save the settings' }).click();
  expect(await page.locator('#sso_required-problem').innerText()).toContain('needs a provider');
  await page.getByLabel('Single sign-on is required').uncheck();
  await page.getByRole('button', { name: 'Save the settings' }).click();
  await page.waitForURL('**/enterprise?done=settings_changed');
  expect(await page.getByLabel('Name').inputValue()).toBe('Acme');
});
