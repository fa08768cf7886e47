import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { ownerWithMember, signInBrowser, startHosted } from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, openBrowserSession, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import type { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';
import { meReply } from '../../../shared/wire/account.ts';
import { auditEventsPage } from '../../../shared/wire/audit_events.ts';
import type { Caller } from '../../kernel/caller.ts';
import { newId } from '../../../shared/wire/ids.ts';

let control: InProcess;
let sidecar: TestSidecar;
beforeEach(async () => {
  control = await startInProcess();
  sidecar = await control.enrolSidecar();
});
afterEach(() => control.stop());

interface Sent {
  readonly host: string;
  readonly method?: string;
  readonly status?: number;
  readonly path?: string;
  readonly daysAgo?: number;
}

/** Records requests; the first is the newest. */
async function record(...requests: readonly Sent[]): Promise<void> {
  const events = requests.map(({ host, method = 'GET', status = 200, path = '/', daysAgo = 0 }, n) => ({
    id: newId('evt', crypto.getRandomValues(new Uint8Array(16))),
    type: 'sandbox.proxy.passthrough',
    time: new Date(control.clock.now() - n * 1000 - daysAgo * 86_400_000).toISOString(),
    sidecar_id: null,
    session_id: 'ses_1',
    actor: 'session',
    data: {
      'svc.proxy.upstream.host': host,
      'svc.proxy.method': method,
      'svc.proxy.upstream.status': status,
      'svc.proxy.upstream.path': path,
    },
  }));
  expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events } })).status).toBe(200);
}
const found = async (query: string) => {
  const page = await parseReply(
    auditEventsPage,
    control.asUser('GET', `/v1/audit-events?type=sandbox.proxy.&${query}`),
  );
  return page.items.map(({ data }) => data['svc.proxy.upstream.host']);
};

describe('a filter', () => {
  beforeEach(() =>
    record(
      { host: 'api.github.com', method: 'POST', status: 404, path: '/Repos/a_b' },
      { host: 'gist.github.com', status: 500, path: '/repos/axb' },
      { host: 'example.test', status: 503, path: '/100%' },
    ),
  );

  test.each([
    ['host=github.com', []],
    ['host=*.github.com', ['api.github.com', 'gist.github.com']],
    ['host=*GITHUB*', ['api.github.com', 'gist.github.com']],
    ['host=*_*', []],
    ['method=post', ['api.github.com']],
    ['status=404', ['api.github.com']],
    ['status=5xx', ['gist.github.com', 'example.test']],
    ['path=/repos/', ['api.github.com', 'gist.github.com']],
    ['path=a_b', ['api.github.com']],
    ['path=%25', ['example.test']],
    ['q=GIST.git', ['gist.github.com']],
    ['q=ses_1&status=503', ['example.test']],
    ["q='", []],
  ])('%s finds %j', async (query, hosts) => {
    expect(await found(query)).toEqual(hosts);
  });

  test.each(['host=*a*b*c*d*e', 'status=99', 'status=6xx', 'method=GET%20/', 'person=me'])(
    '%s is refused',
    async (query) => {
      expect((await control.asUser('GET', `/v1/audit-events?${query}`)).status).toBe(400);
    },
  );

  test('of a person finds what a machine of the person did, and what the person did', async () => {
    const me = await parseReply(meReply, control.asUser('GET', '/v1/me'));
    expect(await found(`person=${me.id}&host=example.test`)).toEqual(['example.test']);
    expect(await found('person=usr_00000000000000000000000000')).toEqual([]);
    const made = await parseReply(
      auditEventsPage,
      control.asUser('GET', `/v1/audit-events?person=${me.id}&type=control.`),
    );
    expect(made.items).not.toEqual([]);
    expect(made.items.every(({ actor }) => actor === me.id)).toBe(true);
  });

  test('that reads each event looks at a week, unless a time says more', async () => {
    await record({ host: 'old.github.com', daysAgo: 8 });
    expect(await found('host=old*')).toEqual([]);
    expect(await found('host=old.github.com')).toEqual(['old.github.com']);
    const since = new Date(control.clock.now() - 9 * 86_400_000).toISOString();
    expect(await found(`host=old*&since=${since}`)).toEqual(['old.github.com']);
  });
});

const open = async (path: string) =>
  control.inBrowser(path, { headers: { cookie: await openBrowserSession(control) } });

test('the page of an enterprise has a choice of its people, and that of one’s own machine has none', async () => {
  expect(await (await open('/audit')).text()).not.toContain('name="person"');
  const hosted = await startHosted();
  onTestFinished(() => hosted.stop());
  const { owner, member } = await ownerWithMember(hosted);
  await owner.call('POST', '/v1/secrets', { path: 'user/of-owner', value: 'value-of-a-test' });
  const headers = { cookie: await signInBrowser(hosted, member.caller) };
  const page = await (await hosted.inBrowser(`/audit?person=${owner.caller.userId}`, { headers })).text();
  expect(page).toMatch(new RegExp(`<option value="${owner.caller.userId}" selected`));
  expect(page).toContain('vault://user/of-owner');
  const other = await (await hosted.inBrowser(`/audit?person=${member.caller.userId}`, { headers })).text();
  expect(other).not.toContain('vault://user/of-owner');
});

test('the choice has all people for admins, those who acted for others, and the person of the query in any case', async () => {
  const hosted = await startHosted();
  onTestFinished(() => hosted.stop());
  const { owner, member } = await ownerWithMember(hosted);
  const read = async (caller: Caller, query = '') =>
    (await hosted.inBrowser(`/audit${query}`, { headers: { cookie: await signInBrowser(hosted, caller) } })).text();
  await owner.call('POST', '/v1/secrets', { path: 'user/of-owner', value: 'value-of-a-test' });
  const [ofOwner, ofMember] = [owner, member].map(({ caller }) => `<option value="${caller.userId}"`);
  const listedFor = async (caller: Caller, query?: string) => {
    const page = await read(caller, query);
    return [ofOwner, ofMember].map((option) => page.includes(option ?? '-'));
  };
  expect(await listedFor(owner.caller)).toEqual([true, true]);
  expect(await listedFor(member.caller)).toEqual([true, false]);
  expect(await listedFor(member.caller, `?person=${member.caller.userId}`)).toEqual([false, true]);
  const left = { sql: "UPDATE users SET left_at = '2026' WHERE id = ?", args: [member.caller.userId] };
  await hosted.context.database.client.execute(left);
  expect(await listedFor(owner.caller)).toEqual([true, false]);
  expect(await read(owner.caller, `?person=${member.caller.userId}`)).toContain(`${ofMember ?? '-'} selected`);
});

describe('the page', () => {
  test('takes a part of the host, and times without an offset as UTC', async () => {
    await record({ host: 'api.github.com' }, { host: 'old.github.com', daysAgo: 8 }, { host: 'example.test' });
    const page = await (await open('/audit?host=github')).text();
    expect([page.includes('api.github.com/'), page.includes('example.test/')]).toEqual([true, false]);
    expect(page).toContain('Searched: the last week');
    const since = new Date(control.clock.now() - 9 * 86_400_000).toISOString().slice(0, 16);
    const older = await (await open(`/audit?host=github&since=${since}`)).text();
    expect(older).toContain('old.github.com/');
    expect(older).toContain(`value="${since}:00"`);
    expect((await open('/audit?since=yesterday')).status).toBe(400);
  });

  test('exports what it shows as JSON lines and CSV, without formulas', async () => {
    await record(
      { host: 'api.github.com', path: '/=1+1' },
      { host: 'api.github.com', path: '=cmd|"calc"' },
      { host: 'example.test' },
    );
    const csv = await open('/audit/export?format=csv&host=github');
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="audit.csv"');
    const lines = (await csv.text()).trimEnd().split('\r\n');
    expect(lines[0]).toContain('time,type,method,host,path');
    expect(lines.slice(1).map((line) => line.split(',').slice(2, 6).join())).toEqual([
      '"GET","api.github.com","/=1+1",200',
      `"GET","api.github.com","'=cmd|""calc""",200`,
    ]);
    const jsonl = await open('/audit/export?format=jsonl&host=github');
    const events = (await jsonl.text()).trimEnd().split('\n');
    expect(events.map((line) => JSON.parse(line).data['svc.proxy.upstream.host'])).toEqual(
      Array(2).fill('api.github.com'),
    );
    expect((await open('/audit/export?format=exe')).status).toBe(303);
    expect((await control.inBrowser('/audit/export?format=csv')).status).toBe(401);
  });

  test('exports every page of the list', async () => {
    for (let n = 0; n < 6; n += 1) await record(...Array.from({ length: 90 }, () => ({ host: 'api.github.com' })));
    const text = await (await open('/audit/export?format=jsonl&type=sandbox.proxy.')).text();
    const ids = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).id);
    expect(new Set(ids).size).toBe(540);
  });
});
