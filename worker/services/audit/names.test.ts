import { afterEach, beforeEach, expect, test } from 'vitest';
import { addUser, type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { meReply } from '../../../shared/wire/account.ts';
import type { Caller } from '../../kernel/caller.ts';
import { createPersonalToken } from '../../tokens/personal_tokens.ts';
import { insertScimToken } from '../../store/people/scim_tokens.ts';
import { askApproval } from '../approvals/approvals.ts';
import { createGroup } from '../sharing/groups.ts';
import { describeNames, describeSessions } from './names.ts';

const SESSION = 'ses_1';
const MACHINE = 'sdc_of_the_session';
const OTHER = 'sdc_of_a_colleague';

let control: InProcess;
let admin: Caller;
let colleague: Caller;
beforeEach(async () => {
  control = await startInProcess();
  const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  colleague = await addUser(control.context, me.enterprise_id);
  admin = { ...colleague, userId: me.id, role: 'admin' };
});
afterEach(() => control.stop());

/** A machine asks for an approval, and says what the session is called. */
async function nameSession({ userId, enterpriseId }: Caller, sidecarId: string, sessionName: string): Promise<void> {
  const subject = {
    subject: 'connector' as const,
    subjectId: 'con_1',
    subjectOwnerId: userId,
    subjectName: 'acme/items',
    subjectVersion: '1.0.0',
    action: 'read',
  };
  const asked = { requestId: `of ${sessionName}`, subject, fingerprint: 'a'.repeat(64), summary: 'reads' };
  const session = { sessionId: SESSION, sessionName, folder: `/home/${sessionName}` };
  const done = await askApproval(control.context, { userId, enterpriseId, sidecarId }, { ...asked, ...session });
  expect(done.ok).toBe(true);
}
const eventsOf = (...machines: readonly string[]) =>
  machines.map((sidecar) => ({ session_id: SESSION, sidecar_id: sidecar }));
const nameFor = async (caller: Caller, ...machines: readonly string[]): Promise<string | null> =>
  (await describeNames(control.context, caller, [SESSION], eventsOf(...machines)))(SESSION);

test('a session has the name that its own machine told, for its person and for admins', async () => {
  await nameSession(colleague, MACHINE, 'claude');
  expect(await nameFor(colleague, MACHINE)).toBe('claude');
  expect(await nameFor(admin, MACHINE)).toBe('claude');
  const another = await addUser(control.context, admin.enterpriseId);
  expect(await nameFor(another, MACHINE)).toBeNull();
});

test('the machine of another member can neither name a session nor take its name away', async () => {
  await nameSession(colleague, OTHER, 'payroll');
  expect(await nameFor(admin, MACHINE)).toBeNull();
  await nameSession(admin, MACHINE, 'claude');
  await nameSession(colleague, OTHER, 'backup');
  expect(await nameFor(admin, MACHINE, MACHINE)).toBe('claude');
  const described = await describeSessions(control.context, admin, eventsOf(MACHINE));
  expect(described.get(SESSION)).toMatchObject({ name: 'claude', folder: '/home/claude' });
});

test('a session whose events are of two machines has no name', async () => {
  await nameSession(admin, MACHINE, 'claude');
  expect(await nameFor(admin, MACHINE, OTHER)).toBeNull();
});

test('a personal token has its name for its person alone, and a group for everybody in the enterprise', async () => {
  const token = await createPersonalToken(control.context, admin, {
    name: 'ci',
    scopes: ['secrets:read'],
    expires_in_days: 7,
  });
  const group = await createGroup(control.context, admin, { name: 'Payments' });
  if (!token.ok || !group.ok) throw new Error('the token or the group was not created');
  const ids = [token.value.id, group.value.id];
  const namesFor = async (caller: Caller) => ids.map(await describeNames(control.context, caller, ids));
  expect(await namesFor(admin)).toEqual(['ci', 'Payments']);
  expect(await namesFor({ ...colleague, role: 'admin' })).toEqual([null, 'Payments']);
});

test('a token of the directory has its name for admins alone', async () => {
  const row = {
    id: 'sct_1',
    enterpriseId: admin.enterpriseId,
    name: 'Okta',
    tokenHash: 'hash',
    createdBy: admin.userId,
  };
  const times = { createdAt: '2026-01-01T00:00:00.000Z', expiresAt: '2027-01-01T00:00:00.000Z' };
  const { database } = control.context;
  await database.write([insertScimToken(database, { ...row, ...times, lastUsedAt: null, revokedAt: null })]);
  const nameOfToken = async (caller: Caller) => (await describeNames(control.context, caller, [row.id]))(row.id);
  expect(await nameOfToken(admin)).toBe('Okta');
  expect(await nameOfToken({ ...colleague, role: 'member' })).toBeNull();
});
