import { afterAll, beforeAll, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import {
  type HostedUser,
  ownerWithMember,
  PUBLIC_URL,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import type { InProcess } from '../../../e2e/runtimes/in_process.ts';
import { installReply } from '../../../shared/wire/connectors/connectors.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let id = '';

beforeAll(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  ({ id } = installReply.parse(await (await owner.call('POST', '/v1/connectors', ITEMS_SPEC)).json()));
});
afterAll(() => control.stop());

async function open(user: HostedUser, path: string): Promise<Response> {
  return control.inBrowser(path, { headers: { cookie: await signInBrowser(control, user.caller) } });
}

async function addRule(fields: Readonly<Record<string, string>>): Promise<string> {
  const headers = { cookie: await signInBrowser(control, owner.caller), origin: PUBLIC_URL };
  const typed = { spec: JSON.stringify(ITEMS_SPEC), from: id, step: 'rule', rule_operation: 'create-item', ...fields };
  const reply = await control.inBrowser('/connectors', { method: 'POST', headers, body: new URLSearchParams(typed) });
  return reply.text();
}

test('the installed spec can be changed, and only by who sees the connector', async () => {
  const shown = await (await open(owner, `/connectors/install?from=${id}`)).text();
  expect(shown).toContain('Change the spec');
  expect(shown).toContain('&quot;acme/items&quot;');
  expect(shown).toContain('What it would have matched');
  expect((await open(member, `/connectors/install?from=${id}`)).status).toBe(404);
});

test('a rule is written into the spec, and its operation is tried on the last requests', async () => {
  const page = await addRule({ rule_pointer: '/amount', rule_at_most: '100' });
  expect(page).toMatch(/&quot;pointer&quot;: &quot;\/amount&quot;,\s+&quot;at_most&quot;: 100/);
  expect(page).toContain('What it would have matched');
  expect(page).toContain(`href="/connectors/${id}"`);
});

test('a rule that is wrong changes nothing, and says what is wrong', async () => {
  const page = await addRule({ rule_operation: 'gone', rule_pointer: '/amount', rule_at_most: '100' });
  expect(page).toContain('no operation of the spec');
  expect(page).not.toContain('&quot;at_most&quot;');
});
