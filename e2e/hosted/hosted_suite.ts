import { beforeAll, describe, expect, test } from 'vitest';
import { approvalRecord } from '../../shared/wire/approvals.ts';
import { auditEventsPage, auditVerification } from '../../shared/wire/audit_events.ts';
import { installReply } from '../../shared/wire/connectors/connectors.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { ITEMS_SPEC } from '../runtimes/connector_samples.ts';
import { outcome } from '../runtimes/hosted_users.ts';
import { parseReply } from '../runtimes/in_process.ts';
import { TestSidecar } from '../runtimes/sidecar_client.ts';
import type { HostedPerson, HostedWorker } from './hosted_worker.ts';

const KEY = 'key-of-the-items';

/** What a team does, on one runtime. The tests build on each other. */
export function describeHostedTeam(runtime: string, workerOf: () => HostedWorker): void {
  describe(`a team on ${runtime}`, () => {
    let worker: HostedWorker;
    let owner: HostedPerson;
    let member: HostedPerson;
    let connectorId = '';

    beforeAll(() => {
      worker = workerOf();
    });

    const remove = (id: string) =>
      member.program.call('POST', '/v1/connector-operations/run', {
        connector_fqn: 'acme/items',
        operation: 'delete-item',
        args: { id },
      });

    test('begins with a person who signs in at the provider and owns an enterprise', async () => {
      const name = `owner-${runtime.toLowerCase()}`;
      const { browser, me } = await worker.signIn(name);
      expect(me).toMatchObject({ email: `${name}@acme.test`, role: 'owner' });
      owner = await worker.openPerson(browser, name);
      expect(owner.me).toMatchObject({ id: me.id, enterprise_id: me.enterprise_id });
      const again = await worker.signIn(name);
      expect(again.me.id).toBe(me.id);
    });

    test('has a program whose refresh token is used once: a second use ends its sign-in', async () => {
      const program = await worker.signInProgram(owner.browser, 'copied');
      const { refresh_token: first } = program.tokens;
      await program.renew();
      expect((await program.call('GET', '/v1/me')).status).toBe(200);
      expect(await outcome(worker.post('/auth/refresh', { refresh_token: first }))).toBe('sign_in_over');
      const { refresh_token: second } = program.tokens;
      expect(await outcome(worker.post('/auth/refresh', { refresh_token: second }))).toBe('sign_in_over');
    });

    test('takes in a member by invitation, who may do less', async () => {
      member = await worker.takeIn(owner.program, `member-${runtime}`, 'member');
      expect(member.me).toMatchObject({ enterprise_id: owner.me.enterprise_id, role: 'member' });
      expect(await outcome(member.program.call('POST', '/v1/invitations', { email: 'x@acme.test' }))).toBe(
        'admin_required',
      );
      const shared = { path: 'team/key', value: KEY, owner: 'enterprise' };
      expect(await outcome(member.program.call('POST', '/v1/secrets', shared))).toBe('admin_required');
      expect(await outcome(owner.program.call('POST', '/v1/secrets', shared))).toBe(201);
    });

    test("runs operations of the enterprise's connector, with a credential that nobody sees", async () => {
      const installed = owner.program.call('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC);
      connectorId = (await parseReply(installReply, installed)).id;
      const credential = { kind: 'api_key', value: KEY };
      expect(await outcome(owner.program.call('PUT', `/v1/connectors/${connectorId}/credential`, credential))).toBe(
        200,
      );
      const call = { connector_fqn: 'acme/items', operation: 'get-item', args: { id: runtime } };
      const run = await member.program.call('POST', '/v1/connector-operations/run', call);
      const text = await run.text();
      expect([run.status, text]).toEqual([200, expect.stringContaining('"upstream_status":200')]);
      expect(text).not.toContain(KEY);
      expect(worker.world.seen.filter(({ target }) => target === `/items/${runtime}`)).toMatchObject([
        { authorization: `Bearer ${KEY}` },
      ]);
    });

    test('approves a request of a member once', async () => {
      const asked = errorBody.parse(await (await remove('gone')).json()).error;
      expect(asked.code).toBe('approval_required');
      const path = `/v1/approvals/${String(asked.details?.['approval_id'])}`;
      expect(await outcome(owner.program.call('GET', path))).toBe(200);
      const decided = await Promise.all(
        [owner, owner].map(({ program }) => program.call('POST', `${path}/decide`, { decision: 'approve' })),
      );
      expect(decided.filter(({ status }) => status === 200)).toHaveLength(1);
      const runs = await Promise.all([remove('gone'), remove('gone')]);
      expect(new Set(runs.map(({ status }) => status))).toEqual(new Set([200, 403]));
      const record = await parseReply(approvalRecord, member.program.call('GET', path));
      expect(record).toMatchObject({ state: 'used', decided_by: owner.me.id, user_id: member.me.id });
    });

    test('has an audit log that every member reads, and that verifies', async () => {
      const type = 'connector.approval.decided';
      const read = member.program.call('GET', `/v1/audit-events?type=${type}`);
      const { items } = await parseReply(auditEventsPage, read);
      expect(items).toMatchObject([{ actor: owner.me.id, type }]);
      const verified = owner.program.call('GET', '/v1/audit-events/verify');
      expect(await parseReply(auditVerification, verified)).toMatchObject({ ok: true, first_break: null });
    });

    test('ends everything of a member who is removed', async () => {
      const sidecar = await TestSidecar.make((path, init) => worker.send(path, init));
      await sidecar.enrol(await member.program.bearer());
      expect((await sidecar.call('GET', '/v1/sidecar/snapshot')).status).toBe(200);
      expect(await outcome(owner.program.call('DELETE', `/v1/members/${member.me.id}`))).toBe(204);
      expect((await sidecar.call('GET', '/v1/sidecar/snapshot')).status).toBe(401);
      expect(await outcome(member.program.call('GET', '/v1/secrets'))).toBe('unauthenticated');
      const { refresh_token } = member.program.tokens;
      expect(await outcome(worker.post('/auth/refresh', { refresh_token }))).toBe('sign_in_over');
    });
  });
}
