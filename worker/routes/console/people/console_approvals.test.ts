import { afterEach, beforeEach, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../../e2e/runtimes/connector_samples.ts';
import { type HostedUser, hostedUser, ownerWithMember, signInBrowser } from '../../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, NO_OUTBOUND, parseReply } from '../../../../e2e/runtimes/in_process.ts';
import { FRONT, startHostedSignIn } from '../../../../e2e/sign_in/hosted_sign_in.ts';
import { TestBrowser } from '../../../../e2e/sign_in/test_browser.ts';
import { meReply } from '../../../../shared/wire/account.ts';
import { installReply } from '../../../../shared/wire/connectors/connectors.ts';
import { groupRecord } from '../../../../shared/wire/sharing/groups.ts';
import { connectorSubject } from '../../../services/approvals/approval_subject.ts';
import { askApproval } from '../../../services/approvals/approvals.ts';
import { findConnector } from '../../../store/connectors.ts';

let control: InProcess;
let owner: HostedUser;
let requester: HostedUser;
let anna: HostedUser;
let ben: HostedUser;
let groupId = '';
let path = '';

beforeEach(async () => {
  control = await startHostedSignIn(NO_OUTBOUND);
  ({ owner, member: requester } = await ownerWithMember(control));
  anna = await hostedUser(control, owner.caller.enterpriseId);
  ben = await hostedUser(control, owner.caller.enterpriseId);
  groupId = (await parseReply(groupRecord, owner.call('POST', '/v1/groups', { name: 'Payments' }))).id;
  for (const { caller } of [anna, ben]) await owner.call('PUT', `/v1/groups/${groupId}/members/${caller.userId}`);
  path = `/approvals/${await ask()}`;
});
afterEach(() => control.stop());

async function ask(fingerprint = 'a'): Promise<string> {
  const { id } = await parseReply(installReply, owner.call('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC));
  const row = await findConnector(control.context.database, [owner.caller.enterpriseId], id);
  const asked = await askApproval(
    control.context,
    { ...requester.caller, sidecarId: null },
    {
      requestId: `request-of-the-test-${fingerprint}`,
      subject: connectorSubject(row!.connector, 'delete-item'),
      fingerprint: fingerprint.repeat(64),
      summary: 'Items: delete item 7',
      sessionId: 'ses_1',
    },
  );
  if (!asked.ok) throw new Error(asked.error.message);
  return asked.value.id;
}
async function browserOf({ caller }: HostedUser): Promise<TestBrowser> {
  const browser = new TestBrowser(control.send, FRONT);
  const [name = '', value = ''] = (await signInBrowser(control, caller)).split('=');
  browser.cookies.set(name, value);
  return browser;
}
const text = async (reply: Promise<Response>) => (await reply).text();
const location = async (reply: Promise<Response>) => (await reply).headers.get('location');
const nameOf = async (people: readonly HostedUser[]) =>
  Promise.all(people.map(async ({ call }) => (await parseReply(meReply, call('GET', '/v1/me'))).display_name));
const APPROVE = 'value="approve"';

test('an admin adds a rule by the form, two people approve, and each page says what is needed', async () => {
  const admin = await browserOf(owner);
  const rule = { subject: 'connector', name: 'acme/*', action: '*', effect: 'delete', who: groupId, persons: '2' };
  expect(await location(admin.submit('/approval-rules', rule))).toBe('/approval-rules?done=approval_rule_added');
  const rules = await text(admin.get('/approval-rules'));
  expect(rules).toContain('2 different persons of the group Payments');
  expect(rules).toMatch(/<nav class="tabs"[^]*aria-current="page">Rules/);
  const [first, second] = [await browserOf(anna), await browserOf(ben)];
  const shown = await text(first.get(path));
  expect(shown).toContain('0 of 2 approved, needs 2 more persons of the group Payments');
  expect(shown).toContain(APPROVE);
  expect(await location(first.submit(path, { decision: 'approve' }))).toBe('/approvals?done=partly_approved');
  const half = await text(second.get(path));
  expect(half).toContain('1 of 2 approved, needs 1 more person of the group Payments');
  expect(half).toMatch(/Approved by<[^]*Needs</);
  expect(await location(second.submit(path, { decision: 'approve' }))).toBe('/approvals?done=approved');
  expect(await text(first.get(path))).toContain('It was approved: one identical request may go through');
});

test('a grant that one of two did not allow is not announced, and the list of grants names who gave one', async () => {
  await owner.call('POST', '/v1/approval-rules', { subject: 'connector', group_id: groupId, persons: 2 });
  const [first, second] = [await browserOf(anna), await browserOf(ben)];
  await first.submit(path, { decision: 'approve' });
  const wish = { decision: 'approve', grant: 'hour' };
  expect(await location(second.submit(path, wish))).toBe('/approvals?done=approved_once');
  expect(await location(second.submit(path, wish))).toBe('/approvals?done=approved_once');
  path = `/approvals/${await ask('b')}`;
  expect(await location(first.submit(path, wish))).toBe('/approvals?done=partly_approved');
  expect(await location(second.submit(path, wish))).toBe('/approvals?done=granted');
  const [list, names] = [await text(first.get('/approvals?state=grants')), await nameOf([anna, ben])];
  for (const name of names) expect(list).toContain(name);
});

test('who may not approve has a card without that button, and may deny', async () => {
  await owner.call('POST', '/v1/approval-rules', { subject: 'connector', group_id: groupId });
  for (const at of [path, '/approvals', '/approvals?state=all']) {
    const page = await text((await browserOf(requester)).get(at));
    expect(page).toContain('value="deny"');
    expect(page).not.toContain(APPROVE);
  }
  const refused = await (await browserOf(requester)).submit(path, { decision: 'approve' });
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('does not count')]);
});

test('the page of an approval gives no right: one signs in first, and a stranger sees nothing', async () => {
  const unsigned = await new TestBrowser(control.send, FRONT).get(path);
  expect([unsigned.status, await unsigned.text()]).toEqual([401, expect.stringContaining(path)]);
  const stranger = await browserOf(await hostedUser(control));
  expect((await stranger.get(path)).status).toBe(404);
  const outsider = await browserOf(anna);
  expect((await outsider.get(path)).status).toBe(404);
});

test.each([
  ['denied', { decision: 'deny' }, 0, 'It was denied'],
  ['not decided in time', null, 3_600_000, 'It has expired'],
])('the page of an approval that was %s has nothing to decide', async (_, decision, laterMs, words) => {
  const browser = await browserOf(requester);
  expect(await text(browser.get(path))).toContain(APPROVE);
  if (decision !== null) await browser.submit(path, decision);
  control.clock.ms += laterMs;
  const page = await text(browser.get(path));
  expect(page).toContain(words);
  expect(page).not.toContain('name="decision"');
});

test('a form with a mistake is shown again beside its field, and a member has none', async () => {
  const admin = await browserOf(owner);
  const rule = {
    subject: 'connector',
    name: 'a*b',
    action: '*',
    effect: '',
    who: 'admin',
    persons: '2',
    counts_requester: 'on',
  };
  const again = await admin.submit('/approval-rules', rule);
  const page = await again.text();
  expect([again.status, page]).toEqual([400, expect.stringContaining('has a * that is not at its end')]);
  expect(await text((await browserOf(requester)).get('/approval-rules'))).not.toContain('Add the rule');
});
