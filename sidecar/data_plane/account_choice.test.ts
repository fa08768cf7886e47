import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { decideAccounts } from '../../shared/resolve/account_choice.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { StepScope } from '../session/step_scope.ts';
import { tokenHash } from '../session/token.ts';
import { type DataPlane, createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';

/** The accounts of a host in a session that chose one (decision 0064), through the whole data plane. */

const HOST = 'api.example.test';
const HOME = 'planted-secret-of-home-0123456789';
const WORK = 'planted-secret-of-work-0123456789';
const OF_WORK = 'placeholder-of-work';
const OF_OTHER = 'placeholder-of-other';
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';
const SECRETS: readonly ChosenSecret[] = [{ path: 'user/work', by: 'folder', from: '/work' }];

let plane: DataPlane;
let seen: string[];

const HOME_BINDING = bearerBinding(HOST, { id: 'bnd_home', credential: { owner: 'personal', path: 'user/home' } });
const swapped = (path: string, sentinel: string, change: Partial<HostBinding> = {}): HostBinding =>
  bearerBinding(HOST, {
    id: `bnd_${sentinel}`,
    credential: { owner: 'personal', path },
    emit: { mechanism: 'sentinel-swap', sentinel },
    ...change,
  });
const WIDE = bearerBinding('*.example.test', { id: 'bnd_wide', credential: HOME_BINDING.credential });
const ALL = [HOME_BINDING, swapped('user/work', OF_WORK), swapped('user/other', OF_OTHER)];

beforeEach(async () => {
  seen = [];
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/home' }, HOME);
  plane.credentials.set({ owner: 'personal', path: 'user/other' }, HOME);
  plane.credentials.set({ owner: 'personal', path: 'user/work' }, WORK);
  plane.policy.use(ALL);
  await plane.upstream(
    HOST,
    createAnswering((request) => (seen.push(request), REPLY)),
  );
  choose(SECRETS);
});
afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** Starts a session with these secrets while `atStart` are the bindings. */
function choose(secrets: readonly ChosenSecret[], atStart: readonly HostBinding[] = ALL): void {
  plane.scopes.set('chosen', { ...plane.session, choice: decideAccounts(secrets, atStart) });
}

/** Sends a request; `token` is what the client puts in the place of its credential. */
async function ask(token: string | null, { method = 'GET', path = '/', body = '', header = '' } = {}): Promise<string> {
  const client = await plane.open(HOST, HOST, 'chosen');
  const line = token === null ? '' : `Authorization: Bearer ${token}\r\n`;
  const ofBody = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  client.write(`${method} ${path} HTTP/1.1\r\nHost: ${HOST}\r\n${line}${header}${ofBody}\r\n${body}`);
  return readUntil(client, (got) => got.endsWith('done') || got.endsWith('}\n'));
}

const sent = (): readonly (string | undefined)[] => seen.map((request) => /Bearer (\S+)/.exec(request)?.[1]);

describe('a session that chose an account', () => {
  test('sends it with and without its placeholder, and adds none to a credential of the client’s own', async () => {
    for (const token of [OF_WORK, null, 'own']) await ask(token);
    expect(sent()).toEqual([WORK, WORK, 'own']);
  });

  test('refuses the placeholder of another account before anything is looked up, and records it', async () => {
    expect(await ask(OF_OTHER)).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen".*vault:\/\/user\/other/s);
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
    expect(plane.audit.events).toMatchObject([
      { type: 'sandbox.proxy.trust_denied', data: { 'svc.proxy.reason': 'account_not_chosen' } },
    ]);
  });

  test.each([
    ['a Basic password', { header: `Authorization: Basic ${btoa(`x:${OF_OTHER}`)}\r\n` }],
    ['a Basic user name', { header: `Authorization: Basic ${btoa(`${OF_OTHER}:x-oauth-basic`)}\r\n` }],
    ['another header', { header: `X-Key: ${OF_OTHER}\r\n` }],
    ['the query', { path: `/?key=${OF_OTHER}` }],
  ])('refuses the placeholder of another account also in %s', async (_what, where) => {
    expect(await ask(null, where)).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
  });

  test('sends its own account if the placeholder of another one is the beginning of its own', async () => {
    const own = `${OF_OTHER}-of-work`;
    const all = [swapped('user/other', OF_OTHER), swapped('user/work', own)];
    plane.policy.use(all);
    choose(SECRETS, all);
    await ask(own);
    expect(sent()).toEqual([WORK]);
  });

  test('may be a step of a plan, whose account is that of its lock', async () => {
    const choice = decideAccounts(SECRETS, ALL);
    const step = { stepId: 'fetch', effect: 'read', hosts: [HOST], timeoutSeconds: 900, scopes: [], choice };
    const token = { tokenHash: tokenHash('chosen'), expiresAt: Number.POSITIVE_INFINITY };
    plane.scopes.set('chosen', new StepScope({ scopeId: 'scp_1', step, session: plane.session, ...token }));
    expect(await ask(OF_OTHER)).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    await ask(null);
    expect(sent()).toEqual([WORK]);
  });

  test('may be a step that narrows a secret, which gets its credentials by its own id', async () => {
    const choice = decideAccounts(SECRETS, ALL);
    const step = { stepId: 'fetch', effect: 'read', hosts: [HOST], timeoutSeconds: 900, choice };
    const token = { tokenHash: tokenHash('chosen'), expiresAt: Number.POSITIVE_INFINITY };
    const scopes = [{ path: 'user/work', narrowing: { scopes: ['read'] } }];
    const narrowed = { scopeId: 'scp_1', step: { ...step, scopes }, session: plane.session, ...token };
    plane.scopes.set('chosen', new StepScope(narrowed));
    await ask(null);
    plane.scopes.set('chosen', new StepScope({ ...narrowed, step: { ...step, scopes: [] } }));
    await ask(null);
    expect([sent(), plane.credentialIds]).toEqual([
      [WORK, WORK],
      ['scp_1', plane.session.id],
    ]);
  });

  test('sends no other account when the binding of its own is removed', async () => {
    plane.policy.use(ALL.filter(({ credential }) => credential.path !== 'user/work'));
    for (const token of [null, OF_OTHER, OF_WORK]) {
      expect(await ask(token)).toMatch(/^HTTP\/1\.1 503 .*"code":"credential_unavailable"/s);
    }
    expect(seen).toEqual([]);
  });

  test('gets no right that its binding does not have', async () => {
    plane.policy.use([HOME_BINDING, swapped('user/work', OF_WORK, { effect: 'read' })]);
    expect(await ask(null, { method: 'DELETE' })).toMatch(/^HTTP\/1\.1 403 .*"code":"effect_not_allowed"/s);
    plane.policy.use([HOME_BINDING, swapped('user/work', OF_WORK, { allowedHosts: ['other.example.test'] })]);
    expect(await ask(null)).toMatch(/^HTTP\/1\.1 403 .*"code":"host_not_allowed"/s);
    expect(seen).toEqual([]);
  });

  test.each<[string, HostBinding[], HostBinding[]]>([
    ['the only binding of the host is removed', [swapped('user/work', OF_WORK)], []],
    ['a wildcard wins', [swapped('user/work', OF_WORK), WIDE], [WIDE]],
    [
      'an exact binding wins over its wildcard',
      [swapped('user/work', OF_WORK, { host: '*.example.test' })],
      [HOME_BINDING],
    ],
  ])('sends no other account, and not its own placeholder, when %s', async (_what, atStart, now) => {
    choose(SECRETS, atStart);
    plane.policy.use(now);
    for (const token of [null, OF_WORK]) {
      expect(await ask(token)).toMatch(/^HTTP\/1\.1 503 .*"code":"credential_unavailable"/s);
    }
    expect(seen).toEqual([]);
  });
});

const of = (path: string, operation = sampleOperation()) =>
  sampleConnector([operation], { hosts: [HOST], credential: { owner: 'personal', path } });
const GRAPHQL = sampleOperation({
  name: 'read',
  method: 'POST',
  path: '/graphql',
  inputs: [{ name: 'query', in: 'body', type: 'string', required: true, description: '' }],
  graphql: { type: 'query' },
});
const document = JSON.stringify({ query: '{ viewer { login } }' });

/** The code of a run by name, or null if it was sent. */
async function run(way: 'run' | 'request'): Promise<string | null> {
  const { choice = null } = plane.scopes.get('chosen') ?? {};
  const caller = { sessionId: 'ses_test', choice, signal: new AbortController().signal };
  const named = { connector_fqn: 'acme/items', operation: 'get-item' };
  const url = `https://${HOST}/items/7`;
  const result =
    way === 'run'
      ? await plane.operations.run({ ...named, args: { id: '7' } }, { ...caller, source: 'generated_connector_shim' })
      : await plane.operations.request(
          { ...named, method: 'GET', upstream_url: url },
          { ...caller, source: 'daemon_request_boundary' },
        );
  return result.ok ? null : result.error.reason;
}

describe('an operation in a session that chose an account', () => {
  test('does not run with the credential of another account', async () => {
    plane.policy.use(ALL, [of('user/home')]);
    expect(await ask(null, { path: '/items/7' })).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    expect(seen).toEqual([]);
    plane.policy.use(ALL, [of('user/work')]);
    await ask(null, { path: '/items/7' });
    expect(sent()).toEqual([WORK]);
  });

  test('does not run by name with the credential of another account, and the attempt is recorded', async () => {
    plane.policy.use(ALL, [of('user/home')]);
    for (const way of ['run', 'request'] as const) {
      expect(await run(way)).toBe('account_not_chosen');
      expect(plane.audit.events.at(-1)).toMatchObject({
        type: 'connector.proxy.rejected',
        data: { 'svc.proxy.reason': 'account_not_chosen', 'svc.connector.operation': 'get-item' },
      });
    }
    expect([plane.credentials.asked, seen]).toEqual([[], []]);
    plane.policy.use(ALL, [of('user/work')]);
    for (const way of ['run', 'request'] as const) expect(await run(way)).toBeNull();
    expect(sent()).toEqual([WORK, WORK]);
  });

  test('does not run at a GraphQL endpoint with the credential of another account', async () => {
    plane.policy.use(ALL, [of('user/home', GRAPHQL)]);
    const asked = { method: 'POST', path: '/graphql', body: document };
    expect(await ask(null, asked)).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    plane.policy.use(ALL, [of('user/work', GRAPHQL)]);
    expect(await ask(OF_OTHER, asked)).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    expect(seen).toEqual([]);
    await ask(null, asked);
    expect(sent()).toEqual([WORK]);
  });

  test('does not run for a request with the placeholder of another account', async () => {
    plane.policy.use(ALL, [of('user/work')]);
    expect(await ask(OF_OTHER, { path: '/items/7' })).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    expect(seen).toEqual([]);
  });

  test('does not run once the binding of the chosen account is gone', async () => {
    for (const path of ['user/home', 'user/work']) {
      plane.policy.use([HOME_BINDING], [of(path)]);
      expect(await ask(null, { path: '/items/7' })).toMatch(/^HTTP\/1\.1 503 .*"code":"credential_unavailable"/s);
      for (const way of ['run', 'request'] as const) expect(await run(way)).toBe('credential_unavailable');
    }
    expect(seen).toEqual([]);
  });

  test('does not run with a credential of the same path of another owner', async () => {
    const credential = { owner: 'enterprise', path: 'user/work' } as const;
    plane.policy.use(ALL, [sampleConnector([sampleOperation()], { hosts: [HOST], credential })]);
    expect(await ask(null, { path: '/items/7' })).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    expect(seen).toEqual([]);
  });
});

describe('a session that chose two accounts', () => {
  const BOTH: readonly ChosenSecret[] = [...SECRETS, { path: 'user/home', by: 'folder', from: '/work' }];

  test('uses the one that a request names, and otherwise the first', async () => {
    choose(BOTH);
    plane.policy.use([swapped('user/home', 'placeholder-of-home'), HOME_BINDING, swapped('user/work', OF_WORK)]);
    for (const token of ['placeholder-of-home', OF_WORK, null]) await ask(token);
    expect(sent()).toEqual([HOME, WORK, WORK]);
  });

  test('adds no credential where the first has several placeholders, not that of the second', async () => {
    const all = [HOME_BINDING, swapped('user/work', OF_WORK), swapped('user/work', 'placeholder-of-work-2')];
    choose(BOTH, all);
    plane.policy.use(all);
    for (const token of [null, 'placeholder-of-work-2']) await ask(token);
    expect(sent()).toEqual([undefined, WORK]);
  });

  test('does not become the second when the binding of the first is removed', async () => {
    choose(BOTH);
    plane.policy.use([HOME_BINDING]);
    expect(await ask(null)).toMatch(/^HTTP\/1\.1 503 .*"code":"credential_unavailable"/s);
    expect(seen).toEqual([]);
  });
});

test('a choice about other hosts changes nothing', async () => {
  const elsewhere = swapped('user/elsewhere', 'placeholder-of-elsewhere', { host: 'b.example.test' });
  choose([{ path: 'user/elsewhere', by: 'option', from: null }], [...ALL, elsewhere]);
  for (const token of [null, OF_WORK, OF_OTHER]) await ask(token);
  expect(sent()).toEqual([HOME, WORK, HOME]);
});
