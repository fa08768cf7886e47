import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import type { AccountChoice, ChosenSecret } from '../../shared/model/account_choice.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
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
  choose({ secrets: SECRETS, hosts: [HOST] });
});
afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

function choose(choice: AccountChoice): void {
  plane.scopes.set('chosen', { ...plane.session, choice });
}

/** Sends a request; `token` is what the client puts in the place of its credential. */
async function ask(token: string | null, { method = 'GET', path = '/' } = {}): Promise<string> {
  const client = await plane.open(HOST, HOST, 'chosen');
  const line = token === null ? '' : `Authorization: Bearer ${token}\r\n`;
  client.write(`${method} ${path} HTTP/1.1\r\nHost: ${HOST}\r\n${line}\r\n`);
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

  test('runs no operation with the credential of another account', async () => {
    const operation = sampleOperation();
    const of = (path: string) =>
      sampleConnector([operation], { hosts: [HOST], credential: { owner: 'personal', path } });
    plane.policy.use(ALL, [of('user/home')]);
    expect(await ask(null, { path: '/items/7' })).toMatch(/^HTTP\/1\.1 403 .*"code":"account_not_chosen"/s);
    expect(seen).toEqual([]);
    plane.policy.use(ALL, [of('user/work')]);
    await ask(null, { path: '/items/7' });
    expect(sent()).toEqual([WORK]);
  });
});

describe('a session that chose two accounts', () => {
  test('uses the one that a request names, and otherwise the first', async () => {
    choose({ secrets: [...SECRETS, { path: 'user/home', by: 'folder', from: '/work' }], hosts: [HOST] });
    plane.policy.use([swapped('user/home', 'placeholder-of-home'), HOME_BINDING, swapped('user/work', OF_WORK)]);
    for (const token of ['placeholder-of-home', OF_WORK, null]) await ask(token);
    expect(sent()).toEqual([HOME, WORK, WORK]);
  });
});

test('a choice about other hosts changes nothing', async () => {
  choose({ secrets: [{ path: 'user/elsewhere', by: 'option', from: null }], hosts: ['b.example.test'] });
  for (const token of [null, OF_WORK, OF_OTHER]) await ask(token);
  expect(sent()).toEqual([HOME, WORK, HOME]);
});
