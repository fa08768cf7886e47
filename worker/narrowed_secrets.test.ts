import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { ok } from '../shared/model/result.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import type { Narrowing } from '../shared/wire/sources/narrowing.ts';
import { NARROWED_MINTS_PER_MINUTE } from './installation/start.ts';
import type { Outbound, OutboundReply, OutboundRequest } from './kernel/outbound.ts';

// What a session may do less with a minted secret (decision 0119), where it is minted.

const REF = { owner: 'personal', path: 'ci/token' } as const;
const PEM = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' });
const OAUTH = {
  kind: 'client_credentials',
  token_url: 'https://idp.example.com/token',
  client_id: 'ci',
  scopes: ['read', 'write'],
};
const GITHUB = { kind: 'github_app', app_id: '1', installation_id: '9', repositories: ['website', 'docs'] };

let asked: OutboundRequest[];
let reply: (count: number) => object;
let status: number;
let control: InProcess;
let sidecar: TestSidecar;
const outbound: Outbound = {
  call: (request) => {
    asked.push(request);
    const body = new TextEncoder().encode(JSON.stringify(reply(asked.length)));
    return Promise.resolve(ok({ status, contentType: 'application/json', body } satisfies OutboundReply));
  },
};

beforeEach(async () => {
  asked = [];
  status = 200;
  reply = (count) => ({ access_token: `minted-${count}-secret`, token_type: 'Bearer', expires_in: 600 });
  control = await startInProcess({ outbound });
  sidecar = await control.enrolSidecar();
  const binding = { host: 'a.test', scheme: 'bearer', credential_ref: 'vault://ci/token' };
  expect((await control.asUser('POST', '/v1/host-bindings', binding)).status).toBe(201);
});
afterEach(() => control.stop());

const put = async (source: object, key: string) => {
  const added = await control.asUser('POST', '/v1/secret-sources', { path: REF.path, source, key });
  expect(added.status).toBeLessThan(300);
};

async function release(...narrowings: readonly (Narrowing | undefined)[]) {
  const credentials = narrowings.map((narrowing) => ({ ...REF, ...(narrowing && { narrowing }) }));
  const body = { request_id: crypto.randomUUID(), credentials };
  const answered = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  return sidecar.verify(await answered.text(), CREDENTIALS_TYP, credentialsPayload);
}

async function released(narrowing?: Narrowing) {
  const { credentials, unavailable } = await release(narrowing);
  const [credential] = credentials;
  if (credential === undefined) return { why: unavailable[0]?.message ?? 'missing' };
  const { value } = sealedCredential.parse(await sidecar.unseal(credential.sealed));
  return { value, narrowed: credential.narrowed, until: credential.expires_at };
}

/** The answer of GitHub, for these repositories. */
const token = (names: readonly string[]) => ({
  token: 'ghs_narrow',
  expires_at: new Date(control.clock.now() + 3_600_000).toISOString(),
  repositories: names.map((name) => ({ name })),
});

/** The form of the newest call. */
const sent = () => Object.fromEntries(new URLSearchParams(new TextDecoder().decode(asked.at(-1)?.body)));

describe('a narrowed value', () => {
  test('is minted for what is asked, says so, and is audited by it', async () => {
    await put(OAUTH, 'the-client-secret');
    const until = new Date(control.clock.now() + 600_000).toISOString();
    expect(await released({ scopes: ['read'] })).toEqual({ value: 'minted-1-secret', narrowed: true, until });
    expect(sent()).toMatchObject({ scope: 'read' });
    const events = await parseReply(
      auditEventsPage,
      control.asUser('GET', '/v1/audit-events?type=control.secret.minted'),
    );
    expect(events.items.map(({ data }) => data['svc.control.minted_for'])).toEqual([
      'the scope read at idp.example.com for the client ci',
    ]);
    expect(JSON.stringify(events)).not.toContain('minted-1-secret');
  });

  test('is stored nowhere, and given to nobody else', async () => {
    await put(OAUTH, 'the-client-secret');
    await released({ scopes: ['read'] });
    const { rows } = await control.context.database.client.execute('SELECT sealed_value FROM secret_sources');
    expect(rows.map((row) => row['sealed_value'])).toEqual([null]);
    expect(await released()).toMatchObject({ value: 'minted-2-secret', narrowed: undefined });
    expect(sent()).toMatchObject({ scope: 'read write' });
    expect(await released({ scopes: ['write'] })).toMatchObject({ value: 'minted-3-secret' });
    expect(await released()).toMatchObject({ value: 'minted-2-secret' });
  });

  test('is never the wide one that is asked for in the same call', async () => {
    await put(OAUTH, 'the-client-secret');
    const { credentials } = await release(undefined, { scopes: ['read'] });
    expect(credentials.map(({ narrowed }) => narrowed)).toEqual([true]);
  });

  test.each<[string, Narrowing]>([
    ['another scope', { scopes: ['read', 'admin'] }],
    ['a field of another kind', { repositories: ['website'] }],
  ])('is refused for %s, and the provider is not asked', async (_, narrowing) => {
    await put(OAUTH, 'the-client-secret');
    expect(await released(narrowing)).toEqual({ why: expect.stringContaining('cannot be narrowed') });
    expect(asked).toEqual([]);
  });

  test('is discarded if the provider says that it is for more', async () => {
    await put(OAUTH, 'the-client-secret');
    reply = () => ({ access_token: 'too-much', token_type: 'Bearer', scope: 'read write' });
    expect(await released({ scopes: ['read'] })).toEqual({ why: expect.stringContaining('for more than was asked') });
    reply = () => ({ access_token: 'right', token_type: 'Bearer', scope: 'read' });
    expect(await released({ scopes: ['read'] })).toMatchObject({ value: 'right' });
  });

  test('is minted so often a minute at most, whether that fails or not, and others are not affected', async () => {
    await put(OAUTH, 'the-client-secret');
    reply = (count) => (count % 2 === 0 ? { error: 'invalid_scope' } : { access_token: 'a', token_type: 'Bearer' });
    for (let count = 0; count < NARROWED_MINTS_PER_MINUTE; count += 1) await release({ scopes: ['read'] });
    expect(asked).toHaveLength(NARROWED_MINTS_PER_MINUTE);
    expect(await released({ scopes: ['read'] })).toEqual({ why: expect.stringContaining('try again in 1 s') });
    expect(await released({ scopes: ['admin'] })).toEqual({ why: expect.stringContaining('cannot be narrowed') });
    expect(asked).toHaveLength(NARROWED_MINTS_PER_MINUTE);
    expect(await released()).toMatchObject({ value: 'a' });
    control.clock.ms += 1_000;
    await release({ scopes: ['read'] });
    expect(asked).toHaveLength(NARROWED_MINTS_PER_MINUTE + 2);
  });

  test('is for one repository of an app, and discarded if it is for another', async () => {
    await put(GITHUB, PEM.toString());
    status = 201;
    reply = () => token(['docs']);
    expect(await released({ repositories: ['docs'] })).toMatchObject({ value: 'ghs_narrow', narrowed: true });
    expect(JSON.parse(new TextDecoder().decode(asked[0]?.body))).toEqual({ repositories: ['docs'] });
    reply = () => token(['docs', 'website']);
    expect(await released({ repositories: ['docs'] })).toEqual({ why: expect.stringContaining('for more than') });
  });

  test('is not there for a stored secret', async () => {
    const stored = await control.asUser('POST', '/v1/secrets', { path: REF.path, value: 'stored-value-of-a-person' });
    expect(stored.status).toBeLessThan(300);
    expect(await released({ scopes: ['read'] })).toEqual({ why: expect.stringContaining('no source') });
  });

  test('is not there for what a program on the machine gives', async () => {
    const source = { kind: 'borrowed' };
    const added = await control.asUser('POST', '/v1/secret-sources', { path: REF.path, source });
    expect(added.status).toBeLessThan(300);
    expect(await released({ scopes: ['read'] })).toEqual({ why: expect.stringContaining('no source') });
  });
});
