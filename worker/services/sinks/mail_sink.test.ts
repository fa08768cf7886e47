import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type HostedUser, hostedUser, outcome, ownerWithMember } from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { err, ok } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { type AuditSinkRecord, createdAuditSink, MAX_DEAD_LETTERS } from '../../../shared/wire/audit_sinks.ts';
import { groupRecord } from '../../../shared/wire/sharing/groups.ts';
import type { Outbound, OutboundRequest } from '../../kernel/outbound.ts';
import { askApproval } from '../approvals/approvals.ts';
import { MOST_MESSAGES_AN_HOUR } from './send_mails.ts';
import { deliverToSinks } from './sink_turn.ts';
import { describeSinks, listDeadLetterPage } from './sinks.ts';

const MAIL_URL = 'https://mail.example.test/send';
const SETTINGS = { url: MAIL_URL, token: new Secret('token-of-a-test'), from: 'svc@acme.test' };
const mailBody = z.strictObject({ from: z.string(), to: z.array(z.string()), subject: z.string(), text: z.string() });

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let anna: HostedUser;
let groupId = '';
let posts: OutboundRequest[] = [];
let isDown = false;
/** What the service answers about one address. */
let answers: Record<string, { readonly status: number; readonly retryAfter?: string }> = {};
const outbound: Outbound = {
  async call(request) {
    posts.push(request);
    if (isDown) return err({ reason: 'upstream_unreachable', message: 'it is down' });
    const [to = ''] = receiversOf(request);
    return ok({ status: 202, contentType: '', body: new Uint8Array(), ...answers[to] });
  },
};

function receiversOf({ body }: OutboundRequest): string[] {
  return mailBody.parse(JSON.parse(new TextDecoder().decode(body ?? undefined))).to;
}

async function startWith(mail: typeof SETTINGS | null): Promise<void> {
  const signIn = { allowedHosts: [], providerVariables: {}, mail };
  control = await startInProcess({ localKey: null, publicUrl: 'https://control.example.test', outbound, signIn });
  ({ owner, member } = await ownerWithMember(control));
  anna = await hostedUser(control, owner.caller.enterpriseId);
  groupId = (await parseReply(groupRecord, owner.call('POST', '/v1/groups', { name: 'Payments' }))).id;
  await owner.call('PUT', `/v1/groups/${groupId}/members/${anna.caller.userId}`);
}

beforeEach(async () => {
  posts = [];
  isDown = false;
  answers = {};
  await startWith(SETTINGS);
});
afterEach(() => control.stop());

/** The address that the enterprise knows somebody by, and the one that they have proven. */
async function giveAddress({ caller }: HostedUser, email: string, verified: string | null = email): Promise<void> {
  const { client } = control.context.database;
  await client.execute({ sql: 'UPDATE users SET email = ? WHERE id = ?', args: [email, caller.userId] });
  const person = '(SELECT person_id FROM users WHERE id = ?)';
  const sql = `UPDATE people SET verified_email = ? WHERE id = ${person}`;
  await client.execute({ sql, args: [verified, caller.userId] });
}
const add = (to: object) => owner.call('POST', '/v1/audit-sinks', { kind: 'mail', name: 'approvers', ...to });
let requests = 0;
async function ask(name = 'acme/<!channel>'): Promise<void> {
  requests += 1;
  const { userId, enterpriseId } = member.caller;
  const subject = { subject: 'connector' as const, subjectId: 'con_1', subjectOwnerId: enterpriseId };
  const request = {
    requestId: `r${requests}`,
    fingerprint: `f${requests}`,
    summary: 'planted-summary',
    sessionId: null,
    subject: { ...subject, subjectName: name, subjectVersion: '1', action: 'delete-item' },
  };
  const asked = await askApproval(control.context, { userId, enterpriseId, sidecarId: null }, request);
  if (!asked.ok) throw new Error(asked.error.message);
  await control.settle();
}
const mails = () => posts.map(({ body }) => mailBody.parse(JSON.parse(new TextDecoder().decode(body))));
/** By the service: an access token does not outlive the hours of these tests. */
async function sinks(): Promise<readonly AuditSinkRecord[]> {
  const described = await describeSinks(control.context, owner.caller);
  return described.ok ? described.value.items : [];
}

describe('a mail sink', () => {
  test('writes to each member of its group at once, with a link and without the request', async () => {
    await giveAddress(anna, 'Anna@acme.test', 'anna@acme.test');
    await giveAddress(owner, 'owner@acme.test');
    const created = await parseReply(createdAuditSink, add({ group_id: groupId }));
    expect(created).toMatchObject({ kind: 'mail', host: 'mail', signing_secret: null });
    await ask();
    expect(posts).toMatchObject([{ url: MAIL_URL, headers: { authorization: 'Bearer token-of-a-test' } }]);
    const [mail] = mails();
    expect(mail).toMatchObject({
      from: 'svc@acme.test',
      to: ['Anna@acme.test'],
      subject: 'A request needs an approval',
    });
    expect(mail?.text).toMatch(
      /^Approval requested: acme\/<!channel> delete-item https:\/\/control\.example\.test\/approvals\/apr_\w+\nDecide at https:\/\/control\.example\.test\/approvals$/,
    );
    expect(mail?.text).not.toContain('planted-summary');
  });

  test('writes to those with its role, each by themselves', async () => {
    await giveAddress(anna, 'anna@acme.test');
    await giveAddress(member, 'member@acme.test');
    await add({ role: 'member' });
    await ask();
    expect(mails().map(({ to }) => to)).toEqual(expect.arrayContaining([['anna@acme.test'], ['member@acme.test']]));
    expect(posts).toHaveLength(2);
  });

  test.each([
    ['an address that nobody has proven', () => giveAddress(anna, 'anna@acme.test', null)],
    ['another address than the one that was proven', () => giveAddress(anna, 'boss@elsewhere.test', 'anna@acme.test')],
    [
      'somebody who was suspended',
      async () => {
        await giveAddress(anna, 'anna@acme.test');
        await owner.call('PUT', `/v1/members/${anna.caller.userId}`, { role: 'member', suspended: true });
      },
    ],
    [
      'somebody who has left the group',
      async () => {
        await giveAddress(anna, 'anna@acme.test');
        await owner.call('DELETE', `/v1/groups/${groupId}/members/${anna.caller.userId}`);
      },
    ],
  ])('never writes to %s', async (_, prepare) => {
    await add({ group_id: groupId });
    await prepare();
    await ask();
    expect(posts).toEqual([]);
    expect(await sinks()).toMatchObject([{ problem: 'no_receiver', failures: 1 }]);
  });

  test('keeps a line break in a name out of the text', async () => {
    await giveAddress(anna, 'anna@acme.test');
    await add({ group_id: groupId });
    await ask('acme/x\nDecide at https://evil.test');
    expect(mails()[0]?.text.split('\n')).toHaveLength(2);
  });

  test('sends again what could not be sent', async () => {
    await giveAddress(anna, 'anna@acme.test');
    await add({ group_id: groupId });
    isDown = true;
    await ask();
    expect(await sinks()).toMatchObject([{ problem: 'mail_failed', failures: 1 }]);
    isDown = false;
    control.clock.ms += 60_000;
    await deliverToSinks(control.context);
    expect(posts).toHaveLength(2);
    expect(await sinks()).toMatchObject([{ problem: null, failures: 0, behind: false }]);
  });

  test.each([
    ['io.evil.test/login', 'io[.]evil[.]test/login delete-item'],
    ['https://evil/x', 'https[:]//evil/x delete-item'],
    ['ops@evil\u3002test', 'ops[@]evil[.]test delete-item'],
  ])('makes no link of a name: %s', async (name, written) => {
    await giveAddress(anna, 'anna@acme.test');
    await add({ group_id: groupId });
    await ask(name);
    expect(mails()[0]?.text).toContain(`Approval requested: ${written} https://control`);
  });

  test('needs a service that sends mail, somebody to write to, and an admin', async () => {
    expect(await outcome(add({ role: 'admin', group_id: groupId }))).toBe('invalid_input');
    expect(await outcome(add({}))).toBe('invalid_input');
    expect(await outcome(add({ role: 'admin', url: 'https://elsewhere.test' }))).toBe('invalid_input');
    expect(await outcome(add({ group_id: `grp_${'0'.repeat(26)}` }))).toBe('not_found');
    const input = { kind: 'mail', name: 'x', role: 'admin' };
    expect(await outcome(member.call('POST', '/v1/audit-sinks', input))).toBe('admin_required');
    await control.stop();
    await startWith(null);
    const refused = await add({ role: 'admin' });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('SVC_MAIL_URL')]);
  });
});

async function lettersOf(id: string) {
  const page = await listDeadLetterPage(control.context, owner.caller, id, { limit: 200 });
  return page.ok ? page.value.items : [];
}
const receivers = () => mails().flatMap(({ to }) => to);

const toMember = () => receivers().filter((to) => to === 'member@acme.test');
const toAnna = () => receivers().filter((to) => to === 'anna@acme.test');
async function deliverAfter(ms: number): Promise<void> {
  control.clock.ms += ms;
  await deliverToSinks(control.context);
}

describe('a mail to several members', () => {
  let sinkId = '';
  const replay = () => owner.call('POST', `/v1/audit-sinks/${sinkId}/replay`);
  beforeEach(async () => {
    await giveAddress(anna, 'anna@acme.test');
    await giveAddress(member, 'member@acme.test');
    sinkId = (await parseReply(createdAuditSink, add({ role: 'member' }))).id;
  });

  test('that one of them cannot get is sent again to that one alone, after as long as the service asks', async () => {
    answers = { 'anna@acme.test': { status: 429, retryAfter: '600' } };
    await ask();
    expect(receivers()).toHaveLength(2);
    control.clock.ms += 599_000;
    await deliverToSinks(control.context);
    expect(receivers()).toHaveLength(2);
    answers = {};
    control.clock.ms += 1_000;
    await deliverToSinks(control.context);
    expect(receivers().slice(2)).toEqual(['anna@acme.test']);
    expect(await sinks()).toMatchObject([{ problem: null, failures: 0, behind: false, dead_letters: 0 }]);
  });

  test('that is refused for one becomes a dead letter of that one, and the next one goes to the others at once', async () => {
    answers = { 'anna@acme.test': { status: 422 } };
    await ask();
    await ask();
    expect(receivers().filter((to) => to === 'member@acme.test')).toHaveLength(2);
    expect(await sinks()).toMatchObject([{ problem: 'mail_refused', failures: 0, behind: false, dead_letters: 2 }]);
    expect(await lettersOf(sinkId)).toMatchObject([
      { problem: 'mail_refused', recipients: [anna.caller.userId], attempts: 1 },
      { problem: 'mail_refused', recipients: [anna.caller.userId], attempts: 1 },
    ]);
    answers = {};
    posts = [];
    await owner.call('POST', `/v1/audit-sinks/${sinkId}/replay`);
    await deliverToSinks(control.context);
    expect(mails()).toMatchObject([{ to: ['anna@acme.test'], subject: '2 requests need an approval' }]);
    expect(await lettersOf(sinkId)).toEqual([]);
  });

  test('that is refused again after a replay stays a dead letter, and one for somebody who left is dropped', async () => {
    answers = { 'anna@acme.test': { status: 422 } };
    await ask();
    await owner.call('POST', `/v1/audit-sinks/${sinkId}/replay`);
    await deliverToSinks(control.context);
    expect(await lettersOf(sinkId)).toMatchObject([{ recipients: [anna.caller.userId], attempts: 2, waiting: false }]);
    await owner.call('PUT', `/v1/members/${anna.caller.userId}`, { role: 'member', suspended: true });
    posts = [];
    await owner.call('POST', `/v1/audit-sinks/${sinkId}/replay`);
    await deliverToSinks(control.context);
    expect([posts, await lettersOf(sinkId)]).toEqual([[], []]);
  });

  test.each([{ status: 500 }, { status: 429, retryAfter: '86400' }])(
    'that one of them cannot get with %j holds up nobody else, and is tried four times',
    async (answer) => {
      answers = { 'anna@acme.test': answer };
      await ask();
      await ask();
      expect([toMember(), toAnna()]).toEqual([Array(2).fill('member@acme.test'), Array(2).fill('anna@acme.test')]);
      expect(await sinks()).toMatchObject([{ problem: 'mail_failed', failures: 0, behind: false, dead_letters: 2 }]);
      for (const attempts of [2, 3, 4]) {
        expect(await lettersOf(sinkId)).toMatchObject([1, 2].map(() => ({ attempts: attempts - 1, waiting: true })));
        await deliverAfter(86_400_000);
      }
      const letter = { problem: 'mail_failed', recipients: [anna.caller.userId], attempts: 4, waiting: false };
      expect(await lettersOf(sinkId)).toMatchObject([letter, letter]);
      await deliverAfter(86_400_000);
      expect([toMember(), toAnna()]).toEqual([Array(2).fill('member@acme.test'), Array(5).fill('anna@acme.test')]);
    },
  );

  test('that nobody could get for a while is then tried four times for whoever still cannot', async () => {
    isDown = true;
    await ask();
    for (let tries = 0; tries < 5; tries += 1) await deliverAfter(3_600_000);
    expect(await sinks()).toMatchObject([{ problem: 'mail_failed', failures: 6, dead_letters: 0 }]);
    isDown = false;
    answers = { 'anna@acme.test': { status: 429, retryAfter: '600' } };
    posts = [];
    await deliverAfter(3_600_000);
    expect(await lettersOf(sinkId)).toMatchObject([{ attempts: 1, waiting: true }]);
    answers = {};
    await deliverAfter(599_000);
    expect(toAnna()).toHaveLength(1);
    await deliverAfter(1_000);
    expect([toMember().length, toAnna().length, await lettersOf(sinkId)]).toEqual([1, 2, []]);
  });

  test('that none of them can get is tried again as soon as it may be for one of them', async () => {
    answers = { 'anna@acme.test': { status: 429, retryAfter: '86400' }, 'member@acme.test': { status: 500 } };
    await ask();
    answers = { 'anna@acme.test': { status: 429, retryAfter: '86400' } };
    posts = [];
    await deliverAfter(60_000);
    expect(toMember()).toHaveLength(1);
    expect(await lettersOf(sinkId)).toMatchObject([{ recipients: [anna.caller.userId], waiting: true }]);
  });

  test('whose dead letters are replayed goes out after what is new', async () => {
    answers = { 'anna@acme.test': { status: 422 } };
    await ask('acme/old');
    answers = {};
    posts = [];
    await owner.call('POST', `/v1/audit-sinks/${sinkId}/replay`);
    await ask('acme/new');
    const texts = mails().map(({ to, text }) => [to[0], /acme\/\w+/.exec(text)?.[0]]);
    expect(texts.slice(0, 2)).toEqual(
      expect.arrayContaining([
        ['anna@acme.test', 'acme/new'],
        ['member@acme.test', 'acme/new'],
      ]),
    );
    expect(texts.slice(2)).toEqual([['anna@acme.test', 'acme/old']]);
  });

  test('is sent again beside the messages of an hour, of which it is none', async () => {
    answers = { 'anna@acme.test': { status: 422 } };
    for (let at = 1; at < MOST_MESSAGES_AN_HOUR; at += 1) {
      await ask();
      await decideAll();
    }
    answers = {};
    posts = [];
    await replay();
    await deliverToSinks(control.context);
    expect([toMember().length, toAnna().length]).toEqual([0, 1]);
    answers = { 'anna@acme.test': { status: 422 } };
    await ask();
    await ask();
    expect([toMember().length, toAnna().length]).toEqual([1, 2]);
    answers = {};
    await replay();
    await deliverToSinks(control.context);
    expect([toMember().length, toAnna().length]).toEqual([1, 3]);
  });

  test('has the newest dead letters only, and is not disabled by them', async () => {
    answers = { 'anna@acme.test': { status: 422 } };
    const { client } = control.context.database;
    for (let at = 0; at < MAX_DEAD_LETTERS; at += 1) {
      const sql = `INSERT INTO audit_dead_letters (sink_id, position, event_id, problem, failed_at) VALUES (?, ?, ?, 'x', '')`;
      await client.execute({ sql, args: [sinkId, -at, `evt_${at}`] });
    }
    await ask();
    expect(await sinks()).toMatchObject([{ dead_letters: MAX_DEAD_LETTERS, disabled_reason: null }]);
  });

  test('comes so often in an hour, and then once for all that came until its end', async () => {
    for (let at = 0; at < MOST_MESSAGES_AN_HOUR + 5; at += 1) {
      await ask();
      await decideAll();
    }
    expect(receivers().filter((to) => to === 'anna@acme.test')).toHaveLength(MOST_MESSAGES_AN_HOUR);
    expect(mails().at(-1)?.text).toMatch(
      /^This is the 30th mail in an hour\. .* gathered into one mail at \d\d:\d\d UTC\.$/m,
    );
    posts = [];
    control.clock.ms += 3_600_000;
    await deliverToSinks(control.context);
    expect(mails().map(({ subject }) => subject)).toEqual(Array(2).fill('5 requests need an approval'));
    expect(await sinks()).toMatchObject([{ behind: false, failures: 0 }]);
  });
});

/** So that the list of what waits has room. */
async function decideAll(): Promise<void> {
  await control.context.database.client.execute("UPDATE approvals SET state = 'denied' WHERE state = 'pending'");
}
