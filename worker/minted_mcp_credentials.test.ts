import { afterEach, beforeEach, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { ok } from '../shared/model/result.ts';
import { signInLinkReply } from '../shared/wire/account.ts';
import { CREDENTIALS_TYP, credentialsPayload, sealedCredential } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { mcpServerRecord } from '../shared/wire/mcp/mcp_servers.ts';
import { sourcesPage } from '../shared/wire/secret_sources.ts';

// A credential of an MCP server that its provider mints (decision 0175).

const SOURCE = {
  kind: 'client_credentials',
  token_url: 'https://idp.example.com/token',
  client_id: 'ci',
  scopes: ['tools'],
};
const REMOTE = {
  name: 'tools',
  mode: 'remote',
  url: 'https://tools.example.com/mcp',
  headers: { Authorization: 'Bearer vault://mcp-servers/{id}/TOKEN' },
};

let control: InProcess;
let sidecar: TestSidecar;
let minted: number;
let id: string;

beforeEach(async () => {
  minted = 0;
  control = await startInProcess({
    outbound: {
      call: () => {
        minted += 1;
        const issued = { access_token: `minted-${minted}-secret`, token_type: 'Bearer', expires_in: 600 };
        const body = new TextEncoder().encode(JSON.stringify(issued));
        return Promise.resolve(ok({ status: 200, contentType: 'application/json', body }));
      },
    },
  });
  sidecar = await control.enrolSidecar();
  ({ id } = await parseReply(mcpServerRecord, control.asUser('POST', '/v1/mcp-servers', REMOTE)));
});
afterEach(() => control.stop());

const pathOf = (name = 'TOKEN', server = id) => `mcp-servers/${server}/${name}`;
const store = (path: string, more: object = {}) =>
  control.asUser('POST', '/v1/secret-sources', { path, source: SOURCE, key: 'the-client-secret', ...more });
const listSources = async () => (await parseReply(sourcesPage, control.asUser('GET', '/v1/secret-sources'))).items;

async function release() {
  const credentials = [{ owner: 'personal', path: pathOf() }];
  const body = { request_id: crypto.randomUUID(), credentials };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  const payload = await sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
  const [credential] = payload.credentials;
  if (credential === undefined) return null;
  const { value } = sealedCredential.parse(await sidecar.unseal(credential.sealed));
  return { value, until: Date.parse(credential.expires_at ?? '') };
}

test('is released with its end, and counts as stored', async () => {
  expect((await store(pathOf())).status).toBe(201);
  const record = await parseReply(mcpServerRecord, control.asUser('GET', `/v1/mcp-servers/${id}`));
  expect(record.credentials).toMatchObject([{ name: 'TOKEN', set: true }]);
  expect(await release()).toEqual({ value: 'minted-1-secret', until: control.clock.now() + 600_000 });
  control.clock.ms += 595_000;
  expect(await release()).toMatchObject({ value: 'minted-2-secret' });
});

test.each([
  ['a name that nothing of the server refers to', () => pathOf('OTHER'), 'nothing in the configuration of tools'],
  ['a server that is not there', () => pathOf('TOKEN', 'mcp_00000000000000000000000001'), 'does not have'],
  ['the access token of a sign-in', () => pathOf('SVC_OAUTH'), 'reserved'],
  ['another path of the service', () => 'connectors/acme/items', 'reserved'],
])('is refused for %s', async (_, path, why) => {
  const reply = await store(path());
  expect(reply.status).toBe(400);
  expect(errorBody.parse(await reply.json()).error.message).toContain(why);
  expect(await listSources()).toEqual([]);
});

test('is refused for the server of another owner', async () => {
  const reply = await store(pathOf(), { owner: 'enterprise' });
  expect(reply.status).toBe(400);
  expect(await listSources()).toEqual([]);
});

test('is refused of a program of the machine, which gives no value to a server', async () => {
  const reply = await control.asUser('POST', '/v1/secret-sources', { path: pathOf(), source: { kind: 'borrowed' } });
  expect(reply.status).toBe(400);
  expect(errorBody.parse(await reply.json()).error.message).toContain('cannot use a borrowed secret');
});

test('is dropped with its source when the URL of the server changes', async () => {
  await store(pathOf());
  const moved = { ...REMOTE, url: 'https://elsewhere.example.com/mcp' };
  expect((await control.asUser('PUT', `/v1/mcp-servers/${id}`, moved)).status).toBe(200);
  expect([await listSources(), await release(), minted]).toEqual([[], null, 0]);
});

test('is replaced by a value that is stored, and deleted with the credential', async () => {
  await store(pathOf());
  const value = { env_var_name: 'TOKEN', secret_value: 'a-stored-value' };
  expect((await control.asUser('POST', `/v1/mcp-servers/${id}/credentials`, value)).ok).toBe(true);
  expect([await listSources(), (await release())?.value]).toEqual([[], 'a-stored-value']);
  await store(pathOf());
  expect((await control.asUser('DELETE', `/v1/mcp-servers/${id}/credentials/TOKEN`)).ok).toBe(true);
  expect([await listSources(), await release(), minted]).toEqual([[], null, 0]);
});

test('is set up in the console, from the page of its server and back', async () => {
  const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
  const cookie = ((await control.send(url)).headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const open = async (path: string) => (await control.inBrowser(path, { headers: { cookie } })).text();
  const at = new URLSearchParams({ path: pathOf(), owner: 'personal' }).toString();
  expect(await open(`/mcp-servers/${id}`)).toContain(`href="/secrets/sources/new?${at.replace('&', '&amp;')}"`);
  const form = await open(`/secrets/sources/new?${at}`);
  expect(form).toContain(`value="${pathOf()}"`);
  expect(form).toContain(`<a class="button" href="/mcp-servers/${id}">Cancel</a>`);
  const { scopes, ...fields } = SOURCE;
  const body = new URLSearchParams({ ...fields, scopes: scopes.join(' '), path: pathOf(), key: 'k', do: 'store' });
  const sent = {
    method: 'POST',
    headers: { cookie, origin: control.consoleOrigin },
    body,
    redirect: 'manual',
  } as const;
  const stored = await control.inBrowser('/secrets/sources', sent);
  expect([stored.status, stored.headers.get('location')]).toEqual([303, expect.stringContaining('/secrets/source?')]);
  const page = await open(stored.headers.get('location') ?? '');
  expect(page).toContain(`href="/mcp-servers/${id}/credentials/delete?name=TOKEN"`);
  const server = await open(`/mcp-servers/${id}`);
  expect(server).toContain('Minted');
  expect(server).toContain(`href="/secrets/source?${at.replace('&', '&amp;')}"`);
  expect(server).not.toContain('/secrets/sources/new');
});
