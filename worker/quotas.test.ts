import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { exportJWK, generateKeyPair } from 'jose';
import { z } from 'zod';
import { ITEMS_SPEC, itemsSpec } from '../e2e/runtimes/connector_samples.ts';
import { hostedUser, type HostedUser, outcome, ownerWithMember, PUBLIC_URL } from '../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { type QuotaKind, quotaOf, QUOTAS } from '../shared/model/quotas/quotas.ts';
import { insertBrowserSession } from './store/browser_sessions.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { sharesPage } from '../shared/wire/sharing/shares.ts';
import { usageReply } from '../shared/wire/usage.ts';

/** A thousandth of the defaults: 5 secrets, 2 bindings, one of most others. */
const PERCENT = 0.1;
const withId = z.object({ id: z.string() });
const most = (kind: QuotaKind) => quotaOf(kind, PERCENT);

let control: InProcess;
let user: HostedUser;
async function startWith(quotaPercent: number): Promise<void> {
  control = await startInProcess({ localKey: null, publicUrl: PUBLIC_URL, quotaPercent });
  user = await hostedUser(control);
}
beforeEach(() => startWith(PERCENT));
afterEach(() => control.stop());

const storeSecret = (path: string, value = 'v', by = user, owner = 'personal') =>
  by.call('POST', '/v1/secrets', { path: `user/${path}`, value, owner });
const bind = (name: string) =>
  user.call('POST', '/v1/host-bindings', {
    host: `${name}.example.test`,
    scheme: 'bearer',
    credential_ref: 'vault://user/key',
  });
const install = (name: string, version = '1.0.0', more: object = {}) => {
  const connector = { ...ITEMS_SPEC.connector, fqn: `acme/${name}`, version, ...more };
  return user.call('POST', '/v1/connectors', itemsSpec(version, { connector }));
};
const addServer = (name: string, more: object = {}) =>
  user.call('POST', '/v1/mcp-servers', { name, mode: 'remote', url: 'https://mcp.example.test/mcp', ...more });
const addTunnel = (name: string) => user.call('POST', '/v1/tunnel-hosts', { host: `${name}.example.test` });
const createToken = (name: string) =>
  user.call('POST', '/v1/tokens', { name, scopes: ['account:read'], expires_in_days: 1 });
async function enrol(): Promise<Response> {
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  return sidecar.enrol(user.tokens.access_token);
}
const refusal = async (reply: Response | Promise<Response>) => {
  const answer = await reply;
  return { status: answer.status, ...errorBody.parse(await answer.json()).error };
};
async function countRows(table: string): Promise<number> {
  const { rows } = await control.context.database.client.execute(`SELECT count(*) AS n FROM ${table}`);
  return z.number().parse(rows[0]?.['n']);
}
const run = (sql: string, args: string[] = []) => control.context.database.client.execute({ sql, args });
const makeAdmin = ({ caller }: HostedUser) => run(`UPDATE users SET role = 'admin' WHERE id = ?`, [caller.userId]);

const KINDS: readonly (readonly [kind: QuotaKind, table: string, create: (name: string) => Promise<Response>])[] = [
  ['secrets', 'secrets', (name) => storeSecret(name)],
  ['bindings', 'host_bindings', (name) => bind(name)],
  ['connectors', 'connectors', (name) => install(name)],
  ['mcp_servers', 'mcp_servers', (name) => addServer(name)],
  ['tunnel_hosts', 'tunnel_hosts', addTunnel],
  ['personal_tokens', 'personal_tokens', createToken],
  ['sidecars', 'sidecars', enrol],
];

describe('what an account may keep', () => {
  test.each(KINDS)('of %s is limited, and the refusal says how to make room', async (kind, table, create) => {
    for (let index = 0; index < most(kind); index += 1) expect((await create(`n${index}`)).status).toBe(201);
    const refused = await refusal(create('one-more'));
    expect(refused).toMatchObject({
      status: 409,
      code: 'limit_reached',
      details: { kind, of: 'account', limit: most(kind), used: most(kind) },
    });
    expect(refused.message).toContain(QUOTAS[kind].fix);
    expect(await countRows(table)).toBe(most(kind));
  });

  test.each(KINDS)('of %s is not passed by creations at the same moment', async (kind, table, create) => {
    const names = Array.from({ length: most(kind) + 8 }, (_, index) => `n${index}`);
    const outcomes = await Promise.all(names.map((name) => outcome(create(name))));
    expect(outcomes.filter((each) => each === 201)).toHaveLength(most(kind));
    expect(outcomes.filter((each) => each === 'limit_reached')).toHaveLength(8);
    expect(await countRows(table)).toBe(most(kind));
  });

  test('does not depend on what others keep, and a deletion makes room', async () => {
    const other = await hostedUser(control, user.caller.enterpriseId);
    for (let index = 0; index < most('secrets'); index += 1) await storeSecret(`n${index}`);
    expect(await outcome(storeSecret('more'))).toBe('limit_reached');
    expect(await outcome(storeSecret('theirs', 'v', other))).toBe(201);
    expect((await user.call('DELETE', '/v1/secrets/user/n0')).status).toBe(204);
    expect(await outcome(storeSecret('more'))).toBe(201);
  });

  test('of secrets is counted for the enterprise itself too', async () => {
    await makeAdmin(user);
    for (let index = 0; index < most('secrets'); index += 1) await storeSecret(`n${index}`, 'v', user, 'enterprise');
    const refused = await refusal(storeSecret('more', 'v', user, 'enterprise'));
    expect(refused.details).toMatchObject({ kind: 'secrets', of: 'enterprise' });
    expect(await outcome(storeSecret('own'))).toBe(201);
  });

  test('of sidecars has room again once one is revoked', async () => {
    const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
    await sidecar.enrol(user.tokens.access_token);
    expect(await outcome(enrol())).toBe('limit_reached');
    expect((await user.call('DELETE', `/v1/sidecars/${sidecar.enrolled.sidecar_id}`)).status).toBe(204);
    expect(await outcome(enrol())).toBe(201);
  });

  test('of personal tokens has room again once one has expired', async () => {
    const expires = [new Date(control.clock.ms + 1_000).toISOString()];
    await createToken('one');
    expect(await outcome(createToken('two'))).toBe('limit_reached');
    await run(`UPDATE personal_tokens SET expires_at = ?`, expires);
    control.clock.ms += 2_000;
    expect(await outcome(createToken('two'))).toBe(201);
  });
});

describe('the bytes that an account may keep', () => {
  const BIG = 'x'.repeat(20 * 1024);

  test('of secrets are limited, whether a value is new or replaces one', async () => {
    await storeSecret('one', BIG);
    await storeSecret('two', BIG);
    await storeSecret('three');
    const refused = await refusal(storeSecret('three', BIG));
    expect(refused).toMatchObject({ code: 'limit_reached', details: { kind: 'secret_bytes', of: 'account' } });
    expect(refused.message).toMatch(/MiB of sealed secrets, and may have 0\.06 MiB: this would add 0\.03 MiB/);
    expect(await outcome(storeSecret('four', BIG))).toBe('limit_reached');
    expect(await outcome(storeSecret('one', BIG))).toBe(200);
  });

  test('may always become fewer, also where they are too many', async () => {
    await storeSecret('one', BIG);
    await storeSecret('two', BIG);
    Object.assign(control.context, { quotaPercent: 0.01 });
    expect(await outcome(storeSecret('one', `${BIG}x`.repeat(2)))).toBe('limit_reached');
    expect(await outcome(storeSecret('one', 'v'))).toBe(200);
  });

  test('of definitions are limited together: those of connectors, servers and bindings', async () => {
    const description = 'd'.repeat(2_000);
    expect(await outcome(install('one', '1.0.0', { description }))).toBe(201);
    expect(await outcome(addServer('hub', { headers: { 'X-Long': 'h'.repeat(3_000) } }))).toBe(201);
    const refused = await refusal(install('one', '1.1.0', { description: description.repeat(2) }));
    expect(refused).toMatchObject({ code: 'limit_reached', details: { kind: 'definition_bytes', of: 'account' } });
    expect(await outcome(install('one', '1.1.0', { description: 'short' }))).toBe(200);
    expect(await outcome(install('one', '1.2.0', { description }))).toBe(200);
  });
});

describe('what all people of an enterprise may keep', () => {
  test('is limited together, whoever of them adds more', async () => {
    Object.assign(control.context, { quotaPercent: 0.003 });
    const { enterpriseId } = user.caller;
    const colleagues = await Promise.all(Array.from({ length: 4 }, () => hostedUser(control, enterpriseId)));
    const outcomes = await Promise.all(colleagues.map((by) => outcome(storeSecret('own', 'v', by))));
    expect(outcomes.filter((each) => each === 201)).toHaveLength(3);
    expect(outcomes).toContain('limit_reached');
    const refused = await refusal(storeSecret('own'));
    expect(refused.details).toEqual({ kind: 'all_secrets', of: 'everybody', limit: 3, used: 3 });
    expect(await outcome(storeSecret('own', 'v', await hostedUser(control)))).toBe(201);
  });
});

describe('what a team may keep', () => {
  let owner: HostedUser;
  let member: HostedUser;
  let keys: readonly object[];
  beforeEach(async () => {
    ({ owner, member } = await ownerWithMember(control));
    const { publicKey } = await generateKeyPair('ES256', { extractable: true });
    keys = [{ ...(await exportJWK(publicKey)), kid: 'one' }];
  });

  async function shareBinding(name: string, by = owner, to = member): Promise<Response> {
    await storeSecret('shared', 'v', by);
    const shown = {
      host: `${name}.example.test`,
      scheme: 'bearer',
      credential_ref: 'vault://user/shared',
      effect: 'read',
    };
    const { id } = withId.parse(await (await by.call('POST', '/v1/host-bindings', shown)).json());
    return by.call('POST', '/v1/shares', { binding_id: id, user_id: to.caller.userId });
  }

  const TEAM_KINDS: readonly (readonly [QuotaKind, string, (name: string) => Promise<Response>])[] = [
    ['groups', 'everybody', (name) => owner.call('POST', '/v1/groups', { name })],
    ['invitations', 'everybody', (name) => owner.call('POST', '/v1/invitations', { email: `${name}@acme.test` })],
    [
      'service_accounts',
      'everybody',
      (name) =>
        owner.call('POST', '/v1/service-accounts', {
          name,
          issuer: 'https://id.ci.test',
          claims: { repository: 'acme/app' },
          keys,
        }),
    ],
    ['shares', 'account', (name) => shareBinding(name)],
  ];
  test.each(TEAM_KINDS)('of %s is limited, and the refusal says how to make room', async (kind, of, create) => {
    for (let index = 0; index < most(kind); index += 1) expect((await create(`n${index}`)).status).toBe(201);
    const refused = await refusal(create('one-more'));
    expect(refused).toMatchObject({ status: 409, code: 'limit_reached', details: { kind, of, limit: most(kind) } });
    expect(refused.message).toContain(QUOTAS[kind].fix);
  });

  test('counts those who joined: nobody else can, and a service account is one of them', async () => {
    Object.assign(control.context, { quotaPercent: (2 / QUOTAS.members.most) * 100 });
    const policy = { name: 'deploy', issuer: 'https://id.ci.test', claims: { repository: 'acme/app' }, keys };
    const refused = await refusal(owner.call('POST', '/v1/service-accounts', policy));
    expect(refused).toMatchObject({ code: 'limit_reached', details: { kind: 'members', of: 'everybody', limit: 2 } });
    expect((await owner.call('DELETE', `/v1/members/${member.caller.userId}`)).status).toBeLessThan(300);
    expect((await owner.call('POST', '/v1/service-accounts', policy)).status).toBe(201);
  });

  test('of shares that a person accepts is limited for that person', async () => {
    Object.assign(control.context, { quotaPercent: 0.4 });
    for (const name of ['one', 'two']) expect((await shareBinding(name, member, owner)).status).toBe(201);
    Object.assign(control.context, { quotaPercent: PERCENT });
    const received = await parseReply(sharesPage, owner.call('GET', '/v1/shares?list=received'));
    const accept = (share: (typeof received.items)[number] | undefined): Promise<Response> =>
      owner.call('POST', `/v1/shares/${share?.id}/accept`, { revision: share?.binding?.revision });
    const [first, second] = received.items;
    expect((await accept(first)).status).toBe(200);
    expect((await refusal(accept(second))).details).toMatchObject({ kind: 'accepted_shares', limit: 1, used: 1 });
  });
});

const session = (index: number) => ({
  id: `ses_${index}`,
  tokenHash: `hash ${index}`,
  userId: user.caller.userId,
  provider: 'general',
  client: 'Browser',
  createdAt: '2026',
  lastSeenAt: String(1_000 + index),
  expiresAt: 9_999_999_999,
});

test('a person can always sign in to one more browser: the one that was used longest ago is signed out', async () => {
  const { database } = control.context;
  for (let index = 0; index < 102; index += 1) await database.write(insertBrowserSession(database, session(index), 0));
  expect(await countRows('browser_sessions')).toBe(100);
  const { rows } = await run('SELECT min(last_seen_at) AS oldest FROM browser_sessions');
  expect(rows[0]?.['oldest']).toBe('1002');
});

const shown = async (who: HostedUser) => (await parseReply(usageReply, who.call('GET', '/v1/usage'))).items;

const used = async (who: HostedUser) =>
  (await shown(who)).filter(({ what }) => what === 'secrets').map(({ of, used: n, limit }) => [of, n, limit]);

test('the program tells how much is kept: a member sees its own, an admin the enterprise’s too', async () => {
  const { owner, member } = await ownerWithMember(control);
  await storeSecret('one', 'v', member);
  await storeSecret('two', 'v', owner, 'enterprise');
  expect(await used(member)).toEqual([['account', 1, 5]]);
  expect(await used(owner)).toEqual([
    ['account', 0, 5],
    ['enterprise', 1, 5],
    ['everybody', 2, 100],
  ]);
});
