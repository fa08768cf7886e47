import { afterAll, beforeAll, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { signInLinkReply } from '../../../shared/wire/account.ts';
import { mcpRulesRecord } from '../../../shared/wire/mcp/mcp_rules.ts';
import { mcpServerRecord } from '../../../shared/wire/mcp/mcp_servers.ts';
import { mcpRulesPage, rulesForm } from '../../pages/mcp/mcp_rules.ts';

let control: InProcess;
let cookie = '';
beforeAll(async () => {
  control = await startInProcess();
  const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
  cookie = ((await control.send(url)).headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  await parseReply(
    mcpServerRecord,
    control.asUser('POST', '/v1/mcp-servers', { name: 'files', command: ['npx', '-y', '@acme/files@1.2.3'] }),
  );
});
afterAll(() => control.stop());

const open = async (path: string) => (await control.inBrowser(path, { headers: { cookie } })).text();
const hidden = (page: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1] ?? '';
const rules = () => parseReply(mcpRulesRecord, control.asUser('GET', '/v1/mcp-rules'));
const before = async () => hidden(await open('/mcp-rules'), 'before');
async function send(fields: Record<string, string>) {
  const reply = await control.inBrowser('/mcp-rules', {
    method: 'POST',
    headers: { cookie, origin: control.consoleOrigin },
    body: new URLSearchParams({ from: 'these', isolation: 'process', ...fields }),
    redirect: 'manual',
  });
  return { status: reply.status, page: await reply.text() };
}

test('rules are saved only after what they stop was shown', async () => {
  const form = { before: await before(), sources: 'npm:@other/*', deny: 'delete_*' };
  const unseen = await send({ ...form, step: 'save' });
  expect(unseen.status).toBe(400);
  expect(unseen.page).toContain('One server would be stopped');
  const checked = await send({ ...form, step: 'check' });
  expect(checked.page).toContain('npm:@acme/files is not on the list');
  expect((await rules()).sources).toBeNull();
  const other = await send({ ...form, checked: hidden(checked.page, 'checked'), sources: '', step: 'save' });
  expect(other.page).toContain('changed after it was checked');
  expect((await rules()).sources).toBeNull();
  const saved = await send({ ...form, checked: hidden(checked.page, 'checked'), step: 'save' });
  expect(saved.status).toBe(303);
  expect(await rules()).toMatchObject({ sources: ['npm:@other/*'], tools: { deny: ['delete_*'] } });
  expect(await open('/mcp-servers')).toContain('Stopped by a rule');
});

test('a concurrent change is not overwritten, and what is stored is shown', async () => {
  const old = await before();
  await control.asUser('PUT', '/v1/mcp-rules', { sources: ['npm:@third/*'] });
  const late = await send({ before: old, from: 'any', step: 'check' });
  expect(late).toMatchObject({ status: 400, page: expect.stringContaining('npm:@third/*') });
  expect(late.page).toContain('changed the rules meanwhile');
});

test('a problem is beside its field, and the form keeps what was typed', async () => {
  const { status, page } = await send({
    before: await before(),
    sources: 'npm:@acme/*\nfiles',
    deny: 'a*b',
    step: 'check',
  });
  expect(status).toBe(400);
  expect(page).toMatch(/id="sources-problem"[^]*is no source of servers/);
  expect(page).toContain('id="deny-problem"');
  expect(page).toContain('npm:@acme/*\nfiles');
});

test('a member sees the rules and no form', async () => {
  const record = await rules();
  const view = { rules: record, form: rulesForm(record), before: '', check: null, isLocal: false, done: undefined };
  const shown = String(await mcpRulesPage({ ...view, isAdmin: false }).content);
  expect(shown).not.toContain('<form');
  expect(shown).toContain('npm:@third/*');
  expect(shown).toContain('for every member of your enterprise');
  const alone = String(
    await mcpRulesPage({ ...view, isAdmin: true, isLocal: true, check: { stopped: [], rules: '' } }).content,
  );
  expect(alone).not.toContain('every member');
});

test('of two admins who save at once, one is told that the rules were changed', async () => {
  const form = { before: await before(), deny: '' };
  const forms = ['npm:@first/*', 'npm:@second/*'].map((sources) => ({ ...form, sources }));
  const checked = await Promise.all(
    forms.map(async (each) => ({ ...each, checked: hidden((await send({ ...each, step: 'check' })).page, 'checked') })),
  );
  const saved = await Promise.all(checked.map((each) => send({ ...each, step: 'save' })));
  expect(saved.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 409]);
  const refused = saved.find(({ status }) => status === 409);
  expect(refused?.page).toContain('Somebody changed the rules meanwhile');
  const kept = saved.findIndex(({ status }) => status === 303);
  expect((await rules()).sources).toEqual([forms[kept]?.sources]);
});
