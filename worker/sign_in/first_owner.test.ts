import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PUBLIC_URL, outcome, startHosted } from '../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../e2e/runtimes/in_process.ts';
import { meReply } from '../../shared/wire/account.ts';
import { exchangeSignInCode } from '../services/people/sign_in.ts';
import { findAccount } from '../store/accounts.ts';
import { makeFirstOwner } from './first_owner.ts';
import { passwordIdentity } from './password_identity.ts';
import { signInIdentity } from './sign_in_identity.ts';

const ADDRESS = 'ada@acme.test';

let control: InProcess;
beforeEach(async () => {
  control = await startHosted();
});
afterEach(() => control.stop());

const make = (email = ADDRESS, enterprise: string | null = 'Acme') =>
  makeFirstOwner(control.context, { email, enterprise });

async function made() {
  const owner = await make();
  if (!owner.ok) throw new Error(owner.error.message);
  return owner.value;
}

/** Opens the link in a browser; the cookie of its session, or null. */
async function open(url: string): Promise<string | null> {
  const reply = await control.send(url.slice(PUBLIC_URL.length));
  return reply.headers.get('set-cookie')?.split(';')[0] ?? null;
}

async function signIn(email: string, emailVerified = true) {
  control.clock.ms += 1000;
  const identity = { ...passwordIdentity(email, 'Ada'), emailVerified };
  const signedIn = await signInIdentity(control.context, identity, { provider: 'password', client: '' });
  return signedIn.ok ? (await findAccount(control.context.database, signedIn.value.userId))!.user : signedIn.error.code;
}

describe('the first owner', () => {
  test('owns a new enterprise, and the link signs one browser in, once', async () => {
    const owner = await made();
    const cookie = await open(owner.url);
    const me = await parseReply(meReply, control.send('/v1/me', { headers: { cookie: cookie ?? '' } }));
    expect(me).toMatchObject({ id: owner.userId, enterprise_id: owner.enterpriseId, role: 'owner', email: ADDRESS });
    expect(await open(owner.url)).toBeNull();
    const { enterprise } = (await findAccount(control.context.database, owner.userId))!;
    expect(enterprise).toMatchObject({ name: 'Acme', slug: 'ada-acme' });
  });

  test('and each link and its use are in the audit log of the enterprise', async () => {
    const owner = await made();
    await open(owner.url);
    const { rows } = await control.context.database.client.execute(
      `SELECT type, actor FROM audit_events WHERE enterprise_id = '${owner.enterpriseId}' ORDER BY position`,
    );
    expect(rows.map(({ type, actor }) => [type, actor])).toEqual([
      ['control.enterprise.created', null],
      ['control.user.created', null],
      ['control.sign_in_link.created', null],
      ['control.user.signed_in', owner.userId],
    ]);
  });

  test('is who later signs in with a proof of the address, and nobody with an unproven one', async () => {
    const owner = await made();
    expect(await signIn(ADDRESS, false)).not.toMatchObject({ id: owner.userId });
    expect(await signIn('ADA@elsewhere.test')).not.toMatchObject({ id: owner.userId });
    await control.context.database.client.execute('DELETE FROM identities');
    expect(await signIn(ADDRESS)).toMatchObject({ id: owner.userId, role: 'owner' });
  });

  test('gets another link until it has signed in by a way of its own', async () => {
    const first = await made();
    const again = await made();
    expect(again).toMatchObject({ userId: first.userId, enterpriseId: first.enterpriseId, isNew: false });
    expect(await open(again.url)).not.toBeNull();
    await signIn(ADDRESS);
    expect(await make()).toMatchObject({ ok: false, error: { code: 'identity_taken' } });
  });

  test('may set how the enterprise signs in, though it has no way itself yet', async () => {
    const cookie = (await open((await made()).url)) ?? '';
    const headers = { cookie, origin: PUBLIC_URL, 'content-type': 'application/json' };
    const body = JSON.stringify({
      name: 'Acme',
      billing_email: null,
      allowed_domains: [],
      allowed_providers: null,
      sso_required: false,
      oidc: null,
      saml: null,
    });
    expect(await outcome(control.send('/v1/enterprise', { method: 'PUT', headers, body }))).toBe(200);
    await signIn(ADDRESS);
    const shutOut = body.replace('"allowed_domains":[]', '"allowed_domains":["other.test"]');
    expect(await outcome(control.send('/v1/enterprise', { method: 'PUT', headers, body: shutOut }))).toBe(
      'would_lock_out',
    );
  });
});

describe('no link is made', () => {
  test('to an account that exists: of the address, or of an identity that proves it', async () => {
    await signIn(ADDRESS);
    expect(await make()).toMatchObject({ ok: false, error: { code: 'identity_taken' } });
    await control.context.database.client.execute('UPDATE people SET verified_email = NULL');
    expect(await make()).toMatchObject({ ok: false, error: { code: 'identity_taken' } });
  });

  test('to an owner who was suspended, or is no owner any more', async () => {
    const { userId } = await made();
    for (const change of [`suspended_at = '2026'`, `suspended_at = NULL, role = 'member'`]) {
      await control.context.database.client.execute(`UPDATE users SET ${change} WHERE id = '${userId}'`);
      expect([change, await make()]).toMatchObject([change, { ok: false, error: { code: 'identity_taken' } }]);
    }
  });

  test('for what is no address, without a public URL, and on a machine of one person', async () => {
    expect(await make('ada')).toMatchObject({ ok: false, error: { code: 'invalid_input' } });
    const noUrl = { ...control.context, publicUrl: null };
    expect(await makeFirstOwner(noUrl, { email: ADDRESS, enterprise: null })).toMatchObject({
      error: { code: 'public_url_missing' },
    });
    const local = await startInProcess();
    const onMachine = { ...local.context, publicUrl: PUBLIC_URL };
    expect(await makeFirstOwner(onMachine, { email: ADDRESS, enterprise: null })).toMatchObject({
      error: { code: 'not_found' },
    });
    await local.stop();
  });

  test('that still works after ten minutes', async () => {
    const { url } = await made();
    control.clock.ms += 10 * 60_000;
    expect(await exchangeSignInCode(control.context, url.split('/').at(-1) ?? '', '')).toMatchObject({
      error: { code: 'link_expired' },
    });
  });
});
