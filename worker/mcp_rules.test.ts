import { beforeEach, expect, test } from 'vitest';
import { addUser, type InProcess, parseReply, startInProcess } from '../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../e2e/runtimes/sidecar_client.ts';
import { auditEventsPage } from '../shared/wire/audit_events.ts';
import { SNAPSHOT_TYP, snapshotPayload } from '../shared/wire/channel.ts';
import { errorBody } from '../shared/wire/errors.ts';
import { mcpRulesCheck, mcpRulesInput, mcpRulesRecord } from '../shared/wire/mcp/mcp_rules.ts';
import { mcpServerInput, mcpServerRecord, readSnapshotMcpServers } from '../shared/wire/mcp/mcp_servers.ts';
import type { Caller } from './kernel/caller.ts';
import { checkMcpRules, describeMcpRules, replaceMcpRules } from './services/mcp/mcp_rules.ts';
import {
  createMcpServer,
  getMcpServer,
  planConfiguration,
  putMcpServer,
  visibleMcpServer,
} from './services/mcp/mcp_servers.ts';
import { configurationOf } from './services/mcp/mcp_configuration.ts';
import { putMcpRules } from './store/mcp/mcp_rules.ts';
import { listServedServers } from './services/mcp/served/served_servers.ts';

const FILES = { name: 'files', command: ['npx', '-y', '@acme/files@1.2.3'] };
const REMOTE = { name: 'wiki', mode: 'remote', url: 'https://mcp.wiki.test/mcp' };

let control: InProcess;
let sidecar: TestSidecar;
beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
  return control.stop;
});

const create = (body: object) => control.asUser('POST', '/v1/mcp-servers', body);
const put = (rules: object) => parseReply(mcpRulesRecord, control.asUser('PUT', '/v1/mcp-rules', rules));
const check = async (rules: object) =>
  (await parseReply(mcpRulesCheck, control.asUser('POST', '/v1/mcp-rules/check', rules))).items;

async function snapshotServers() {
  const reply = await sidecar.call('GET', '/v1/sidecar/snapshot');
  const { mcp_servers: records } = await sidecar.verify(await reply.text(), SNAPSHOT_TYP, snapshotPayload);
  return { records, ...readSnapshotMcpServers(records) };
}

test('a server that breaks a rule is named before the rule is saved, and is disabled in the next policy, with the reason', async () => {
  const { id } = await parseReply(mcpServerRecord, create(FILES));
  await create({ ...FILES, name: 'off', enabled: false });
  const rules = { sources: ['npm:@other/*'] };
  expect(await check(rules)).toMatchObject([{ id, name: 'files', owner: 'personal' }]);
  expect((await snapshotServers()).servers[0]?.server.enabled).toBe(true);
  await put(rules);
  const { servers, problems } = await snapshotServers();
  expect(problems).toEqual([]);
  const stopped = servers.find(({ server }) => server.id === id)?.server;
  expect(stopped).toMatchObject({ enabled: false, ruleProblem: expect.stringContaining('npm:@acme/files is not on') });
  const record = await parseReply(mcpServerRecord, control.asUser('GET', `/v1/mcp-servers/${id}`));
  expect(record).toMatchObject({ enabled: true, rule_problem: expect.stringContaining('npm:@acme/files is not on') });
  await put({ sources: ['npm:@acme/*'] });
  expect((await snapshotServers()).servers.every(({ server }) => server.ruleProblem === undefined)).toBe(true);
  const events = await parseReply(
    auditEventsPage,
    control.asUser('GET', '/v1/audit-events?type=control.mcp_rules.updated'),
  );
  expect(events.items.map(({ data }) => data['svc.mcp.rules'])).toEqual([
    expect.stringContaining('npm:@acme/*'),
    expect.stringContaining('npm:@other/*'),
  ]);
});

test('a sidecar that does not know rules leaves the server out; one that ignores `enabled` does not start it', async () => {
  const { id } = await parseReply(mcpServerRecord, create(FILES));
  await put({ pinned_only: true, sources: [] });
  const { records } = await snapshotServers();
  expect(records).toMatchObject([{ id, enabled: false, rule_problem: expect.any(String) }]);
  const [record] = records;
  const forced = { ...(typeof record === 'object' ? record : {}), enabled: true };
  expect(readSnapshotMcpServers([forced]).servers[0]?.server.enabled).toBe(false);
});

test('what breaks a rule is not added or enabled, and can be stored disabled', async () => {
  await put({ isolation: 'container' });
  const refused = await create(FILES);
  expect(refused.status).toBe(403);
  expect(errorBody.parse(await refused.json()).error).toMatchObject({
    code: 'mcp_rule',
    message: expect.stringContaining('--isolation container'),
  });
  const { id } = await parseReply(mcpServerRecord, create({ ...FILES, enabled: false }));
  expect((await control.asUser('PUT', `/v1/mcp-servers/${id}`, FILES)).status).toBe(403);
  expect((await control.asUser('PUT', `/v1/mcp-servers/${id}`, { ...FILES, isolation: 'container' })).status).toBe(200);
});

test('the tools of every server are those that its own policy and the rules both allow', async () => {
  await create({ ...FILES, tools: { allow: ['read_*', 'write_*'], deny: ['read_secret'] } });
  await put({ tools: { allow: null, deny: ['write_*'], approval: ['read_all'] } });
  const [known] = (await snapshotServers()).servers;
  expect(known?.server.tools).toEqual({
    allow: ['read_*', 'write_*'],
    deny: ['read_secret', 'write_*'],
    approval: ['read_all'],
  });
});

test('a remote server that a rule stops is not served to connected clients', async () => {
  const { context } = control;
  const admin = await addUser(context, null);
  await createMcpServer(context, admin, mcpServerInput.parse(REMOTE));
  expect((await listServedServers(context, admin)).map(({ name }) => name)).toEqual(['wiki']);
  await replaceMcpRules(context, admin, mcpRulesInput.parse({ sources: ['host:*.acme.test'] }));
  expect(await listServedServers(context, admin)).toEqual([]);
});

test('a registry name counts for the configuration that the control plane derived, and for no other one', async () => {
  const admin = await addUser(control.context, null);
  const { context } = control;
  const input = mcpServerInput.parse({ ...FILES, registry_id: 'com.acme/files' });
  const claimed = await createMcpServer(context, admin, { ...input, name: 'claimed' });
  const derived = await createMcpServer(context, admin, input, { isDerived: true });
  if (!claimed.ok || !derived.ok) throw new Error('not created');
  const rules = mcpRulesInput.parse({ sources: ['registry:com.acme/*'] });
  expect(await checkMcpRules(context, admin, rules)).toMatchObject({ value: { items: [{ name: 'claimed' }] } });
  await replaceMcpRules(context, admin, rules);
  const { id } = derived.value.value;
  const changed = await putMcpServer(context, admin, id, { ...input, command: ['npx', '-y', '@evil/files@1.2.3'] });
  expect(changed).toMatchObject({ ok: false, error: { code: 'mcp_rule' } });
  const more = await putMcpServer(context, admin, id, { ...input, env: { LOG_LEVEL: 'info' } });
  expect(more.ok).toBe(true);
  const row = await visibleMcpServer(context, admin, id);
  if (!row.ok) throw new Error('gone');
  const command = ['npx', '-y', '@acme/files@1.2.4'];
  const upgraded = await planConfiguration(context, admin, row.value, { ...configurationOf(row.value), command });
  expect(upgraded).toMatchObject({ ok: false, error: { code: 'mcp_rule' } });
});

test('only admins change rules and see what they stop, and other enterprises have their own', async () => {
  const { context } = control;
  const [admin, other] = [await addUser(context, null), await addUser(context, null)];
  const member: Caller = await addUser(context, admin.enterpriseId);
  const theirs = await createMcpServer(context, member, mcpServerInput.parse(FILES));
  const foreign = await createMcpServer(context, other, mcpServerInput.parse(FILES));
  if (!theirs.ok || !foreign.ok) throw new Error('not created');
  const rules = mcpRulesInput.parse({ sources: [] });
  for (const refused of [await checkMcpRules(context, member, rules), await replaceMcpRules(context, member, rules)]) {
    expect(refused).toMatchObject({ ok: false, error: { code: 'admin_required' } });
  }
  expect(await checkMcpRules(context, admin, rules)).toMatchObject({
    value: { items: [{ id: theirs.value.value.id }] },
  });
  await replaceMcpRules(context, admin, rules);
  expect(await describeMcpRules(context, member)).toMatchObject({ sources: [] });
  expect(await describeMcpRules(context, other)).toMatchObject({ sources: null });
  const { id } = foreign.value.value;
  expect(await getMcpServer(context, other, id)).toMatchObject({ value: { rule_problem: null } });
});

test('rules that this version cannot read stop every server', async () => {
  const { context } = control;
  const admin = await addUser(context, null);
  await createMcpServer(context, admin, mcpServerInput.parse(REMOTE));
  const { enterpriseId } = admin;
  await context.database.write(putMcpRules(context.database, { enterpriseId, rules: '{"later":1}', updatedAt: '' }));
  expect(await listServedServers(context, admin)).toEqual([]);
});

test('with the revision that was read, rules replace only those rules', async () => {
  const read = () => parseReply(mcpRulesRecord, control.asUser('GET', '/v1/mcp-rules'));
  const { revision } = await read();
  await put({ pinned_only: true });
  const late = await control.asUser('PUT', '/v1/mcp-rules', { sources: ['npm:@acme/*'], revision });
  expect(late.status).toBe(409);
  expect(errorBody.parse(await late.json()).error.message).toContain('read again');
  const now = await read();
  expect(now).toMatchObject({ pinned_only: true, sources: null });
  expect((await put({ sources: [], revision: now.revision })).sources).toEqual([]);
});
