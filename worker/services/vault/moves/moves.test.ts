import { CompactEncrypt, compactVerify, generateKeyPair, exportJWK, importJWK } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  callAs,
  hostedUser,
  type HostedUser,
  outcome,
  signInProgram,
  startHosted,
} from '../../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply, startInProcess } from '../../../../e2e/runtimes/in_process.ts';
import { Secret } from '../../../../shared/model/secret.ts';
import {
  type MoveKeyPayload,
  moveKey,
  moveKeyPayload,
  type MoveReply,
  moveReply,
  type MoveTarget,
  VAULT_MOVE_SECONDS,
  VAULT_MOVE_TYP,
  vaultMove,
} from '../../../../shared/wire/vault_moves.ts';
import { secretsPage } from '../../../../shared/wire/secrets.ts';
import { sourcesPage } from '../../../../shared/wire/secret_sources.ts';
import { createdToken } from '../../../../shared/wire/tokens.ts';
import { ITEMS_SPEC, itemsSpec } from '../../../../e2e/runtimes/connector_samples.ts';
import { readInstallation } from '../../../store/installation.ts';
import { findAccount } from '../../../store/accounts.ts';
import { storeConnectorCredential } from '../../connectors/connector_credentials.ts';
import { storeMcpCredential } from '../../mcp/mcp_credentials.ts';
import { sealForMove, type SealRequest } from './seal_moved.ts';

const VALUE = 'planted-value-of-the-move';
const withId = z.object({ id: z.string() });
const withPaths = z.object({ items: z.array(z.object({ path: z.string() })) });

let local: InProcess;
let hosted: InProcess;
let user: HostedUser;
let move: { readonly ticket: string; readonly payload: MoveKeyPayload };

async function begin(who: HostedUser) {
  const begun = await parseReply(vaultMove, who.call('POST', '/v1/vault-moves'));
  const { payload } = await compactVerify(
    begun.signed,
    await importJWK({ kty: 'OKP', crv: 'Ed25519', x: begun.control_plane_key.x }, 'EdDSA'),
  );
  return { ticket: begun.ticket, payload: moveKeyPayload.parse(JSON.parse(new TextDecoder().decode(payload))) };
}

/** Seals values of the local vault as `svc vault move` does. */
async function seal(action: 'compare' | 'store', target: MoveTarget, to = target, changes: Partial<SealRequest> = {}) {
  const { context } = local;
  const account = await findAccount(
    context.database,
    (await readInstallation(context.database)).get('local_user_id') ?? '',
  );
  const caller = { userId: account!.user.id, enterpriseId: account!.enterprise.id };
  const { user_id, key } = move.payload;
  const values = [{ from: target, to }];
  const sealed = await sealForMove(context, caller, {
    action,
    host: 'to.example.test',
    user_id,
    key,
    with_ends: true,
    values,
    ...changes,
  });
  if (!sealed.ok) throw new Error(sealed.error.message);
  return sealed.value[0] ?? { sealed: '', proof: 'nothing was sealed' };
}

const send = (sealed: string, who = user, ticket = move.ticket) =>
  who.call('POST', '/v1/vault-moves/values', { ticket, sealed });
const answered = async (sealed: string): Promise<MoveReply> => parseReply(moveReply, send(sealed));
const secretAt = (path: string): MoveTarget => ({ kind: 'secret', path });

const NOWHERE = secretAt('user/nowhere');
const made = async (control: InProcess['asUser'], path: string, body: object): Promise<string> =>
  (await parseReply(withId, control('POST', path, body))).id;
const jwe = (header: object, body: unknown) =>
  importJWK(move.payload.key, 'ECDH-ES').then((key) =>
    new CompactEncrypt(new TextEncoder().encode(JSON.stringify(body)))
      .setProtectedHeader({
        alg: 'ECDH-ES',
        enc: 'A256GCM',
        typ: VAULT_MOVE_TYP,
        user: user.caller.userId,
        ...header,
      })
      .encrypt(key),
  );

const RACED = { ...ITEMS_SPEC.connector, fqn: 'acme/raced' };

let count = 0;
async function newSecret(value = VALUE): Promise<MoveTarget> {
  count += 1;
  const path = `user/moved-${count}`;
  await local.asUser('POST', '/v1/secrets', { path, value });
  return secretAt(path);
}

async function eventsOf(control: InProcess, type: string): Promise<string[]> {
  const { rows } = await control.context.database.client.execute({
    sql: 'SELECT data FROM audit_events WHERE type = ?',
    args: [type],
  });
  return rows.map(({ data }) => JSON.stringify(data));
}

beforeAll(async () => {
  local = await startInProcess();
  hosted = await startHosted();
  user = await hostedUser(hosted);
});
afterAll(async () => {
  await local.stop();
  await hosted.stop();
});
beforeEach(async () => {
  move = await begin(user);
});

describe('a value that moves', () => {
  test('is stored there, and the proof is about what was read back', async () => {
    const target = await newSecret();
    const { sealed, proof } = await seal('store', target);
    expect(await answered(sealed)).toEqual({ state: 'stored', proof });
    const compared = await seal('compare', target);
    expect(await answered(compared.sealed)).toEqual({ state: 'same', proof: compared.proof });
  });

  test('takes its end with it, as it is stored when it is sealed', async () => {
    const target = await newSecret();
    const path = target.kind === 'secret' ? target.path : '';
    const end = '2027-03-04T05:06:07.000Z';
    await local.asUser('POST', '/v1/secrets', { path, value: 'another-value', expires_at: end });
    expect((await answered((await seal('store', target)).sealed)).state).toBe('stored');
    expect((await parseReply(secretsPage, user.call('GET', '/v1/secrets'))).items).toContainEqual(
      expect.objectContaining({ path, expires_at: end }),
    );
  });

  test('goes without its end to a control plane of an earlier version, which would refuse it', async () => {
    const target = await newSecret();
    const path = target.kind === 'secret' ? target.path : '';
    await local.asUser('POST', '/v1/secrets', { path, value: VALUE, expires_at: '2027-03-04T05:06:07.000Z' });
    await answered((await seal('store', target, target, { with_ends: false })).sealed);
    const { items } = await parseReply(secretsPage, user.call('GET', '/v1/secrets'));
    expect(items.find((secret) => secret.path === path)).not.toHaveProperty('expires_at');
  });

  test('is in no text that leaves the vault, and both audit logs have the move', async () => {
    const target = await newSecret();
    const { sealed, proof } = await seal('store', target);
    expect(sealed + proof).not.toContain(VALUE);
    expect(Buffer.from(sealed.split('.')[3] ?? '', 'base64url').includes(VALUE)).toBe(false);
    await answered(sealed);
    const path = target.kind === 'secret' ? target.path : '';
    expect((await eventsOf(local, 'control.vault.moved_out')).at(-1)).toContain(`vault://${path}`);
    expect((await eventsOf(local, 'control.vault.moved_out')).at(-1)).toContain('to.example.test');
    expect((await eventsOf(hosted, 'control.vault.moved_in')).at(-1)).toContain(`vault://${path}`);
    expect((await hosted.databaseBytes()).includes(VALUE)).toBe(false);
  });

  test('replaces nothing that is there, and learns nothing of it', async () => {
    const target = await newSecret();
    await user.call('POST', '/v1/secrets', { ...target, kind: undefined, value: 'another value' });
    for (const action of ['compare', 'store'] as const) {
      const { sealed } = await seal(action, target);
      expect(await answered(sealed)).toEqual({ state: 'different', proof: null });
    }
    const again = await parseReply(moveReply, send((await seal('store', target)).sealed));
    expect(again.state).toBe('different');
  });

  test('replaces no secret that came between the comparison and the write', async () => {
    const { storeSecret } = await import('../secrets.ts');
    const input = { path: 'user/raced', value: new Secret('first'), owner: 'personal' as const };
    expect((await storeSecret(hosted.context, user.caller, { ...input, onlyNew: true })).ok).toBe(true);
    const second = await storeSecret(hosted.context, user.caller, {
      ...input,
      value: new Secret(VALUE),
      onlyNew: true,
    });
    expect(second.ok ? null : second.error.code).toBe('conflict');
  });

  test('replaces no credential of a connector or a server that came between the comparison and the write', async () => {
    const id = await made(user.call, '/v1/connectors', itemsSpec('1.0.0', { connector: RACED }));
    const serverId = await made(user.call, '/v1/mcp-servers', { name: 'raced', command: ['a-server'] });
    const onlyNew = { onlyNew: true };
    const stores = [
      (value: string) => storeConnectorCredential(hosted.context, user.caller, id, { kind: 'api_key', value }, onlyNew),
      (value: string) =>
        storeMcpCredential(hosted.context, user.caller, serverId, {
          name: 'TOKEN',
          value: new Secret(value),
          ...onlyNew,
        }),
    ];
    for (const store of stores) {
      const both = await Promise.all([store('first'), store(VALUE)]);
      expect(both.filter((one) => one.ok)).toHaveLength(1);
      const third = await store('third');
      expect(third.ok ? null : third.error.code).toBe('conflict');
    }
  });

  test('is compared by a digest only: a comparison stores nothing', async () => {
    const target = await newSecret();
    const { sealed } = await seal('compare', target);
    expect(await answered(sealed)).toEqual({ state: 'absent', proof: null });
    expect(await eventsOf(local, 'control.vault.moved_out')).not.toContainEqual(
      expect.stringContaining(`moved-${count}`),
    );
  });

  test('may be sent again, after an answer that got lost', async () => {
    const target = await newSecret();
    const { sealed, proof } = await seal('store', target);
    await answered(sealed);
    expect(await answered(sealed)).toEqual({ state: 'same', proof });
  });

  test('may be the key of a source, with its fields', async () => {
    const source = {
      kind: 'client_credentials' as const,
      token_url: 'https://auth.example.test/token',
      client_id: 'client',
      client_authentication: 'post' as const,
      scopes: [],
    };
    await local.asUser('POST', '/v1/secret-sources', { path: 'user/minted', source, key: VALUE });
    const { items } = await parseReply(sourcesPage, local.asUser('GET', '/v1/secret-sources'));
    const target: MoveTarget = { kind: 'source', path: 'user/minted', source: items[0]!.source };
    const { sealed, proof } = await seal('store', target);
    expect(await answered(sealed)).toEqual({ state: 'stored', proof });
    const narrower = { ...source, path: 'user/minted', source: { ...source, client_id: 'other' }, key: VALUE };
    await local.asUser('POST', '/v1/secret-sources', { path: narrower.path, source: narrower.source, key: VALUE });
    const changed = await seal('compare', target);
    expect((await answered(changed.sealed)).state).toBe('different');
    const asSecret = await seal('compare', secretAt('user/minted'));
    expect(asSecret.proof).toBe('nothing was sealed');
  });

  test('may be the credential of a connector or of a server', async () => {
    const ids = await Promise.all([local.asUser, user.call].map((call) => made(call, '/v1/connectors', ITEMS_SPEC)));
    await local.asUser('PUT', `/v1/connectors/${ids[0]}/credential`, { kind: 'api_key', value: VALUE });
    const [from = NOWHERE, to] = ids.map((id) => ({ kind: 'connector' as const, connector_id: id }));
    const connector = await seal('store', from, to);
    expect(await answered(connector.sealed)).toEqual({ state: 'stored', proof: connector.proof });
    const server = { name: 'moved', command: ['a-server'], env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } };
    const servers = await Promise.all([local.asUser, user.call].map((call) => made(call, '/v1/mcp-servers', server)));
    const body = { env_var_name: 'TOKEN', secret_value: VALUE };
    await local.asUser('POST', `/v1/mcp-servers/${servers[0]}/credentials`, body);
    const places = servers.map((id) => ({ kind: 'mcp_server' as const, server_id: id, name: 'TOKEN' }));
    const sent = await seal('store', places[0] ?? NOWHERE, places[1]);
    expect(await answered(sent.sealed)).toEqual({ state: 'stored', proof: sent.proof });
  });
});

describe('an attacker', () => {
  test('with another account cannot use the ticket, a ticket of their own, or the value', async () => {
    const target = await newSecret();
    const { sealed } = await seal('store', target);
    const stranger = await hostedUser(hosted);
    const other = await begin(stranger);
    expect(await outcome(send(sealed, stranger))).toBe('invalid_input');
    expect(await outcome(send(sealed, stranger, other.ticket))).toBe('invalid_input');
    expect(await outcome(send(sealed, user, other.ticket))).toBe('invalid_input');
    const forStranger = await seal('store', target, target, { key: other.payload.key, user_id: move.payload.user_id });
    expect(await outcome(send(forStranger.sealed, stranger, other.ticket))).toBe('invalid_input');
    const toStranger = await seal('store', target, target, { user_id: stranger.caller.userId });
    expect(await outcome(send(toStranger.sealed, stranger))).toBe('invalid_input');
    const { items } = await parseReply(withPaths, stranger.call('GET', '/v1/secrets'));
    expect(items).toEqual([]);
  });

  test('cannot put a value at the connector or server of somebody else', async () => {
    const owner = await hostedUser(hosted);
    const { id } = await parseReply(withId, owner.call('POST', '/v1/connectors', ITEMS_SPEC));
    const target = await newSecret();
    const { sealed } = await seal('store', target, { kind: 'connector', connector_id: id });
    expect(await outcome(send(sealed))).toBe('not_found');
    const server = await parseReply(withId, owner.call('POST', '/v1/mcp-servers', { name: 'x', command: ['x'] }));
    const other = await seal('store', target, { kind: 'mcp_server', server_id: server.id, name: 'TOKEN' });
    expect(await outcome(send(other.sealed))).toBe('not_found');
  });

  test('replaces nothing of the enterprise, also as an admin who may', async () => {
    const admin = await hostedUser(hosted);
    await hosted.context.database.client.execute({
      sql: `UPDATE users SET role = 'owner' WHERE id = ?`,
      args: [admin.caller.userId],
    });
    move = await begin(admin);
    const { id } = await parseReply(withId, admin.call('POST', '/v1/connectors?owner=enterprise', ITEMS_SPEC));
    const target = await newSecret();
    const { sealed } = await seal('store', target, { kind: 'connector', connector_id: id });
    expect(await outcome(send(sealed, admin))).toBe('not_found');
    const body = { name: 'x', command: ['x'], owner: 'enterprise' };
    const server = await parseReply(withId, admin.call('POST', '/v1/mcp-servers', body));
    const other = await seal('store', target, { kind: 'mcp_server', server_id: server.id, name: 'TOKEN' });
    expect(await outcome(send(other.sealed, admin))).toBe('not_found');
  });

  test('cannot use a ticket after its hour, or with another end', async () => {
    const target = await newSecret();
    const { sealed } = await seal('store', target);
    const [until = '', ...rest] = move.ticket.split('.');
    expect(await outcome(send(sealed, user, [Number(until) + 3_600, ...rest].join('.')))).toBe('invalid_input');
    hosted.clock.ms += VAULT_MOVE_SECONDS * 1000;
    const { access_token: token } = await signInProgram(hosted, user.caller);
    const body = { ticket: move.ticket, sealed };
    expect(await outcome(callAs(hosted, token, 'POST', '/v1/vault-moves/values', body))).toBe('invalid_input');
    hosted.clock.ms -= VAULT_MOVE_SECONDS * 1000;
    expect(await outcome(send(sealed))).toBe(200);
  });

  test('who answers in the place of the control plane cannot prove what they do not have', async () => {
    const target = await newSecret();
    const pair = await generateKeyPair('ECDH-ES', { crv: 'P-256', extractable: true });
    const { kty, crv, x, y } = await exportJWK(pair.publicKey);
    const offered = await seal('compare', target, target, { key: moveKey.parse({ kty, crv, x, y }) });
    // All that a comparison has is the digest of the offer and its key; the proof is another digest.
    const { compactDecrypt } = await import('jose');
    const { plaintext } = await compactDecrypt(offered.sealed, pair.privateKey);
    const text = new TextDecoder().decode(plaintext);
    expect(text).not.toContain(VALUE);
    expect(text).not.toContain(offered.proof);
    expect(JSON.parse(text).digest).not.toBe(offered.proof);
  });

  test('cannot send what is no value of a move', async () => {
    const value = { action: 'store', target: secretAt('user/hostile'), digest_key: 'A'.repeat(43), value: 'x' };
    expect(await outcome(send(await jwe({}, value)))).toBe(200);
    const hostile: readonly (readonly [object, unknown])[] = [
      [{ typ: 'svc-login-tokens+jwe' }, value],
      [{ user: `usr_${'0'.repeat(26)}` }, value],
      [{}, { ...value, target: secretAt('connectors/acme/items') }],
      [{}, { ...value, target: { kind: 'secret', path: 'user/x', owner: 'enterprise' } }],
      [{}, { ...value, digest_key: 'short' }],
      [{}, { ...value, value: '' }],
      [{}, { ...value, extra: 1 }],
      [{}, null],
    ];
    for (const [header, body] of hostile) {
      expect([body, await outcome(send(await jwe(header, body)))]).toEqual([body, 'invalid_input']);
    }
    for (const text of ['', 'a.b.c.d.e', VALUE]) expect(await outcome(send(text))).toBe('invalid_input');
  });

  test('with a personal token cannot move anything', async () => {
    const body = { name: 'all', scopes: ['secrets:write', 'connectors:write', 'mcp-servers:write'] };
    const { token } = await parseReply(createdToken, user.call('POST', '/v1/tokens', body));
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const reply = hosted.send('/v1/vault-moves', { method: 'POST', headers });
    expect((await reply).status).toBe(403);
  });
});
