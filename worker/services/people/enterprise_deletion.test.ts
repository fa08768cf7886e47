import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import {
  callAs,
  type HostedUser,
  outcome,
  ownerWithMember,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { deletionReply } from '../../../shared/wire/enterprise.ts';
import { createdToken } from '../../../shared/wire/tokens.ts';
import { passwordIdentity } from '../../sign_in/password_identity.ts';
import { signInIdentity } from '../../sign_in/sign_in_identity.ts';
import { findAccount } from '../../store/accounts.ts';

let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let stranger: HostedUser;
beforeEach(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  ({ owner: stranger } = await ownerWithMember(control));
});
afterEach(() => control.stop());

const run = (sql: string) => control.context.database.client.execute(sql);

async function slugOf({ caller }: HostedUser): Promise<string> {
  return (await findAccount(control.context.database, caller.userId))!.enterprise.slug;
}

const remove = async (by: HostedUser) => outcome(by.call('DELETE', `/v1/enterprise?confirm=${await slugOf(by)}`));

/** One of everything of a user; the enterprise's, if the user may. */
async function plant(user: HostedUser, place: 'personal' | 'enterprise'): Promise<void> {
  const calls: [string, object][] = [
    ['/v1/secrets', { path: 'user/key', value: 'value-of-a-test' }],
    ['/v1/host-bindings', { host: 'api.test', scheme: 'bearer', credential_ref: 'vault://user/key' }],
    ['/v1/tunnel-hosts', { host: 'bank.test' }],
    ['/v1/connectors', ITEMS_SPEC],
    ['/v1/mcp-servers', { name: 'mine', command: ['a-server'] }],
  ];
  const certificate = { host: 'mtls.test', credential_ref: 'vault://user/key' };
  if (place === 'personal') calls.push(['/v1/client-certificates', certificate]);
  for (const [path, body] of calls) {
    const reply = await user.call('POST', path, {
      ...body,
      ...(place === 'enterprise' && path !== '/v1/connectors' && { owner: 'enterprise' }),
    });
    expect([path, reply.status]).toEqual([path, 201]);
  }
}

/** The tables with a row that has one of these ids anywhere. */
async function tablesWith(ids: readonly string[]): Promise<string[]> {
  const { rows } = await run(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`);
  const found: string[] = [];
  for (const row of rows) {
    const name = JSON.stringify(row['name']);
    const text = JSON.stringify((await run(`SELECT * FROM ${name}`)).rows);
    if (ids.some((id) => text.includes(id))) found.push(name.replaceAll('"', ''));
  }
  return found;
}

describe('an enterprise that its owner deletes', () => {
  test('leaves only what the audit log names, without names and addresses', async () => {
    await plant(owner, 'enterprise');
    await plant(member, 'personal');
    const { enterpriseId } = owner.caller;
    await owner.call('POST', '/v1/invitations', { email: 'pat@acme.test', role: 'member' });
    await run(`INSERT INTO enterprise_domains VALUES ('acme.test', '${enterpriseId}', '2026')`);
    await run(`INSERT INTO mcp_rules VALUES ('${enterpriseId}', '{}', '2026')`);
    await run(`INSERT INTO saved_views VALUES ('${member.caller.userId}', 'mine', 'host=a', '2026')`);
    await run(
      `UPDATE users SET email = 'ada@acme.test', display_name = 'Ada Lovelace' WHERE enterprise_id = '${enterpriseId}'`,
    );
    const counted = await parseReply(deletionReply, owner.call('GET', '/v1/enterprise/deletion'));
    expect(counted).toMatchObject({
      members: 2,
      secrets: 2,
      host_bindings: 2,
      connectors: 2,
      mcp_servers: 2,
      sign_ins: 2,
    });
    expect(await remove(owner)).toBe(204);
    expect(await tablesWith([enterpriseId, owner.caller.userId, member.caller.userId])).toEqual([
      'audit_events',
      'audit_heads',
      'audit_writers',
      'enterprises',
      'token_families',
      'users',
    ]);
    expect(await tablesWith(['acme.test', 'snk_1', 'Ada Lovelace', 'value-of-a-test'])).toEqual([]);
    const events = await run(
      `SELECT type, actor FROM audit_events WHERE enterprise_id = '${enterpriseId}' ORDER BY position`,
    );
    expect(events.rows.at(-1)).toMatchObject({ type: 'control.enterprise.deleted', actor: owner.caller.userId });
  });

  test('leaves another enterprise as it was', async () => {
    await plant(stranger, 'personal');
    const before = await tablesWith([stranger.caller.userId, stranger.caller.enterpriseId]);
    expect(await remove(owner)).toBe(204);
    expect(await tablesWith([stranger.caller.userId, stranger.caller.enterpriseId])).toEqual(before);
    expect((await stranger.call('GET', '/v1/me')).status).toBe(200);
    expect((await run(`SELECT id FROM secrets`)).rows).toHaveLength(1);
  });

  test('ends everything of every member at once', async () => {
    const cookie = await signInBrowser(control, member.caller);
    const made = member.call('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'] });
    const { token } = await parseReply(createdToken, made);
    const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
    await sidecar.enrol(member.tokens.access_token);
    expect(await remove(owner)).toBe(204);
    const replies = [
      await owner.call('GET', '/v1/me'),
      await member.call('GET', '/v1/me'),
      await callAs(control, token, 'GET', '/v1/me'),
      await control.send('/v1/me', { headers: { cookie } }),
      await sidecar.call('GET', '/v1/sidecar/snapshot'),
    ];
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401]);
  });

  test('takes nobody back: its own provider signs in to nothing, and its people start anew', async () => {
    const { enterpriseId } = owner.caller;
    const signIn = async (provider: string, issuer: string) => {
      const identity = { ...passwordIdentity('pat@acme.test', 'Pat'), issuer };
      const signedIn = await signInIdentity(control.context, identity, { provider, client: '' });
      if (!signedIn.ok) return signedIn.error.code;
      return (await findAccount(control.context.database, signedIn.value.userId))?.user.enterpriseId;
    };
    await run(`INSERT INTO enterprise_domains VALUES ('acme.test', '${enterpriseId}', '2026')`);
    expect(await signIn(enterpriseId, 'https://id.acme.test')).toBe(enterpriseId);
    expect(await signIn('password', 'svc')).toBe(enterpriseId);
    expect(await remove(owner)).toBe(204);
    expect(await signIn(enterpriseId, 'https://id.acme.test')).toBe('account_unavailable');
    const other = { ...passwordIdentity('new@acme.test', 'New'), issuer: 'https://id.acme.test' };
    const byProvider = { provider: enterpriseId, client: '' };
    expect(await signInIdentity(control.context, other, byProvider)).toMatchObject({
      error: { code: 'account_unavailable' },
    });
    const anew = await signIn('password', 'svc');
    expect(anew).toMatch(/^ent_/);
    expect(anew).not.toBe(enterpriseId);
  });
});

describe('an enterprise is not deleted', () => {
  test('without its slug, by no owner, by a personal token, or on a machine of one person', async () => {
    expect(await outcome(owner.call('DELETE', '/v1/enterprise?confirm=other'))).toBe('not_confirmed');
    expect(await outcome(owner.call('DELETE', '/v1/enterprise'))).toBe('invalid_query');
    await run(`UPDATE users SET role = 'admin' WHERE id = '${member.caller.userId}'`);
    expect(await remove(member)).toBe('admin_required');
    expect(await outcome(member.call('GET', '/v1/enterprise/deletion'))).toBe('admin_required');
    const made = owner.call('POST', '/v1/tokens', { name: 'ci', scopes: ['account:read'] });
    const { token } = await parseReply(createdToken, made);
    const path = `/v1/enterprise?confirm=${await slugOf(owner)}`;
    expect((await callAs(control, token, 'DELETE', path)).status).toBe(403);
    expect((await owner.call('GET', '/v1/me')).status).toBe(200);
    const local = await startInProcess();
    expect((await local.asUser('DELETE', '/v1/enterprise?confirm=local')).status).toBe(404);
    await local.stop();
  });
});
