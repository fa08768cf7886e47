import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type InProcess, openBrowserSession, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { z } from 'zod';
import { meReply } from '../../../shared/wire/account.ts';
import { hostBindingsPage } from '../../../shared/wire/host_bindings.ts';
import { createdToken } from '../../../shared/wire/tokens.ts';
import { countRequests } from '../../services/audit/request_counts.ts';

const idReply = z.object({ id: z.string() });
const PLANTED = 'planted-6e0f2b9c41d8';
let control: InProcess;
let cookie = '';
beforeAll(async () => {
  control = await startInProcess();
  cookie = await openBrowserSession(control);
});
afterAll(() => control.stop());

const open = (path: string) => control.inBrowser(path, { headers: { cookie } });
const submit = (path: string, fields: Record<string, string>, headers?: Record<string, string>) =>
  control.inBrowser(path, {
    method: 'POST',
    headers: { cookie, ...(headers ?? { origin: control.consoleOrigin }) },
    body: new URLSearchParams(fields),
  });

describe('a form of the console', () => {
  test('makes the same change as the API, and redirects to a page', async () => {
    const reply = await submit('/secrets', { path: 'user/one', value: PLANTED, description: '', owner: 'personal' });
    expect([reply.status, reply.headers.get('location')]).toEqual([303, '/secrets?done=secret_stored']);
    expect(await (await open('/secrets')).text()).toContain('vault://user/one');
  });

  test('with invalid input is shown again with 4xx and without its secret', async () => {
    const reply = await submit('/secrets', { path: 'No Path', value: PLANTED, owner: 'personal' });
    const page = await reply.text();
    expect(reply.status).toBe(400);
    expect(page).toContain('value="No Path"');
    expect(page).not.toContain(PLANTED);
  });

  test('takes a whole reference where it asks for a path', async () => {
    const reply = await submit('/secrets', { path: ' vault://user/pasted ', value: PLANTED, owner: 'personal' });
    expect(reply.status).toBe(303);
    expect(await (await open('/secrets')).text()).toContain('vault://user/pasted');
  });

  test('does not return a credential that was typed for a reference', async () => {
    const fields = { scheme: 'bearer', host: 'typed.example.test', owner: 'personal' };
    const refused = await submit('/bindings', { ...fields, credential_ref: PLANTED });
    const page = await refused.text();
    expect([refused.status, page]).toEqual([400, expect.stringContaining('the value given is not shown')]);
    expect(page).toContain('value="typed.example.test"');
    expect(page).not.toContain(PLANTED);
    const again = await submit('/bindings', { ...fields, credential_ref: 'vault://User/x' });
    expect(await again.text()).toContain('value="vault://User/x"');
  });

  test('says what is wrong with a field in whole sentences', async () => {
    const reply = await submit('/secrets', { path: 'user/Token', value: PLANTED, owner: 'personal' });
    expect(await reply.text()).toMatch(/>\s*The vault path has upper-case letters/);
  });

  test.each([
    ['of another site', { origin: 'https://evil.test' }],
    ['of an unknown origin', {}],
  ])('%s changes nothing', async (_, headers) => {
    const reply = await submit('/secrets', { path: 'user/two', value: PLANTED, owner: 'personal' }, headers);
    expect(reply.status).toBe(403);
    expect(await (await open('/secrets')).text()).not.toContain('vault://user/two');
  });

  test('creates a binding with all its fields', async () => {
    const fields = {
      scheme: 'header-template',
      host: 'Header.example.test',
      credential_ref: 'vault://user/one',
      header: 'X-Api-Key',
      template: 'key {token}',
      effect: 'read',
      owner: 'personal',
      allowed_hosts: 'header.example.test, ',
      sentinel_value: 'stand-in-of-sixteen',
      sentinel_env: 'API_KEY',
      body: 'stream',
      description: '',
    };
    const reply = await submit('/bindings', fields);
    expect([reply.status, reply.headers.get('location')]).toEqual([303, '/bindings?done=binding_created']);
    const { items } = await parseReply(
      hostBindingsPage,
      control.asUser('GET', '/v1/host-bindings?host=header.example.test'),
    );
    expect(items).toEqual([
      expect.objectContaining({
        header: 'X-Api-Key',
        template: 'key {token}',
        effect: 'read',
        allowed_hosts: ['header.example.test'],
        emit_mechanism: 'sentinel-swap',
        sentinel: { value: 'stand-in-of-sixteen', env: 'API_KEY' },
        body: 'stream',
      }),
    ]);
  });

  test('deletes no secret without its owner', async () => {
    const path = 'user/kept';
    await control.asUser('POST', '/v1/secrets', { path, value: 'a value', owner: 'personal' });
    for (const owner of [{}, { owner: '' }, { owner: 'nobody' }]) {
      const refused = await submit('/secrets/delete', { path, ...owner, confirm: path });
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('Owner ')]);
      expect(await (await open('/secrets')).text()).toContain(path);
    }
  });

  test('deletes only the named item', async () => {
    const target = { path: 'user/one', owner: 'personal' };
    const refused = await submit('/secrets/delete', { ...target, confirm: 'user/on' });
    expect(refused.status).toBe(400);
    const inUse = await control.asUser('POST', '/v1/host-bindings', {
      host: 'api.example.test',
      scheme: 'bearer',
      credential_ref: 'vault://user/one',
    });
    expect(inUse.status).toBe(201);
    const conflict = await submit('/secrets/delete', { ...target, confirm: 'user/one' });
    expect([conflict.status, await conflict.text()]).toEqual([409, expect.stringContaining('This secret is in use')]);
  });
});

describe('a page of the console', () => {
  test('requires a sign-in', async () => {
    expect((await control.send('/audit?host=api.example.test')).status).toBe(401);
  });

  test('of an unknown address is a page for a person, and an error for a program', async () => {
    const accept = { accept: 'text/html,application/xhtml+xml' };
    const signedIn = await control.inBrowser('/scrects', { headers: { cookie, ...accept } });
    expect([signedIn.status, await signedIn.text()]).toEqual([404, expect.stringContaining('aria-label="Console"')]);
    const stranger = await control.send('/scrects', { headers: accept });
    expect([stranger.status, await stranger.text()]).toEqual([404, expect.stringContaining('There is no such page')]);
    for (const [path, headers] of [
      ['/scrects', {}],
      ['/v1/scrects', accept],
    ] as const) {
      const reply = await control.send(path, { headers });
      expect([reply.status, await reply.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
    }
  });

  test.each([
    ['/approval-grants/apg_00000000000000000000000000/revoke', '/approvals'],
    ['/services/github/test', '/services/github'],
    ['/secrets/sources', '/secrets/sources/new'],
    ['/members/requests/jrq_1/accept', '/members/requests'],
    ['/members/invitations/inv_1/revoke', '/members/invitations'],
    ['/connectors/io.example.one/credential', '/connectors/io.example.one'],
    ['/audit/views/forget', '/audit'],
    ['/mcp-servers/mcp_1/tools/accept', '/mcp-servers/mcp_1/tools'],
    ['/theme', '/'],
  ])(
    'at the address %s of a form is the page of the form for a person, and an error for a program',
    async (path, page) => {
      const followed = await control.inBrowser(path, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' });
      expect([followed.status, followed.headers.get('location')]).toEqual([303, page]);
      const called = await control.inBrowser(path, { headers: { cookie } });
      expect([called.status, await called.json()]).toMatchObject([405, { error: { code: 'method_not_allowed' } }]);
    },
  );

  test('at an address for programs only is a page for a person', async () => {
    const reply = await control.inBrowser('/auth/signup', { headers: { accept: 'text/html' } });
    expect([reply.status, await reply.text()]).toEqual([405, expect.stringContaining('There is no such page')]);
  });

  test('says that nothing was changed when a form is sent after the sign-in has ended', async () => {
    const decision = { method: 'POST', headers: { origin: control.consoleOrigin }, body: new URLSearchParams() };
    const reply = await control.inBrowser('/approvals/apr_00000000000000000000000000', decision);
    expect([reply.status, await reply.text()]).toEqual([401, expect.stringContaining('so nothing was changed')]);
    for (const path of ['/approvals', '/account', '/'])
      expect(await (await open(`${path}?done=not_sent`)).text()).toMatch(/alert warn[^]*Nothing was changed/);
  });

  test('that a form was refused on shows its own page again when the look is changed', async () => {
    for (const [form, shown] of [
      ['/secrets/sources', '/secrets/sources/new'],
      ['/secrets/delete', '/secrets'],
    ] as const) {
      expect(await (await submit(form, {})).text()).toContain(`name="return_to" value="${shown}"`);
    }
  });

  test('about a sign-in has nothing of its address, which may have a code', async () => {
    const refused = await open(`/auth/connectors/callback?state=made-up&code=${PLANTED}`);
    const text = await refused.text();
    expect([refused.status, text]).toEqual([400, expect.stringContaining('value="/auth/connectors/callback"')]);
    expect(text).not.toContain(PLANTED);
  });

  test('about a sign-in link or an authorisation that is over leads to the console', async () => {
    const used = await control.inBrowser('/auth/link/used-already');
    expect([used.status, await used.text()]).toEqual([410, expect.stringMatching(/<p>[A-Z][^<]*\.<\/p>[^]*href="\/"/)]);
    const authorised = await control.send('/auth/connectors/callback?state=made-up&code=c');
    expect(await authorised.text()).toContain('<a class="button" href="/">Open the console</a>');
  });

  test('leads to the set-up of clients from the list of servers and from a server', async () => {
    const { id } = await parseReply(
      idReply,
      control.asUser('POST', '/v1/mcp-servers', { name: 'files', command: ['files-server'] }),
    );
    expect(await (await open('/mcp-servers')).text()).toContain('href="/mcp-servers/clients"');
    expect(await (await open(`/mcp-servers/${id}`)).text()).toContain(`href="/mcp-servers/${id}/connect"`);
  });

  test('shows no owner on one’s own machine', async () => {
    const page = await (await open('/mcp-servers')).text();
    expect(page).toMatch(/<html[^>]* data-local/);
    expect(page).toMatch(/<th[^>]*class="hosted-only"[^>]*>\s*Owner/);
  });

  test('has the look that its browser chose', async () => {
    expect(await (await open('/secrets')).text()).toContain('data-theme="auto"');
    const chosen = await submit('/theme', { theme: 'dark', return_to: '/secrets' });
    expect([chosen.status, chosen.headers.get('location')]).toEqual([303, '/secrets']);
    const kept = (chosen.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const dark = await control.inBrowser('/secrets', { headers: { cookie: `${cookie}; ${kept}` } });
    expect(await dark.text()).toContain('data-theme="dark"');
    expect((await submit('/theme', { theme: '"><b>', return_to: '/' })).status).toBe(400);
    const elsewhere = await submit('/theme', { theme: 'light', return_to: 'https://evil.test/' });
    expect(elsewhere.headers.get('location')).toBe('/');
  });

  test.each([
    ['/bindings?q=a%26b&amp;sort=host', '/bindings?q=a%26b&sort=host'],
    ['/approvals?state=grants', '/approvals?state=grants&done=grant_revoked'],
    ['/secrets', '/secrets?done=secret_stored'],
  ])('returns to %s after the look was chosen at %s', async (shown, path) => {
    expect(await (await open(path)).text()).toContain(`name="return_to" value="${shown}"`);
  });

  test('of the API keeps the navigation of who is signed in', async () => {
    expect(await (await open('/docs')).text()).toContain('aria-label="Console"');
    expect(await (await control.send('/docs')).text()).not.toContain('aria-label="Console"');
  });

  test("names the failed request's id", async () => {
    const reply = await open('/bindings/bnd_nothing');
    expect(reply.status).toBe(404);
    expect(await reply.text()).toContain(reply.headers.get('svc-request-id') ?? 'no id');
  });

  test('that revokes an item is not found once it is revoked', async () => {
    const input = { name: 'ci', scopes: ['account:read'] };
    const { id: tokenId } = await parseReply(createdToken, control.asUser('POST', '/v1/tokens', input));
    const { sidecar_id: sidecarId } = (await control.enrolSidecar()).enrolled;
    for (const [page, item] of [
      [`/account/tokens/${tokenId}/revoke`, `/v1/tokens/${tokenId}`],
      [`/sidecars/${sidecarId}/revoke`, `/v1/sidecars/${sidecarId}`],
    ] as const) {
      expect((await open(page)).status).toBe(200);
      await control.asUser('DELETE', item);
      expect((await open(page)).status).toBe(404);
    }
  });

  test('is not cached, but its files are cached forever', async () => {
    const page = await open('/');
    expect(page.headers.get('cache-control')).toBe('no-store, no-transform');
    const [style = ''] = /\/assets\/style\.[0-9a-f]{16}\.css/.exec(await page.text()) ?? [];
    const asset = await control.send(style);
    expect(asset.headers.get('cache-control')).toContain('immutable');
    expect((await control.send('/assets/style.0000000000000000.css')).status).toBe(404);
  });

  test('starts from a catalog binding only if it exists', async () => {
    expect((await open('/bindings/new?from=nothing')).status).toBe(200);
  });
});

test('counts requests by outcome in the requested period', async () => {
  const sidecar = await control.enrolSidecar();
  const now = control.clock.now();
  const event = (n: number, type: string, minutesAgo: number, more: object = {}) => ({
    id: `evt_${String(n).padStart(26, '0')}`,
    type,
    time: new Date(now - minutesAgo * 60_000).toISOString(),
    sidecar_id: sidecar.enrolled.sidecar_id,
    session_id: 'ses_1',
    actor: 'session',
    data: { 'svc.proxy.upstream.host': 'api.example.test', ...more },
  });
  const events = [
    event(1, 'sandbox.proxy.passthrough', 1),
    event(2, 'sandbox.proxy.binding_injected', 1),
    event(3, 'sandbox.proxy.rejected', 23 * 60),
    event(4, 'sandbox.proxy.rejected', 25 * 60),
    event(5, 'sandbox.proxy.trust_denied', 23 * 60, { 'svc.proxy.count': 40 }),
    event(6, 'connector.proxy.proxied', 1),
    // Not sent, so it has no outcome.
    event(7, 'connector.proxy.proxied', 1, { 'svc.proxy.reason': 'answered_locally' }),
  ];
  expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events } })).status).toBeLessThan(300);
  const { userId = '' } = control.context.local ?? {};
  const { enterprise_id: enterpriseId } = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  const caller = { userId, enterpriseId, role: 'owner' } as const;
  const counts = await countRequests(control.context, caller, {});
  if (!counts.ok) throw new Error(counts.error.message);
  const { spans } = counts.value;
  expect(spans).toHaveLength(48);
  expect(spans.at(-1)).toEqual({ added: 1, connector: 1, passed: 1, refused: 0 });
  // One event that stands for 40 refusals, and one for itself.
  expect(spans[1]).toMatchObject({ refused: 41 });
  expect(spans.reduce((sum, { refused }) => sum + refused, 0)).toBe(41);
});

const timeAt = (ms: number) => new Date(ms).toISOString();

test('puts every request of the period into one span of a readable length', async () => {
  const sidecar = await control.enrolSidecar();
  const now = control.clock.now();
  const events = Array.from({ length: 90 }, (_, n) => ({
    id: `evt_${String(n + 100).padStart(26, '0')}`,
    type: 'sandbox.proxy.passthrough',
    time: new Date(now - n * 977_123).toISOString(),
    sidecar_id: sidecar.enrolled.sidecar_id,
    session_id: 'ses_2',
    actor: 'session',
    data: { 'svc.proxy.upstream.host': 'spread.example.test' },
  }));
  expect((await sidecar.call('POST', '/v1/sidecar/events', { body: { events } })).status).toBeLessThan(300);
  const { userId = '' } = control.context.local ?? {};
  const { enterprise_id: enterpriseId } = await parseReply(meReply, control.asUser('GET', '/v1/me'));
  const caller = { userId, enterpriseId, role: 'owner' } as const;
  const asked = { host: 'spread.example.test', since: timeAt(now - 20_000_000), until: timeAt(now - 1_000_000) };
  for (const [query, seconds] of [[{ host: asked.host }, 1_800] as const, [asked, 600] as const]) {
    const counts = await countRequests(control.context, caller, query);
    if (!counts.ok) throw new Error(counts.error.message);
    const { since, until, begins, spans, spanSeconds } = counts.value;
    const inTime = events.filter(({ time: at }) => at >= since && at < until).length;
    expect([spanSeconds, spans.reduce((sum, { passed }) => sum + passed, 0)]).toEqual([seconds, inTime]);
    expect(Date.parse(begins) % (seconds * 1000)).toBe(0);
    expect(spans.length).toBeLessThanOrEqual(49);
  }
});

/** What the tabs above a page are called, and which is the page's own. */
async function tabsOf(path: string) {
  const [, tabs = ''] = /<nav class="tabs"[^>]*>([^]*?)<\/nav>/.exec(await (await open(path)).text()) ?? [];
  const titles = [...tabs.matchAll(/>([^<>]+)<\/a/g)].map(([, title]) => title);
  return { titles, current: /aria-current="page">([^<]+)/.exec(tabs)?.[1] };
}

describe('the tabs of the approvals on the own machine', () => {
  test.each([
    ['/approvals', 'Waiting'],
    ['/approvals?done=denied', 'Waiting'],
    ['/approvals?state=all', 'All'],
    ['/approvals?state=grants&done=grant_revoked', 'Grants'],
  ])('%s is the tab %s', async (path, current) => {
    expect(await tabsOf(path)).toEqual({ titles: ['Waiting', 'All', 'Grants'], current });
  });

  test('are not above a page below them', async () => {
    expect(await tabsOf('/approvals/apr_nothing')).toEqual({ titles: [], current: undefined });
  });
});

test('the example of a connector spec in the form can be installed', async () => {
  const [, example = ''] =
    /placeholder="(schema_version[^"]+)"/.exec(await (await open('/connectors/install')).text()) ?? [];
  const checked = await submit('/connectors', { spec: example, step: 'check', owner: 'personal' });
  expect(await checked.text()).toContain('The spec is valid. Nothing was changed.');
});

test('the dialog of the search is a part of each page but its own', async () => {
  const template = '<template id="palette-part">';
  expect(await (await open('/secrets')).text()).toContain(template);
  expect(await (await open('/find')).text()).not.toContain(template);
});
