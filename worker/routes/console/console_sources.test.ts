import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { ok } from '../../../shared/model/result.ts';
import { signInLinkReply } from '../../../shared/wire/account.ts';
import { sourcesPage } from '../../../shared/wire/secret_sources.ts';
import { isNeeded } from '../../../shared/wire/sources/field_form.ts';
import { fieldsOf, SOURCE_KINDS } from '../../../shared/wire/sources/source_table.ts';
import type { OutboundReply } from '../../kernel/outbound.ts';
import { json } from '../../kernel/testing/json_reply.ts';

const PEM = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' });
/** What a browser makes of lines that are pasted into a field of one line. */
const PASTED = PEM.toString().replaceAll('\n', ' ');
const KEY = 'planted-client-secret-of-the-form';

let control: InProcess;
let cookie = '';
let calls = 0;
let reply: OutboundReply;

beforeEach(async () => {
  calls = 0;
  reply = json(200, { access_token: 'minted-for-nobody', token_type: 'Bearer', expires_in: 600 });
  const call = async () => {
    calls += 1;
    return ok(reply);
  };
  control = await startInProcess({ outbound: { call } });
  const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
  cookie = ((await control.send(url)).headers.get('set-cookie') ?? '').split(';')[0] ?? '';
});
afterEach(() => control.stop());

const open = async (path: string) => (await control.inBrowser(path, { headers: { cookie } })).text();
const post = (path: string, fields: Record<string, string>) =>
  control.inBrowser(path, {
    method: 'POST',
    headers: { cookie, origin: control.consoleOrigin },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });
const list = async () => (await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources'))).items;
const wordsOf = (page: string) =>
  page
    .replace(/^[^]*<main/, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');

const GITHUB = {
  kind: 'github_app',
  path: 'vault://ci/github',
  app_id: '12',
  installation_id: '34',
  repositories: 'one, two',
  permissions: 'contents=read, issues=write',
};
const CLIENT = { kind: 'client_credentials', path: 'ci/build', client_id: 'build', token_url: 'https://id.test/token' };
const AT = '/secrets/source?path=ci%2Fbuild&owner=personal';

test('a borrowed secret has a page without a key, a form or a provider to ask', async () => {
  await control.asUser('POST', '/v1/secret-sources', { path: 'ci/build', source: { kind: 'borrowed' } });
  const page = wordsOf(await open(AT));
  expect(page).toContain('A program on the machine of a developer gives the value, by consent there.');
  expect(page).toContain('Held now not here, but on the machine that uses it');
  expect(page).toContain('Key none');
  expect(page).not.toMatch(/Change|Ask the provider|Dry run/);
  expect(wordsOf(await open('/secrets'))).toContain('borrowed: A program on each machine');
});

describe('the form of a source', () => {
  test.each(SOURCE_KINDS)('asks for each field of %s, and marks what is needed', async (kind) => {
    const page = await open(`/secrets/sources/new?kind=${kind}`);
    for (const [name, { schema }] of Object.entries(fieldsOf(kind))) {
      const element = new RegExp(`<(?:input|select|textarea)[^>]*name="${name}"[^>]*>`).exec(page)?.[0] ?? '';
      expect([name, element === '', / required/.test(element)]).toEqual([name, false, isNeeded(schema)]);
    }
  });

  test('stores what was typed, and a key whose lines became one', async () => {
    const stored = await post('/secrets/sources', { ...GITHUB, key: PASTED, do: 'store', owner: 'personal' });
    expect([stored.status, stored.headers.get('location')]).toEqual([
      303,
      '/secrets/source?path=ci%2Fgithub&owner=personal&done=source_stored',
    ]);
    expect((await list())[0]).toMatchObject({
      ref: 'vault://ci/github',
      source: { repositories: ['one', 'two'], permissions: { contents: 'read', issues: 'write' } },
    });
    const again = await open('/secrets/sources/new?kind=github_app&path=ci/github');
    expect(again).toContain('value="contents=read, issues=write"');
    expect(await open('/secrets/sources/new?kind=jwt_bearer&path=ci/github')).not.toContain('contents=read');
  });

  test.each([
    [{ ...CLIENT, token_url: 'https://10.0.0.7/token' }, 'token_url'],
    [{ ...CLIENT, client_id: '' }, 'client_id'],
    [{ ...CLIENT, client_authentication: 'private_key_jwt' }, 'key'],
    [{ ...CLIENT, path: 'not a path' }, 'path'],
  ])('says beside the field what is wrong with %j, and returns no key', async (fields, wrong) => {
    for (const action of wrong === 'path' ? ['store'] : ['store', 'plan']) {
      const refused = await post('/secrets/sources', { ...fields, key: KEY, do: action });
      const page = await refused.text();
      expect([refused.status, page.includes(`id="${wrong}-problem"`)]).toEqual([400, true]);
      expect(page).not.toContain(KEY);
    }
    expect([await list(), calls]).toEqual([[], 0]);
  });

  test('a dry run says what would be minted, keeps the fields but not the key, and stores nothing', async () => {
    const planned = await post('/secrets/sources', { ...CLIENT, scopes: 'a b', key: KEY, do: 'plan' });
    const page = await planned.text();
    expect(wordsOf(page)).toMatch(/Acts as .*the client build.* Scope .*a, b.* Asked of https:\/\/id\.test\/token/);
    expect(page).toContain('value="https://id.test/token"');
    expect(page).not.toContain(KEY);
    expect([planned.status, await list(), calls]).toEqual([200, [], 0]);
    expect(planned.headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  test('is not sent by another site', async () => {
    const foreign = await control.inBrowser('/secrets/sources', {
      method: 'POST',
      headers: { cookie, origin: 'https://evil.test' },
      body: new URLSearchParams({ ...CLIENT, key: KEY, do: 'store' }),
    });
    expect([foreign.status, await list()]).toEqual([403, []]);
  });
});

describe('the page of a minted secret', () => {
  beforeEach(() => post('/secrets/sources', { ...CLIENT, key: KEY, do: 'store' }));

  test('says what mints it, that none is held, and what would be minted', async () => {
    const text = wordsOf(await open(AT));
    expect(text).toMatch(/Held now none.* Last minted not yet Last failure none .* Used by nothing/);
    expect(text).toMatch(/OAuth client .*Client id .*build/);
    const planned = await open(`${AT}&plan=1`);
    expect(wordsOf(planned)).toContain('the provider decides');
    expect([planned.includes(KEY), calls]).toEqual([false, 0]);
    expect(wordsOf(await open('/secrets'))).toContain('minted: OAuth client');
  });

  test('asks the provider on request, discards the value, and says what a refusal means', async () => {
    const page = await (await post('/secrets/source', { path: 'ci/build', owner: 'personal' })).text();
    expect(wordsOf(page)).toMatch(/issued a value for .* it was discarded/);
    expect(page).not.toMatch(/minted-for-nobody/);
    reply = json(400, { error: 'invalid_client', error_description: KEY });
    const refused = await (await post('/secrets/source', { path: 'ci/build', owner: 'personal' })).text();
    expect(wordsOf(refused)).toContain('id.test refused: invalid_client (it does not accept the client');
    expect(refused).not.toContain(KEY);
  });

  test('does not exist without a source', async () => {
    for (const path of [AT.replace('build', 'other'), AT.replace('personal', 'enterprise')]) {
      expect((await control.inBrowser(path, { headers: { cookie } })).status).toBe(404);
    }
  });
});
