import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { itemsSpec } from '../../../e2e/runtimes/connector_samples.ts';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { ok } from '../../../shared/model/result.ts';
import { authorizeReply } from '../../../shared/wire/connectors/connector_credentials.ts';
import { connectorRecord, installReply } from '../../../shared/wire/connectors/connectors.ts';
import type { OutboundRequest } from '../../kernel/outbound.ts';

/** The requests to the provider, except the device authorisation request. */
let redeemed: OutboundRequest[] = [];
let control: InProcess;
let id = '';

const DEVICE = {
  device_code: 'device-code-of-a-test',
  user_code: 'ABCD',
  verification_uri: 'https://auth.example.test/type-it',
  expires_in: 900,
  interval: 1,
};
const TOKENS = { access_token: 'granted', token_type: 'bearer', expires_in: 3600 };

beforeEach(async () => {
  redeemed = [];
  control = await startInProcess({
    outbound: {
      async call(request) {
        const isDevice = request.url.endsWith('/device');
        if (!isDevice) redeemed.push(request);
        const body = new TextEncoder().encode(JSON.stringify(isDevice ? DEVICE : TOKENS));
        return ok({ status: 200, contentType: 'application/json', body });
      },
    },
  });
  const spec = itemsSpec('1.0.0', { credential: { kind: 'oauth2' } });
  id = (await parseReply(installReply, control.asUser('POST', '/v1/connectors?owner=enterprise', spec))).id;
  await put();
});
afterEach(() => control.stop());

const put = (more: object = {}) =>
  control.asUser('PUT', `/v1/connectors/${id}/credential`, {
    kind: 'oauth2',
    client_id: 'client-of-a-test',
    authorization_url: 'https://auth.example.test/authorize',
    token_url: 'https://auth.example.test/token',
    device_authorization_url: 'https://auth.example.test/device',
    ...more,
  });
const begin = async (grant: 'browser' | 'device') =>
  parseReply(authorizeReply, control.asUser('POST', `/v1/connectors/${id}/credential/authorize`, { grant }));
async function link(): Promise<string> {
  const begun = await begin('browser');
  return begun.grant === 'browser' ? begun.authorization_url : '';
}
const sql = (text: string) => control.context.database.client.execute(text);
const state = async () =>
  (await parseReply(connectorRecord, control.asUser('GET', `/v1/connectors/${id}`))).credential?.state;

/** Returns from the provider with a code. Gives the text of the page. */
async function comeBack(from: string): Promise<string> {
  const sent = new URL(from).searchParams.get('state') ?? '';
  return (await control.send(`/auth/connectors/callback?state=${sent}&code=code-of-a-test`)).text();
}

/** Changes that each stop an authorisation in progress. */
const CHANGES: [string, () => Promise<unknown>, string][] = [
  ['another token URL', () => put({ token_url: 'https://evil.example.test/token' }), 'the client of this connector'],
  ['another client', () => put({ client_id: 'other' }), 'the client of this connector'],
  ['a user who may not change it any more', () => sql(`UPDATE users SET role = 'member'`), 'needs the role admin'],
  ['a user who is gone', () => sql(`UPDATE users SET suspended_at = '2026-01-01T00:00:00.000Z'`), 'no longer exists'],
];

describe('an authorisation in progress in the browser', () => {
  test('continues when the same client was stored again', async () => {
    const begun = await link();
    await put();
    expect(await comeBack(begun)).toContain('acme/items is authorised');
    expect(await state()).toBe('ready');
    expect(redeemed.map(({ url }) => url)).toEqual(['https://auth.example.test/token']);
  });

  test.each(CHANGES)('sends its code to no provider after %s', async (_what, change, said) => {
    const begun = await link();
    await change();
    expect((await comeBack(begun)).toLowerCase()).toContain(said.toLowerCase());
    expect(redeemed).toEqual([]);
  });
});

describe('a device authorisation in progress', () => {
  test('redeems the code that it started with', async () => {
    await begin('device');
    control.clock.ms += 1_000;
    expect(await state()).toBe('ready');
    expect(new TextDecoder().decode(redeemed[0]?.body ?? undefined)).toContain('device_code=device-code-of-a-test');
  });

  test.each(CHANGES.slice(0, 3))('sends its code to no provider after %s, and ends', async (_what, change) => {
    await begin('device');
    await change();
    control.clock.ms += 1_000;
    expect(await state()).toBe('authorisation_required');
    expect(redeemed).toEqual([]);
    expect((await sql('SELECT id FROM oauth_flows')).rows).toEqual([]);
  });
});
