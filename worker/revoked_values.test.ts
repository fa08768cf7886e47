import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { parseJson } from '../shared/model/json.ts';
import { ok } from '../shared/model/result.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { hostBindingsPage } from '../shared/wire/host_bindings.ts';
import { mcpServerRecord } from '../shared/wire/mcp/mcp_servers.ts';
import { sourceTestReply } from '../shared/wire/secret_sources.ts';
import type { OutboundReply, OutboundRequest } from './kernel/outbound.ts';
import { json } from './kernel/testing/json_reply.ts';
import { giveUpValues } from './services/sources/given_up_values.ts';

// What is minted and used by nobody is revoked at its provider. GitHub, Vault and the authorization server are stubs, written from
// their references and RFC 7009.

const PKCS8 = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();
const GITHUB = { source: { kind: 'github_app', app_id: '1', installation_id: '9' }, key: PKCS8 };
const VAULT = {
  source: { kind: 'vault_lease', vault_url: 'https://vault.example.com', lease_path: 'nomad/creds/ci', field: 'token' },
  key: 'hvs.of-the-source',
};
const BY_LOGIN = {
  source: { ...VAULT.source, authentication: 'approle', role_id: 'role' },
  key: 'the-secret-id',
};
const CLIENT = {
  source: { kind: 'client_credentials', token_url: 'https://idp.example.com/token', client_id: 'ci' },
  key: 'the-client-secret',
};
/** Clients of an authorization server that revokes (RFC 7009). */
const SERVER = { token_url: 'https://idp.example.com/token', revocation_url: 'https://idp.example.com/revoke' };
const REVOKING = { ...CLIENT, source: { ...CLIENT.source, ...SERVER } };
const POSTING = { client_id: 'ci', client_authentication: 'post' };
const ASSERTING = {
  source: { kind: 'jwt_bearer', issuer: 'ci', subject: 'ci', ...POSTING, ...SERVER },
  key: JSON.stringify({ private_key: PKCS8, client_secret: 'the-client-secret' }),
};
const EXCHANGING = { source: { kind: 'token_exchange', ...SERVER }, key: 'the-token-to-exchange' };
const KV = {
  source: { kind: 'vault_kv', vault_url: 'https://vault.example.com', secret_path: 'ci', field: 'token' },
  key: 'hvs.of-the-source',
};

/** The calls that revoke, with what authenticates them and what they send. */
const REVOKED = {
  github: ['DELETE https://api.github.com/installation/token', 'Bearer minted-1', null],
  lease: ['POST https://vault.example.com/v1/sys/leases/revoke', 'hvs.of-the-source', { lease_id: 'nomad/creds/ci/1' }],
  client: [
    'POST https://idp.example.com/revoke',
    `Basic ${btoa('ci:the-client-secret')}`,
    { token: 'minted-1', token_type_hint: 'access_token' },
  ],
  asserting: [
    'POST https://idp.example.com/revoke',
    undefined,
    { token: 'minted-1', token_type_hint: 'access_token', client_id: 'ci', client_secret: 'the-client-secret' },
  ],
  exchanging: [
    'POST https://idp.example.com/revoke',
    undefined,
    { token: 'minted-1', token_type_hint: 'access_token' },
  ],
  login: ['POST https://vault.example.com/v1/auth/token/revoke-self', 'hvs.of-the-login', {}],
} as const;

let asked: OutboundRequest[];
let minted: number;
/** What a revocation is answered with. */
let revocationStatus: number;
let onMint: () => Promise<void>;
let onRevoke: () => Promise<void>;
/** The provider gives out the same token again. */
let isSame: boolean;
let control: InProcess;
let sidecar: TestSidecar;

async function answer({ method, url }: OutboundRequest): Promise<OutboundReply> {
  if (url.endsWith('/revoke')) await onRevoke();
  if (url === 'https://idp.example.com/revoke') return json(revocationStatus === 204 ? 200 : revocationStatus, {});
  if (method === 'DELETE' || /[/]revoke(?:-self)?$/.test(url)) return json(revocationStatus, {});
  if (url.endsWith('/login')) return json(200, { auth: { client_token: 'hvs.of-the-login', lease_duration: 3600 } });
  if (url.endsWith('/lookup-self')) return json(200, { data: { ttl: 0 } });
  minted += 1;
  const value = `minted-${isSame ? 1 : minted}`;
  await onMint();
  if (url.endsWith('/creds/ci')) {
    return json(200, { lease_id: `nomad/creds/ci/${minted}`, lease_duration: 3600, data: { token: value } });
  }
  if (url.includes('/data/')) return json(200, { data: { data: { token: value }, metadata: { version: 1 } } });
  if (url.endsWith('/token')) return json(200, { access_token: value, token_type: 'Bearer', expires_in: 3600 });
  const expires = new Date(control.clock.now() + 3_600_000).toISOString();
  return json(201, { token: value, expires_at: expires });
}

beforeEach(async () => {
  [asked, minted, revocationStatus] = [[], 0, 204];
  [isSame, onMint, onRevoke] = [false, () => Promise.resolve(), () => Promise.resolve()];
  control = await startInProcess({
    outbound: {
      async call(request) {
        asked.push(request);
        return ok(await answer(request));
      },
    },
  });
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

const PATH = 'ci/token';
const put = (given: object, path = PATH) => control.asUser('POST', '/v1/secret-sources', { ...given, path });
const tryOut = () => parseReply(sourceTestReply, control.asUser('POST', '/v1/secret-sources/test', { path: PATH }));

async function release(path = PATH): Promise<void> {
  const body = { request_id: crypto.randomUUID(), credentials: [{ owner: 'personal', path }] };
  expect((await sidecar.call('POST', '/v1/sidecar/credentials', { body })).status).toBe(200);
}

async function bind(given: object, path = PATH, host = 'a.test'): Promise<void> {
  await put(given, path);
  await control.asUser('POST', '/v1/host-bindings', { host, scheme: 'bearer', credential_ref: `vault://${path}` });
}

async function hold(given: object): Promise<void> {
  await bind(given);
  await release();
  asked = [];
}

const revocations = () =>
  asked
    .filter(({ method, url }) => method === 'DELETE' || url.includes('/revoke'))
    .map(({ method, url, headers, body }) => [
      `${method} ${url}`,
      headers['x-vault-token'] ?? headers['authorization'],
      body === null ? null : bodyOf(headers, new TextDecoder().decode(body)),
    ]);

const bodyOf = (headers: OutboundRequest['headers'], text: string): unknown =>
  headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true
    ? Object.fromEntries(new URLSearchParams(text))
    : parseJson(text);

async function events(): Promise<[string, unknown, unknown][]> {
  await control.settle();
  const { items } = await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events?limit=100'));
  return items
    .filter(({ type }) => type.startsWith('control.secret.value_'))
    .map(({ type, data }) => [type, data['svc.control.credential_ref'], data['svc.proxy.reason']]);
}

const SOURCES = [
  ['a GitHub App', GITHUB, REVOKED.github],
  ['a lease of Vault', VAULT, REVOKED.lease],
  ['a lease of a login at Vault', BY_LOGIN, REVOKED.login],
  ['an OAuth client', REVOKING, REVOKED.client],
  ['a JWT bearer grant', ASSERTING, REVOKED.asserting],
  ['a token exchange', EXCHANGING, REVOKED.exchanging],
] as const;

describe.each(SOURCES)('a value of %s', (_what, given, call) => {
  test('that was minted for a test is revoked', async () => {
    await put(given);
    expect((await tryOut()).left).toBe('revoked');
    expect(revocations()).toEqual([call]);
    expect(await events()).toEqual([['control.secret.value_revoked', 'vault://ci/token', undefined]]);
  });

  test('that its provider does not revoke is told and recorded', async () => {
    await put(given);
    revocationStatus = 500;
    expect((await tryOut()).left).toBe('not_revoked');
    expect(await events()).toEqual([
      ['control.secret.value_not_revoked', 'vault://ci/token', expect.stringContaining('status 500')],
    ]);
  });

  test.each([
    ['its source changes', () => put(CLIENT)],
    ['a value is stored in its place', () => control.asUser('POST', '/v1/secrets', { path: PATH, value: 'stored' })],
  ])('that is held is revoked when %s', async (_when, change) => {
    await hold(given);
    expect((await change()).ok).toBe(true);
    expect(await events()).toEqual([['control.secret.value_revoked', 'vault://ci/token', undefined]]);
    expect(revocations()).toEqual([call]);
  });

  test('that is held is revoked when its secret is deleted', async () => {
    await hold(given);
    const { items } = await parseReply(hostBindingsPage, control.asUser('GET', '/v1/host-bindings'));
    expect((await control.asUser('DELETE', `/v1/host-bindings/${items[0]?.id ?? ''}`)).ok).toBe(true);
    expect((await control.asUser('DELETE', `/v1/secrets/${PATH}`)).ok).toBe(true);
    await control.settle();
    expect(revocations()).toEqual([call]);
  });

  test('that arrives when its source has changed is revoked', async () => {
    onMint = async () => {
      onMint = () => Promise.resolve();
      expect((await put(CLIENT)).ok).toBe(true);
    };
    await hold(given).catch(() => undefined);
    await control.settle();
    expect(await events()).toEqual([['control.secret.value_revoked', 'vault://ci/token', undefined]]);
  });

  test('that has ended is left alone', async () => {
    await hold(given);
    control.clock.ms += 3_600_000;
    await put(CLIENT);
    expect([await events(), revocations()]).toEqual([[], []]);
  });

  test('leaves no trace of what revokes it', async () => {
    await hold(given);
    await put(CLIENT);
    const told = JSON.stringify([await events(), control.log]);
    const bytes = await control.databaseBytes();
    for (const planted of ['minted-1', 'hvs.of-the-login', 'hvs.of-the-source']) {
      expect([planted, told.includes(planted), bytes.includes(planted)]).toEqual([planted, false, false]);
    }
  });
});

/** Changes the source as it is stored. */
const setStored = (change: string) =>
  control.context.database.client.execute({ sql: `UPDATE secret_sources SET ${change}`, args: [] });

test.each([
  ['is of before that was stored', 'sealed_revocation = NULL'],
  ['was minted later by a worker of an earlier version', "minted_at = '2020-01-01T00:00:00.000Z'"],
])('a lease without what revokes it is not said to be revoked when it %s', async (_what, change) => {
  await hold(VAULT);
  await setStored(change);
  await put(CLIENT);
  expect(await events()).toEqual([
    ['control.secret.value_not_revoked', 'vault://ci/token', expect.stringContaining('was not stored with it')],
  ]);
  expect(revocations()).toEqual([]);
});

test.each([
  ['value', "sealed_value = 'damaged'"],
  ['revocation', "sealed_revocation = 'damaged'"],
  ['key', "sealed_material = 'damaged'"],
])(
  'a secret with a damaged %s can be replaced and deleted, and what is not revoked is recorded',
  async (_what, change) => {
    await hold(VAULT);
    await setStored(change);
    expect((await put(CLIENT)).status).toBe(200);
    expect(await events()).toEqual([
      ['control.secret.value_not_revoked', 'vault://ci/token', expect.stringContaining('is damaged')],
    ]);
  },
);

test.each([
  ['on another server', 'https://other.example.com/revoke'],
  ['on another port of the same', 'https://idp.example.com:8443/revoke'],
])('a revocation_url %s is refused, so that no token is sent there', async (_where, url) => {
  const reply = await put({ ...REVOKING, source: { ...REVOKING.source, revocation_url: url } });
  expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining('revocation_url')]);
  expect(asked).toEqual([]);
});

test('a client that signs authenticates so for a revocation too', async () => {
  const source = { ...REVOKING.source, client_authentication: 'private_key_jwt' };
  await put({ source, key: PKCS8 });
  expect((await tryOut()).left).toBe('revoked');
  const [[, , sent] = []] = revocations();
  expect(sent).toMatchObject({ token: 'minted-1', client_id: 'ci', client_assertion: expect.stringMatching(/^ey/) });
});

test.each([
  ['a provider that revokes nothing', CLIENT, 'ends'],
  ['a secret manager', KV, 'kept'],
] as const)('a value of %s is discarded', async (_what, given, left) => {
  await put(given);
  expect((await tryOut()).left).toBe(left);
  expect([await events(), revocations()]).toEqual([[], []]);
});

test('a token of GitHub for more than was asked is revoked, and said to be', async () => {
  await put({ ...GITHUB, source: { ...GITHUB.source, permissions: { contents: 'read' } } });
  const reply = await control.asUser('POST', '/v1/secret-sources/test', { path: PATH });
  expect(await reply.text()).toContain('for more than was asked, which was revoked');
  expect(revocations()).toEqual([REVOKED.github]);
});

describe('a credential of an MCP server', () => {
  const REMOTE = { name: 'tools', mode: 'remote', url: 'https://tools.example.com/mcp' };

  test.each(['credentials/TOKEN', ''])('is revoked when DELETE …/%s takes it away', async (at) => {
    const server = { ...REMOTE, headers: { Authorization: 'Bearer vault://mcp-servers/{id}/TOKEN' } };
    const { id } = await parseReply(mcpServerRecord, control.asUser('POST', '/v1/mcp-servers', server));
    const path = `mcp-servers/${id}/TOKEN`;
    expect((await put(GITHUB, path)).ok).toBe(true);
    await release(path);
    expect((await control.asUser('DELETE', `/v1/mcp-servers/${id}${at === '' ? '' : `/${at}`}`)).ok).toBe(true);
    expect(await events()).toEqual([['control.secret.value_revoked', `vault://${path}`, undefined]]);
    expect(revocations()).toEqual([REVOKED.github]);
  });
});

async function heldValues(): Promise<unknown> {
  const sql = 'SELECT count(*) AS n FROM secret_sources WHERE sealed_value IS NOT NULL';
  return (await control.context.database.client.execute(sql)).rows[0]?.['n'];
}

const elsewhere = (change: object) => ({ ...CLIENT, source: { ...CLIENT.source, ...change } });

describe('a token that the provider gives out more than once', () => {
  const OTHER = 'ci/other';
  const NOT_REVOKED = [
    'control.secret.value_not_revoked',
    'vault://ci/token',
    expect.stringContaining('still holds it'),
  ];
  beforeEach(() => {
    isSame = true;
  });

  test('is not revoked by a test of the secret that holds it, which goes on with it', async () => {
    await hold(REVOKING);
    expect((await tryOut()).left).toBe('not_revoked');
    expect([await events(), revocations()]).toEqual([[NOT_REVOKED], []]);
    await release();
    expect(asked.filter(({ url }) => url.endsWith('/token'))).toHaveLength(1);
  });

  test.each([
    ['its source changes', () => put(CLIENT)],
    ['a value is stored in its place', () => control.asUser('POST', '/v1/secrets', { path: PATH, value: 'stored' })],
  ])('is not revoked when %s and another secret holds it, but once that one is given up too', async (_when, change) => {
    await hold(REVOKING);
    await bind(REVOKING, OTHER, 'b.test');
    await release(OTHER);
    expect((await change()).ok).toBe(true);
    expect([await events(), revocations()]).toEqual([[NOT_REVOKED], []]);
    await put(GITHUB, OTHER);
    await control.settle();
    expect(revocations()).toEqual([REVOKED.client]);
  });

  test.each([
    ['another server', elsewhere({ token_url: 'https://accomplice.example.com/token' })],
    ['another URL of the server', elsewhere({ token_url: 'https://idp.example.com/other/token' })],
    ['another client', elsewhere({ client_id: 'accomplice' })],
    ['another kind of source', EXCHANGING],
  ])('is revoked although %s has given it to another secret', async (_what, other) => {
    await hold(REVOKING);
    await bind(other, OTHER, 'b.test');
    await release(OTHER);
    await put(GITHUB);
    expect(await events()).toEqual([['control.secret.value_revoked', 'vault://ci/token', undefined]]);
    expect(revocations()).toEqual([REVOKED.client]);
    expect(await heldValues()).toBe(1);
  });

  test('is not opened where another issuer gave it', async () => {
    await hold(REVOKING);
    await bind(elsewhere({ client_id: 'other' }), OTHER, 'b.test');
    await release(OTHER);
    const opened = vi.spyOn(control.context.vault, 'open');
    await put(GITHUB);
    await control.settle();
    expect(opened.mock.calls.map(([{ path }]) => path)).not.toContain(`${OTHER}#value`);
  });

  test('is revoked when what another secret holds of it has ended', async () => {
    await bind(REVOKING, OTHER, 'b.test');
    await release(OTHER);
    await setStored("expires_at = '2020-01-01T00:00:00.000Z'");
    await hold(REVOKING);
    await put(CLIENT);
    await control.settle();
    expect(revocations()).toEqual([REVOKED.client]);
  });

  test('is forgotten by a secret that gets it while it is revoked', async () => {
    await hold(REVOKING);
    await bind(REVOKING, OTHER, 'b.test');
    onRevoke = () => release(OTHER);
    await put(CLIENT);
    await control.settle();
    expect(revocations()).toEqual([REVOKED.client]);
    expect(minted).toBe(2);
    expect(await heldValues()).toBe(0);
  });
});

async function giveUp(...given: readonly object[]): Promise<void> {
  for (const [at, each] of given.entries()) {
    await bind(each, `ci/t${at}`, `${'abc'[at] ?? ''}.test`);
    await release(`ci/t${at}`);
  }
  asked = [];
  const [row] = (await control.context.database.client.execute('SELECT DISTINCT owner_id FROM secrets')).rows;
  const { statements, afterwards } = await giveUpValues(control.context, z.string().parse(row?.['owner_id']));
  await control.context.database.write([...statements]);
  afterwards();
}

describe('values that are given up at once', () => {
  test('are revoked one after another at their provider', async () => {
    let [atOnce, most] = [0, 0];
    onRevoke = async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((resolve) => setImmediate(resolve));
      atOnce -= 1;
    };
    await giveUp(VAULT, VAULT, VAULT);
    await control.settle();
    expect(revocations()).toHaveLength(3);
    expect(most).toBe(1);
  });

  test('are revoked also while another provider does not answer', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    onRevoke = () => promise;
    await giveUp(VAULT, VAULT, GITHUB);
    const call = [REVOKED.github[0], 'Bearer minted-3', null];
    await vi.waitFor(() => expect(revocations()).toContainEqual(call), { timeout: 60_000 });
    resolve();
    await control.settle();
    expect(revocations()).toHaveLength(3);
  });
});

describe('after a test', () => {
  test.each([
    ['revokes', REVOKING],
    ['keeps one token for each client', CLIENT],
  ])('a secret holds no token that the test may have ended at a server that %s', async (_what, given) => {
    await hold(given);
    await tryOut();
    await release();
    expect(asked.filter(({ url }) => url.endsWith('/token'))).toHaveLength(2);
  });

  test('a secret goes on with a token of GitHub, each of which ends by itself', async () => {
    await hold(GITHUB);
    await tryOut();
    await release();
    expect(asked.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });
});
