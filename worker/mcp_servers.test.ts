import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { addUser, type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import type { AuditEventType } from '../shared/model/audit_event.ts';
import { meReply } from '../shared/wire/account.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { CREDENTIALS_TYP, credentialsPayload, SNAPSHOT_TYP, snapshotPayload } from '../shared/wire/channel.ts';
import { ERROR_STATUS, errorBody } from '../shared/wire/errors.ts';
import {
  mcpCredentialReply,
  mcpRevisionsReply,
  mcpServerInput,
  mcpServerRecord,
  type McpServerRecord,
  mcpServersPage,
  readSnapshotMcpServers,
} from '../shared/wire/mcp/mcp_servers.ts';
import { secretsPage } from '../shared/wire/secrets.ts';
import { storeMcpCredential } from './services/mcp/mcp_credentials.ts';
import { createMcpServer, getMcpServer, putMcpServer, removeMcpServer } from './services/mcp/mcp_servers.ts';
import { Secret } from '../shared/model/secret.ts';

const VALUE = `planted-${randomBytes(20).toString('hex')}`;
const LOCAL = { name: 'files', command: ['npx', '-y', '@acme/files@1.2.3', '/srv'], env: { LOG_LEVEL: 'info' } };
const REMOTE = {
  name: 'hub',
  mode: 'remote',
  url: 'https://mcp.example.test/mcp',
  headers: { Authorization: 'Bearer vault://mcp-servers/{id}/TOKEN' },
};

let control: InProcess;
beforeEach(async () => {
  control = await startInProcess();
  return control.stop;
});

const post = (body: object) => control.asUser('POST', '/v1/mcp-servers', body);
const create = (body: object) => parseReply(mcpServerRecord, post(body));
const got = (id: string) => parseReply(mcpServerRecord, control.asUser('GET', `/v1/mcp-servers/${id}`));
const put = (id: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
  control.asUser('PUT', `/v1/mcp-servers/${id}`, body, headers);
const credential = (id: string, name: string, value = VALUE) =>
  control.asUser('POST', `/v1/mcp-servers/${id}/credentials`, { env_var_name: name, secret_value: value });
const events = async (type: AuditEventType) =>
  (await parseReply(auditEventsPage, control.asUser('GET', `/v1/audit-events?type=${type}`))).items;
const secretPaths = async () =>
  (await parseReply(secretsPage, control.asUser('GET', '/v1/secrets'))).items.map(({ path }) => path);

async function refusal(answered: Response | Promise<Response>) {
  const { error } = errorBody.parse(await (await answered).json());
  expect((await answered).status).toBe(ERROR_STATUS[error.code]);
  return error;
}

async function snapshot(sidecar: TestSidecar) {
  const reply = await sidecar.call('GET', '/v1/sidecar/snapshot');
  return sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
}

async function release(sidecar: TestSidecar, paths: readonly string[]) {
  const credentials = paths.map((path) => ({ owner: 'personal', path }));
  const body = { request_id: crypto.randomUUID(), credentials };
  const reply = await sidecar.call('POST', '/v1/sidecar/credentials', { body });
  return sidecar.verify(await reply.text(), CREDENTIALS_TYP, credentialsPayload);
}

describe('registering a server', () => {
  test('returns its record: stopped, as the specification says, with what is known about it', async () => {
    const reply = await post({ ...LOCAL, description: 'Files of a test', version: '1.2.3', registry_id: 'acme/files' });
    expect(reply.status).toBe(201);
    expect(Number(reply.headers.get('svc-policy-version'))).toBeGreaterThan(0);
    const server = await parseReply(mcpServerRecord, reply);
    expect(server).toMatchObject({
      name: 'files',
      mode: 'local',
      status: 'stopped',
      health: null,
      registry_id: 'acme/files',
      version: '1.2.3',
      tools: { allow: null, deny: [], approval: [] },
      enabled: true,
      revision: 1,
      credentials: [],
    });
    expect(await got(server.id)).toEqual(server);
    const { items } = await parseReply(mcpServersPage, control.asUser('GET', '/v1/mcp-servers?name=files'));
    expect(items).toEqual([server]);
    expect(await events('control.mcp_server.created')).toMatchObject([
      { data: { 'svc.mcp.server': 'files', 'svc.mcp.server_id': server.id, 'svc.mcp.version': '1.2.3' } },
    ]);
  });

  test('is replaced with the revision that was read, and not over what somebody changed meanwhile', async () => {
    const { id, revision } = await parseReply(mcpServerRecord, post(LOCAL));
    const theirs = await parseReply(mcpServerRecord, put(id, { ...LOCAL, tools: { deny: ['drop_*'] }, revision }));
    const error = await refusal(put(id, { ...LOCAL, description: 'mine', revision }));
    expect(error).toMatchObject({ code: 'conflict', message: expect.stringContaining('Read it again') });
    expect((await parseReply(mcpServerRecord, control.asUser('GET', `/v1/mcp-servers/${id}`))).tools).toEqual(
      theirs.tools,
    );
    expect(await refusal(post({ ...LOCAL, name: 'other', revision }))).toMatchObject({ code: 'invalid_input' });
  });

  test('takes the revision that was read as If-Match too', async () => {
    const { id } = await create(LOCAL);
    const changed = { ...LOCAL, tools: { deny: ['drop_*'] } };
    expect(await parseReply(mcpServerRecord, put(id, changed, { 'if-match': '"1"' }))).toMatchObject({ revision: 2 });
    const mine = { ...LOCAL, description: 'mine' };
    expect(await refusal(put(id, mine, { 'if-match': '"1"' }))).toMatchObject({ code: 'conflict' });
    expect(await refusal(put(id, { ...mine, revision: 2 }, { 'if-match': '"1"' }))).toMatchObject({
      code: 'invalid_input',
      message: 'If-Match is not the revision of the body: send one of them',
    });
    expect(await got(id)).toMatchObject({ revision: 2, tools: { deny: ['drop_*'] } });
    expect((await put(id, { ...mine, revision: 2 }, { 'if-match': '"2"' })).status).toBe(200);
    expect((await put(id, LOCAL, { 'if-match': '*' })).status).toBe(200);
  });

  test.each(['1', '""', 'W/"1"', '"1", "2"', '"01"', '"0"', '"1.0"', '"1e0"', '"abc"', ''])(
    'refuses If-Match: %s, and names it',
    async (value) => {
      const { id } = await create(LOCAL);
      const error = await refusal(put(id, { ...LOCAL, description: 'mine' }, { 'if-match': value }));
      expect(error).toMatchObject({
        code: 'invalid_input',
        message: 'If-Match is not one revision in double quotes: write it as "3"',
        details: { fields: [{ field: 'If-Match' }] },
      });
      expect((await got(id)).revision).toBe(1);
    },
  );

  test("puts the server's id into references, and lists the credentials it needs", async () => {
    const server = await create(REMOTE);
    expect(server.transport).toBe('streamable-http');
    expect(server.headers).toEqual({ Authorization: `Bearer vault://mcp-servers/${server.id}/TOKEN` });
    expect(server.credentials).toEqual([{ name: 'TOKEN', required: true, set: false, updated_at: null }]);
  });

  test('refuses a name that the owner already uses, for concurrent requests too', async () => {
    const { id } = await create(LOCAL);
    expect(await refusal(post({ ...REMOTE, name: 'files' }))).toMatchObject({
      code: 'name_taken',
      details: { server_id: id },
    });
    expect((await post({ ...LOCAL, owner: 'enterprise' })).status).toBe(201);
    const two = await Promise.all([post({ ...LOCAL, name: 'twice' }), post({ ...LOCAL, name: 'twice' })]);
    expect(two.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409]);
  });

  const REFUSED: readonly (readonly [object, string, RegExp])[] = [
    [{ command: ['bash', '-c', 'curl evil'] }, 'command', /shell/],
    [{ command: ['node', '-e', 'evil()'] }, 'command', /node/],
    [{ command: ['docker', 'run', '--privileged', 'image'] }, 'command', /privileged/],
    [{ env: { LD_PRELOAD: '/tmp/evil.so' } }, 'env', /LD_PRELOAD/],
    [{ env: { KEY: `vault://mcp-servers/mcp_${'0'.repeat(26)}/KEY` } }, 'env.KEY', /another server/],
    [{ env: { KEY: 'vault://user/demo' } }, 'env.KEY', /not the server's own/],
    [{ command: ['x', 'vault://mcp-servers/{id}/Avault://mcp-servers/{id}/B'] }, 'command.1', /runs into the next/],
  ];
  test('refuses a configuration that would run anything else or read other secrets', async () => {
    for (const [changes, field, message] of REFUSED) {
      const error = await refusal(post({ ...LOCAL, ...changes }));
      expect([changes, error]).toMatchObject([{}, { code: 'invalid_input', details: { fields: [{ field }] } }]);
      expect(JSON.stringify(error.details)).toMatch(message);
    }
    expect((await parseReply(mcpServersPage, control.asUser('GET', '/v1/mcp-servers'))).items).toEqual([]);
  });

  test('warns of risks in the command', async () => {
    const unknown = await create({ name: 'unknown', command: ['erl', '-eval', 'x'] });
    expect(unknown.warnings).toMatchObject([
      { code: 'unchecked_code', message: expect.stringContaining('the server runs code that nobody checked') },
    ]);
    expect((await events('control.mcp_server.created'))[0]?.data).toMatchObject({ 'svc.mcp.unchecked': true });
    const { warnings } = await create({ ...LOCAL, command: ['npx', '-y', '@acme/files'] });
    expect((await events('control.mcp_server.created'))[0]?.data).not.toHaveProperty(['svc.mcp.unchecked']);
    expect(warnings.map(({ code }) => code)).toContain('unpinned_version');
    expect(warnings[0]?.message).toMatch(/^the server /);
  });
});

describe('changing a server', () => {
  test('replaces every field and keeps the previous configuration', async () => {
    const { id } = await create({ ...LOCAL, description: 'one', registry_id: 'acme/files' });
    const second = await parseReply(mcpServerRecord, put(id, { ...LOCAL, name: 'renamed', enabled: false }));
    expect(second).toMatchObject({ description: '', name: 'renamed', enabled: false, revision: 2, id });
    expect(second.registry_id).toBe('acme/files');
    const revisions = await parseReply(mcpRevisionsReply, control.asUser('GET', `/v1/mcp-servers/${id}/revisions`));
    expect(revisions.items.map(({ revision, configuration }) => [revision, configuration.description])).toEqual([
      [2, ''],
      [1, 'one'],
    ]);
  });

  test('with the same configuration changes nothing', async () => {
    const { id } = await create(LOCAL);
    const again = await parseReply(mcpServerRecord, put(id, { registry_id: null, ...LOCAL, enabled: true }));
    expect(again.revision).toBe(1);
    expect(await events('control.mcp_server.updated')).toEqual([]);
  });

  test('keeps the last 20 configurations, and restores one of them', async () => {
    const { id } = await create(LOCAL);
    for (let number = 2; number <= 25; number += 1) await put(id, { ...LOCAL, description: `number ${number}` });
    const revisions = await parseReply(mcpRevisionsReply, control.asUser('GET', `/v1/mcp-servers/${id}/revisions`));
    expect([revisions.items.length, revisions.items[0]?.revision, revisions.items.at(-1)?.revision]).toEqual([
      20, 25, 6,
    ]);
    const rollback = (revision: number) => control.asUser('POST', `/v1/mcp-servers/${id}/rollback`, { revision });
    const back = await parseReply(mcpServerRecord, rollback(7));
    expect([back.revision, back.description]).toEqual([26, 'number 7']);
    expect(await refusal(rollback(1))).toMatchObject({ code: 'not_found' });
  });

  test('with a command that is refused by now can only disable it', async () => {
    const { id } = await create(LOCAL);
    const { client } = control.context.database;
    await client.execute(`UPDATE mcp_servers SET record = replace(record, '"npx"', '"bash"')`);
    const bash = { ...LOCAL, command: ['bash', ...LOCAL.command.slice(1)] };
    expect((await refusal(put(id, { ...bash, description: 'other' }))).message).toMatch(/shell/);
    expect((await refusal(put(id, { ...bash, enabled: false, env: {} }))).message).toMatch(/shell/);
    expect((await parseReply(mcpServerRecord, put(id, { ...bash, enabled: false }))).enabled).toBe(false);
  });

  test('cannot change its owner', async () => {
    const { id } = await create(LOCAL);
    expect(await refusal(put(id, { ...LOCAL, owner: 'enterprise' }))).toMatchObject({
      code: 'invalid_input',
      details: { fields: [{ field: 'owner' }] },
    });
  });
});

describe('a credential', () => {
  test('replaces the env entry of a local server by a reference', async () => {
    const { id } = await create({ ...LOCAL, env: { TOKEN: 'typed-by-mistake' } });
    expect(await parseReply(mcpCredentialReply, credential(id, 'TOKEN'))).toEqual({
      env_var_name: 'TOKEN',
      stored: true,
    });
    const server = await got(id);
    expect(server.env).toEqual({ TOKEN: `vault://mcp-servers/${id}/TOKEN` });
    expect(server.credentials).toMatchObject([{ name: 'TOKEN', required: true, set: true }]);
    expect(await secretPaths()).toEqual([`mcp-servers/${id}/TOKEN`]);
    expect(await events('control.mcp_server.credential_stored')).toMatchObject([
      { data: { 'svc.control.credential_ref': `vault://mcp-servers/${id}/TOKEN` } },
    ]);
  });

  test('that was typed into the configuration is removed from the earlier revisions', async () => {
    const { id } = await create({ ...LOCAL, env: { TOKEN: VALUE, LOG_LEVEL: 'info' } });
    await put(id, { ...LOCAL, env: { TOKEN: VALUE } });
    await credential(id, 'TOKEN', 'another-value');
    const revisions = await (await control.asUser('GET', `/v1/mcp-servers/${id}/revisions`)).text();
    expect(mcpRevisionsReply.parse(JSON.parse(revisions)).items).toHaveLength(3);
    expect(revisions).not.toContain(VALUE);
    const back = await parseReply(
      mcpServerRecord,
      control.asUser('POST', `/v1/mcp-servers/${id}/rollback`, { revision: 1 }),
    );
    expect(back.env).toEqual({ TOKEN: `vault://mcp-servers/${id}/TOKEN`, LOG_LEVEL: 'info' });
  });

  test('does not change a configuration that refers to it elsewhere', async () => {
    const { id } = await create({ ...LOCAL, env: { AUTH: 'Bearer vault://mcp-servers/{id}/TOKEN' } });
    await credential(id, 'TOKEN');
    expect(await got(id)).toMatchObject({ revision: 1, env: { AUTH: `Bearer vault://mcp-servers/${id}/TOKEN` } });
  });

  test('of a remote server must be referred to', async () => {
    const { id } = await create(REMOTE);
    expect((await credential(id, 'TOKEN')).status).toBe(200);
    expect((await refusal(credential(id, 'OTHER'))).message).toMatch(/it refers to TOKEN/);
  });

  test('cannot have the name of a variable that controls the program or the service', async () => {
    const { id } = await create(LOCAL);
    for (const name of ['SVC_OAUTH', 'LD_PRELOAD', 'a-b', '']) {
      expect([name, (await refusal(credential(id, name))).code]).toEqual([name, 'invalid_input']);
    }
    expect(await secretPaths()).toEqual([]);
  });

  test('is deleted only through the server, and with it', async () => {
    const { id } = await create(LOCAL);
    await credential(id, 'TOKEN');
    await credential(id, 'OTHER');
    expect(await refusal(control.asUser('DELETE', `/v1/secrets/mcp-servers/${id}/TOKEN`))).toMatchObject({
      code: 'secret_in_use',
      details: { mcp_servers: [{ id, name: 'files' }] },
    });
    const unset = (name: string) => control.asUser('DELETE', `/v1/mcp-servers/${id}/credentials/${name}`);
    expect((await unset('OTHER')).status).toBe(204);
    expect((await refusal(unset('OTHER'))).code).toBe('not_found');
    expect((await got(id)).credentials.map(({ name, set }) => [name, set])).toEqual([
      ['OTHER', false],
      ['TOKEN', true],
    ]);
    expect((await control.asUser('DELETE', `/v1/mcp-servers/${id}`)).status).toBe(204);
    expect(await secretPaths()).toEqual([]);
    expect(await events('control.mcp_server.credential_deleted')).toHaveLength(2);
    const { rows } = await control.context.database.client.execute(
      'SELECT (SELECT count(*) FROM mcp_references) + (SELECT count(*) FROM mcp_server_revisions) AS n',
    );
    expect(rows[0]?.['n']).toBe(0);
  });

  test.each([
    ['another URL', REMOTE, { ...REMOTE, url: 'https://elsewhere.example.test/mcp' }],
    ['another path of its host', REMOTE, { ...REMOTE, url: 'https://mcp.example.test/somebody-else' }],
    ['a program', REMOTE, { ...LOCAL, env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } }],
    ['a URL, once it was a program', { ...LOCAL, env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } }, REMOTE],
  ])(
    'is deleted when its target changes: the server that becomes %s no longer has it',
    async (_what, before, after) => {
      const sidecar = await control.enrolSidecar();
      const { id } = await create(before);
      await credential(id, 'TOKEN');
      const server = await parseReply(mcpServerRecord, put(id, after));
      expect(server.credentials).toEqual([{ name: 'TOKEN', required: true, set: false, updated_at: null }]);
      expect(await secretPaths()).toEqual([]);
      expect(await events('control.mcp_server.credential_deleted')).toHaveLength(1);
      const path = `mcp-servers/${id}/TOKEN`;
      expect((await release(sidecar, [path])).credentials).toEqual([]);
      await control.asUser('POST', `/v1/mcp-servers/${id}/rollback`, { revision: 1 });
      expect((await got(id)).credentials).toMatchObject([{ name: 'TOKEN', set: false }]);
    },
  );

  test('is kept while the server has the same target', async () => {
    const { id } = await create(REMOTE);
    await credential(id, 'TOKEN');
    await put(id, {
      ...REMOTE,
      name: 'other',
      url: `${REMOTE.url}?page=2`,
      headers: { ...REMOTE.headers, 'X-Team': 'a' },
    });
    expect((await got(id)).credentials).toMatchObject([{ name: 'TOKEN', set: true }]);
    const local = await create({ ...LOCAL, env: { TOKEN: 'vault://mcp-servers/{id}/TOKEN' } });
    await credential(local.id, 'TOKEN');
    await put(local.id, { ...LOCAL, command: [...LOCAL.command, '/more'], env: local.env });
    expect((await got(local.id)).credentials).toMatchObject([{ name: 'TOKEN', set: true }]);
  });

  test('cannot be written by anything else: its place in the vault is reserved', async () => {
    const { id } = await create(LOCAL);
    const body = { path: `mcp-servers/${id}/TOKEN`, value: VALUE };
    expect((await refusal(control.asUser('POST', '/v1/secrets', body))).code).toBe('invalid_input');
  });

  test('appears in no reply, log line or readable byte of the database', async () => {
    const { id } = await create({ ...LOCAL, command: [...LOCAL.command, '--key=vault://mcp-servers/{id}/KEY'] });
    const texts: string[] = [];
    for (const reply of [
      credential(id, 'KEY'),
      credential(id, 'TOKEN'),
      control.asUser('GET', `/v1/mcp-servers/${id}`),
      control.asUser('GET', `/v1/mcp-servers/${id}/revisions`),
      control.asUser('GET', '/v1/audit-events'),
      control.asUser('GET', '/v1/secrets'),
      control.asUser('POST', `/v1/mcp-servers/${id}/credentials`, {
        env_var_name: VALUE,
        secret_value: VALUE,
        x: VALUE,
      }),
    ]) {
      texts.push(await (await reply).text());
    }
    expect(texts.filter((text) => text.includes(VALUE))).toEqual([]);
    expect(JSON.stringify(control.log)).not.toContain(VALUE);
    expect((await control.databaseBytes()).includes(VALUE)).toBe(false);
  });
});

describe('a sidecar', () => {
  test('receives the servers of its user, and the credentials that they refer to', async () => {
    const { id } = await create(REMOTE);
    await create({ ...LOCAL, owner: 'enterprise' });
    await credential(id, 'TOKEN');
    const sidecar = await control.enrolSidecar();
    const held = await snapshot(sidecar);
    const { servers, problems } = readSnapshotMcpServers(held.mcp_servers);
    expect(problems).toEqual([]);
    expect(servers.map(({ server }) => [server.owner, server.name, server.transport])).toEqual([
      ['enterprise', 'files', null],
      ['personal', 'hub', 'streamable-http'],
    ]);
    const path = `mcp-servers/${id}/TOKEN`;
    expect(held.credentials).toMatchObject([{ owner: 'personal', path }]);
    const released = await release(sidecar, [path, `mcp-servers/${id}/OTHER`]);
    expect(await sidecar.unseal(released.credentials[0]?.sealed ?? '')).toEqual({ value: VALUE });
    expect(released.missing).toEqual([{ owner: 'personal', path: `mcp-servers/${id}/OTHER` }]);
  });

  test('does not receive a credential that nothing refers to any more', async () => {
    const { id } = await create(LOCAL);
    await credential(id, 'TOKEN');
    await put(id, LOCAL);
    const sidecar = await control.enrolSidecar();
    expect((await snapshot(sidecar)).credentials).toEqual([]);
    expect((await release(sidecar, [`mcp-servers/${id}/TOKEN`])).credentials).toEqual([]);
  });

  test('reports what runs on its machine, visible to its own user', async () => {
    const { id } = await create({ ...LOCAL, owner: 'enterprise' });
    const sidecar = await control.enrolSidecar();
    const say = (state: string, checkedAt: number, lastError: string | null = null) => {
      const known = { id, state, last_error: lastError, checked_at: new Date(checkedAt).toISOString() };
      const body = { servers: [known, { ...known, id: `mcp_${'0'.repeat(26)}` }] };
      return sidecar.call('POST', '/v1/sidecar/mcp-health', { body });
    };
    expect((await say('failed', control.clock.now() + 3_600_000, 'it\nended')).status).toBe(204);
    expect((await got(id)).health).toMatchObject({ state: 'failed', last_error: 'it ended' });
    expect(Date.parse((await got(id)).health?.checked_at ?? '')).toBeLessThanOrEqual(control.clock.now());
    await say('running', control.clock.now());
    expect((await got(id)).health?.state).toBe('running');
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const colleague = await addUser(control.context, me.enterprise_id);
    expect(await getMcpServer(control.context, colleague, id)).toMatchObject({ ok: true, value: { health: null } });
    control.clock.ms += 6 * 60_000;
    expect((await got(id)).health?.state).toBe('unknown');
    await control.asUser('DELETE', `/v1/sidecars/${sidecar.enrolled.sidecar_id}`);
    expect((await got(id)).health).toBeNull();
  });
});

const sayRefused = (sidecar: TestSidecar, id: string, hosts?: readonly string[]) => {
  const at = new Date(control.clock.now()).toISOString();
  const known = { id, state: 'running', last_error: null, checked_at: at };
  const body = { servers: [{ ...known, ...(hosts && { refused_hosts: hosts }) }] };
  return sidecar.call('POST', '/v1/sidecar/mcp-health', { body });
};

describe('hosts that a server was refused', () => {
  test('are of all machines of its user, until a report has none', async () => {
    const { id } = await create({ ...LOCAL, owner: 'enterprise' });
    const [one, two] = [await control.enrolSidecar(), await control.enrolSidecar()];
    await sayRefused(one, id, ['a.test', 'b.test:8443']);
    control.clock.ms += 1;
    await sayRefused(two, id, ['c.test', 'a.test']);
    expect((await got(id)).health?.refused_hosts).toEqual(['c.test', 'a.test', 'b.test:8443']);
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    const colleague = await addUser(control.context, me.enterprise_id);
    expect(await getMcpServer(control.context, colleague, id)).toMatchObject({ ok: true, value: { health: null } });
    await sayRefused(one, id);
    await sayRefused(two, id);
    expect((await got(id)).health?.refused_hosts).toEqual([]);
  });

  test('are left out if they are no hosts, and too many are refused', async () => {
    const { id } = await create(LOCAL);
    const sidecar = await control.enrolSidecar();
    const texts = ['$(id).test', 'a.test; rm -rf ~', 'A.test', '*.test', '<b>', 'a.test\nb', 'ok.test'];
    expect((await sayRefused(sidecar, id, texts)).status).toBe(204);
    expect((await got(id)).health?.refused_hosts).toEqual(['ok.test']);
    const many = Array.from({ length: 51 }, (_, index) => `h${index}.test`);
    expect((await sayRefused(sidecar, id, many)).status).toBe(400);
  });
});

describe('a server of the enterprise', () => {
  const input = mcpServerInput.parse({ ...LOCAL, owner: 'enterprise' });

  test('is visible to its members and changed by its admins', async () => {
    const admin = await addUser(control.context, null);
    const member = await addUser(control.context, admin.enterpriseId);
    const created = await createMcpServer(control.context, admin, input);
    if (!created.ok) throw new Error(created.error.message);
    const server: McpServerRecord = created.value.value;
    const own = await getMcpServer(control.context, member, server.id);
    expect(own).toMatchObject({ ok: true, value: { id: server.id, owner: 'enterprise' } });
    const attempts = [
      createMcpServer(control.context, member, input),
      putMcpServer(control.context, member, server.id, input),
      removeMcpServer(control.context, member, server.id),
      storeMcpCredential(control.context, member, server.id, { name: 'TOKEN', value: new Secret(VALUE) }),
    ];
    for (const attempt of attempts)
      expect(await attempt).toMatchObject({ ok: false, error: { code: 'admin_required' } });
  });

  test('of another enterprise or user is not found', async () => {
    const { id } = await create(LOCAL);
    const stranger = await addUser(control.context, null);
    expect(await getMcpServer(control.context, stranger, id)).toMatchObject({ error: { code: 'not_found' } });
    expect(await removeMcpServer(control.context, stranger, id)).toMatchObject({ error: { code: 'not_found' } });
  });
});
