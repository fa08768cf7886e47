import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type HostedUser, hostedUser, outcome, ownerWithMember } from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { err, ok } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { auditSinksReply, createdAuditSink } from '../../../shared/wire/audit_sinks.ts';
import { groupRecord } from '../../../shared/wire/sharing/groups.ts';
import type { Outbound, OutboundRequest } from '../../kernel/outbound.ts';
import { askApproval } from '../approvals/approvals.ts';
import { deliverToSinks } from './sink_turn.ts';

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
const outbound: Outbound = {
  async call(request) {
    posts.push(request);
    if (isDown) return err({ reason: 'upstream_unreachable', message: 'it is down' });
    return ok({ status: 202, contentType: '', body: new Uint8Array() });
  },
};

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
async function ask(name = 'acme/<!channel>'): Promise<void> {
  const { userId, enterpriseId } = member.caller;
  const subject = { subject: 'connector' as const, subjectId: 'con_1', subjectOwnerId: enterpriseId };
  const request = {
    requestId: 'r',
    fingerprint: 'f',
    summary: 'planted-summary',
    sessionId: null,
    subject: { ...subject, subjectName: name, subjectVersion: '1', action: 'delete-item' },
  };
  const asked = await askApproval(control.context, { userId, enterpriseId, sidecarId: null }, request);
  if (!asked.ok) throw new Error(asked.error.message);
  await control.settle();
}
const mails = () => posts.map(({ body }) => mailBody.parse(JSON.parse(new TextDecoder().decode(body))));
const sinks = async () => (await parseReply(auditSinksReply, owner.call('GET', '/v1/audit-sinks'))).items;

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
