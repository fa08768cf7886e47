import { afterEach, beforeEach, expect, test } from 'vitest';
import { type HostedUser, ownerWithMember, PUBLIC_URL, signInProgram } from '../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { ok } from '../shared/model/result.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { createdScimToken } from '../shared/wire/scim_tokens.ts';
import { json } from './kernel/testing/json_reply.ts';

// What was minted for a member ends at its provider too when the member goes, and with the member's access when it is suspended.

const SOURCE = {
  kind: 'client_credentials',
  token_url: 'https://idp.example.com/token',
  revocation_url: 'https://idp.example.com/revoke',
  client_id: 'ci',
};
const PATH = 'ci/token';
let control: InProcess;
let owner: HostedUser;
let member: HostedUser;
let sidecar: TestSidecar;
let revoked: string[];
let minted: number;
let onMint: () => Promise<void>;

beforeEach(async () => {
  [revoked, minted] = [[], 0];
  onMint = () => Promise.resolve();
  control = await startInProcess({
    localKey: null,
    publicUrl: PUBLIC_URL,
    outbound: {
      async call({ url, body }) {
        const form = new URLSearchParams(new TextDecoder().decode(body ?? undefined));
        if (url === SOURCE.revocation_url) {
          revoked.push(form.get('token') ?? '');
          return ok(json(200, {}));
        }
        minted += 1;
        const token = `minted-${minted}`;
        await onMint();
        return ok(json(200, { access_token: token, token_type: 'Bearer', expires_in: 3600 }));
      },
    },
  });
  ({ owner, member } = await ownerWithMember(control));
  sidecar = await hold(member);
});
afterEach(() => control.stop());

const run = (sql: string, args: string[] = []) => control.context.database.client.execute({ sql, args });

async function release(of: TestSidecar): Promise<number> {
  const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'personal', path: PATH }] };
  return (await of.call('POST', '/v1/sidecar/credentials', { body })).status;
}

async function enrol({ caller }: HostedUser): Promise<TestSidecar> {
  const own = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await own.enrol((await signInProgram(control, caller)).access_token);
  return own;
}

/** A sidecar of a user, and a value that is held for it. */
async function hold(user: HostedUser): Promise<TestSidecar> {
  const own = await enrol(user);
  const source = { path: PATH, source: SOURCE, key: 'the-client-secret' };
  expect((await user.call('POST', '/v1/secret-sources', source)).status).toBe(201);
  const binding = { host: 'a.test', scheme: 'bearer', credential_ref: `vault://${PATH}` };
  await user.call('POST', '/v1/host-bindings', binding);
  expect(await release(own)).toBe(200);
  return own;
}

async function events(): Promise<unknown[]> {
  await control.settle();
  const { items } = await parseReply(auditEventsPage, owner.call('GET', '/v1/audit-events?limit=100'));
  return items
    .filter(({ type }) => type.startsWith('control.secret.value_'))
    .map(({ type, data }) => [type, data['svc.control.owner'], data['svc.control.credential_ref']]);
}

const suspend = (suspended: boolean) =>
  owner.call('PUT', `/v1/members/${member.caller.userId}`, { role: 'member', suspended });

/** A call of the enterprise's directory, which knows the member. */
async function directory(method: string, body?: object): Promise<Response> {
  const { userId, enterpriseId } = member.caller;
  await run(`INSERT INTO enterprise_domains (domain, enterprise_id, proven_at) VALUES ('acme.test', ?, '2026-01-01')`, [
    enterpriseId,
  ]);
  await run(`UPDATE users SET email = 'm@acme.test' WHERE id = ?`, [userId]);
  await run(`UPDATE people SET verified_email = 'm@acme.test' WHERE id = (SELECT person_id FROM users WHERE id = ?)`, [
    userId,
  ]);
  const { token } = await parseReply(createdScimToken, owner.call('POST', '/v1/scim-tokens', { name: 'Okta' }));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' };
  const send = (path: string, how: string, sent?: object) => {
    control.clock.ms += 10;
    return control.send(`/scim/v2${path}`, { method: how, headers, ...(sent && { body: JSON.stringify(sent) }) });
  };
  const user = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName: 'm@acme.test', active: true };
  expect((await send('/Users', 'POST', user)).ok).toBe(true);
  return send(`/Users/${userId}`, method, body);
}

const DEACTIVATION = {
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: [{ op: 'replace', value: { active: false } }],
};

test.each<[string, () => Promise<Response>]>([
  ['an admin removes the member', () => owner.call('DELETE', `/v1/members/${member.caller.userId}`)],
  ['the member leaves', () => member.call('DELETE', `/v1/members/${member.caller.userId}`)],
  ['an admin suspends the member', () => suspend(true)],
  ['the directory deactivates the member', () => directory('PATCH', DEACTIVATION)],
  ['the directory removes the member', () => directory('DELETE')],
])('the value of a member is revoked when %s', async (_when, end) => {
  const ofOwner = await hold(owner);
  expect((await end()).ok).toBe(true);
  expect(await events()).toEqual([
    ['control.secret.value_revoked', expect.stringContaining('personal'), `vault://${PATH}`],
  ]);
  expect(revoked).toEqual(['minted-1']);
  expect([await release(ofOwner), minted]).toEqual([200, 2]);
});

test('a suspended member has the source, and another value, when it is back', async () => {
  await suspend(true);
  await suspend(false);
  await control.settle();
  const back = await enrol(member);
  expect([await release(back), minted, revoked]).toEqual([200, 2, ['minted-1']]);
});

test('a value that arrives when its member has been suspended is revoked', async () => {
  await run('UPDATE secret_sources SET sealed_value = NULL, minted_at = NULL, expires_at = NULL');
  onMint = async () => {
    onMint = () => Promise.resolve();
    expect((await suspend(true)).ok).toBe(true);
  };
  await release(sidecar).catch(() => undefined);
  expect(await events()).toHaveLength(1);
  expect([minted, revoked]).toEqual([2, ['minted-2']]);
  await suspend(false);
  expect(await release(await enrol(member))).toBe(200);
});

test('the values of an enterprise that is deleted are revoked', async () => {
  await hold(owner);
  await run(`UPDATE enterprises SET slug = 'acme' WHERE id = ?`, [owner.caller.enterpriseId]);
  expect((await owner.call('DELETE', '/v1/enterprise?confirm=acme')).ok).toBe(true);
  await control.settle();
  expect(new Set(revoked)).toEqual(new Set(['minted-1', 'minted-2']));
});
