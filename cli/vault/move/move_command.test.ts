import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CompactSign, exportJWK, generateKeyPair, type CryptoKey } from 'jose';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MoveKeyPayload } from '../../../shared/wire/vault_moves.ts';
import { VAULT_MOVE_KEY_TYP } from '../../../shared/wire/vault_moves.ts';
import { type Answer, CONTROL_URL, runCli, TestHome } from '../../testing/run_cli.ts';
import { httpClient } from '../../terminal/http_client.ts';
import { sendSealed } from './send_values.ts';

const HOSTED = 'https://control.example.com';
const ID = '01m7yjbz4dz98vffmftfxp52e5';
const [LOCAL_ID, HOSTED_ID] = [`cpl_${ID}`, `cpl_${ID.replace(/5$/, '6')}`];
const PAYLOAD: MoveKeyPayload = {
  control_plane_id: HOSTED_ID,
  user_id: `usr_${ID}`,
  email: 'mara@example.com',
  enterprise_id: `ent_${ID}`,
  enterprise_name: 'Example GmbH',
  key: { kty: 'EC', crv: 'P-256', x: 'x'.repeat(43), y: 'y'.repeat(43) },
  expires_at: '2026-01-01T13:00:00.000Z',
};

let home: TestHome;
let signing: CryptoKey;
let x = '';
beforeEach(async () => {
  home = new TestHome();
  const pair = await generateKeyPair('Ed25519', { extractable: true });
  signing = pair.privateKey;
  x = (await exportJWK(pair.publicKey)).x ?? '';
  const signIn = { control_url: HOSTED, access_token: 'hosted-token', access_expires_at_ms: 9e15, refresh_token: 'r' };
  mkdirSync(join(home.path, 'hosted'), { mode: 0o700 });
  home.write(join('hosted', 'sign_in.json'), JSON.stringify({ version: 1, ...signIn }));
});
afterEach(() => home.remove());

const signed = (payload: object, typ = VAULT_MOVE_KEY_TYP, key = signing) =>
  new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'EdDSA', typ })
    .sign(key);

/** A hosted control plane that answers the beginning of a move with this, and a local one with nothing in it. */
function answering(jws: string, things: Readonly<Record<string, unknown>> = {}): Answer {
  const control_plane_key = { kty: 'OKP', crv: 'Ed25519', x };
  return ({ method, url }) => {
    if (url.pathname === '/v1/vault-moves' && method === 'POST') {
      const body = { ticket: 't', control_plane_id: HOSTED_ID, control_plane_key, signed: jws };
      return { status: 201, body };
    }
    if (url.pathname === '/v1/audit-events/heads') {
      const reply = { control_plane_id: LOCAL_ID, control_plane_key, enterprise_id: `ent_${ID}`, heads: [] };
      return { status: 200, body: { ...reply, taken_at: PAYLOAD.expires_at } };
    }
    const items = url.origin === CONTROL_URL ? (things[url.pathname] ?? []) : [];
    return { status: 200, body: { items, next_cursor: null } };
  };
}
const dryRun = (answer: Answer, ...args: string[]) =>
  runCli(home, ['vault', 'move', '--to', HOSTED, '--dry-run', ...args], { answer });

/** A server that gives this answer to every value. */
function saying(reply: object): Parameters<typeof sendSealed>[0] {
  const fetch = async () => new Response(JSON.stringify(reply));
  return { client: httpClient({ origin: HOSTED, token: null, name: 'x', fetch, startFix: '' }), ticket: 't' };
}

describe('svc vault move', () => {
  test('says where, as whom, and with which key; sends the hosted token nowhere else', async () => {
    const host = { id: `tnl_${ID}`, host: 'pinned.example.com', owner: 'personal', created_at: PAYLOAD.expires_at };
    const done = await dryRun(answering(await signed(PAYLOAD), { '/v1/tunnel-hosts': [host] }));
    expect(done.stderr).toContain(`to ${HOSTED}, as mara@example.com of Example GmbH`);
    expect(done.stderr).toContain(`Its key is ${x}`);
    expect([done.code, done.stdout]).toEqual([0, 'tunnelled host\tpinned.example.com\tnew\t\n']);
    for (const { url, authorization } of done.calls) {
      expect([url.origin, authorization === 'Bearer hosted-token']).toEqual([url.origin, url.origin === HOSTED]);
    }
    const named = await dryRun(answering(await signed(PAYLOAD)), '--key', x);
    expect([named.code, named.stderr.includes('Its key is')]).toEqual([0, false]);
  });

  test('ends before anything else if the key is not signed by the control plane', async () => {
    const { privateKey } = await generateKeyPair('Ed25519', { extractable: true });
    const hostile = [
      await signed(PAYLOAD, VAULT_MOVE_KEY_TYP, privateKey),
      await signed(PAYLOAD, 'svc-audit-head+jws'),
      await signed({ ...PAYLOAD, key: { ...PAYLOAD.key, d: 'x' } }),
      'no.jws.at-all',
    ];
    for (const jws of hostile) {
      const { code, stderr, calls } = await dryRun(answering(jws));
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('is not signed by the control plane: nothing was sent'),
      ]);
      expect(calls.map(({ url }) => url.pathname)).toEqual(['/v1/vault-moves']);
    }
  });

  test('refuses another key than the named one', async () => {
    const { code, stderr } = await dryRun(answering(await signed(PAYLOAD)), '--key', 'A'.repeat(43));
    expect([code, stderr]).toEqual([1, expect.stringContaining('which is not the one of --key')]);
  });

  test('refuses to move a vault to itself, by its address or by another name', async () => {
    const byName = await dryRun(answering(await signed({ ...PAYLOAD, control_plane_id: LOCAL_ID })));
    expect([byName.code, byName.stderr]).toEqual([2, expect.stringContaining('a vault is not moved to itself')]);
    const args = ['vault', 'move', '--to', CONTROL_URL, '--dry-run'];
    const byUrl = await runCli(home, args, { answer: answering('') });
    expect([byUrl.code, byUrl.calls]).toEqual([2, []]);
  });

  test('sends nothing over plain http to another machine', async () => {
    const args = ['vault', 'move', '--to', 'http://control.example.com', '--dry-run'];
    const { code, stderr, calls } = await runCli(home, args);
    expect([code, stderr, calls]).toEqual([2, expect.stringContaining('use https://'), []]);
  });

  test('asks, and does nothing without a terminal or --yes; --remove needs --yes', async () => {
    const command = ['vault', 'move', '--to', HOSTED];
    expect(await runCli(home, command)).toMatchObject({ code: 2, calls: [] });
    expect(await runCli(home, [...command, '--remove'])).toMatchObject({ code: 2, calls: [] });
  });

  test('does not take what a server says for stored without the proof', async () => {
    const one = { sealed: 's', proof: 'the-proof' };
    expect(await sendSealed(saying({ state: 'stored', proof: 'the-proof' }), one)).toBe('stored');
    expect(await sendSealed(saying({ state: 'different', proof: null }), one)).toBe('different');
    for (const state of ['stored', 'same']) {
      for (const proof of [null, 'another']) {
        await expect(sendSealed(saying({ state, proof }), one)).rejects.toThrow('cannot prove it');
      }
    }
  });
});
