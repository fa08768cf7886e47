import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type InProcess, openBrowserSession, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { ownerWithMember, PUBLIC_URL, signInBrowser, startHosted } from '../../../e2e/runtimes/hosted_users.ts';
import { err, ok } from '../../../shared/model/result.ts';
import type { Outbound } from '../../kernel/outbound.ts';

const TOKEN = `ghp_${'a1B2'.repeat(9)}`;

/** What was sent to GitHub, and its answer. */
const sent: { url: string; authorization: string }[] = [];
let status = 200;
const github: Outbound = {
  async call(request) {
    if (new URL(request.url).hostname !== 'api.github.com') {
      return err({ reason: 'upstream_unreachable', message: 'only GitHub answers here' });
    }
    sent.push({ url: request.url, authorization: request.headers['authorization'] ?? '' });
    const body = new TextEncoder().encode(`{"login":"octocat","echo":"${TOKEN}"}`);
    return ok({ status, contentType: 'application/json', body });
  },
};

let control: InProcess;
let cookie: string;
beforeAll(async () => {
  control = await startInProcess({ outbound: github });
  cookie = await openBrowserSession(control);
});
afterAll(() => control.stop());
beforeEach(() => {
  status = 200;
  sent.length = 0;
});

async function open(path: string): Promise<string> {
  return (await control.inBrowser(path, { headers: { cookie } })).text();
}

async function send(path: string, fields: Record<string, string>, origin = control.consoleOrigin) {
  const body = new URLSearchParams(fields);
  const init = { method: 'POST', headers: { cookie, origin }, body, redirect: 'manual' as const };
  const reply = await control.inBrowser(path, init);
  return { status: reply.status, location: reply.headers.get('location'), page: await reply.text() };
}

const items = z.object({ items: z.array(z.looseObject({})) });
async function list(path: string) {
  return items.parse(await (await control.asUser('GET', path)).json()).items;
}

describe('the search', () => {
  test('shows every service without a text, and those that fit one', async () => {
    expect(await open('/services')).toMatch(/href="\/services\/github"[^]*href="\/services\/stripe"/);
    const found = await open('/services?q=GitHub');
    expect(found).toContain('1 service<');
    expect(found).not.toContain('href="/services/stripe"');
    expect(found).toContain('MCP servers');
  });

  test('a host that the catalog does not know begins a binding', async () => {
    expect(await open('/services?q=api.acme.example')).toContain('href="/bindings/new?host=api.acme.example"');
  });

  test('the search for everything leads to a service', async () => {
    expect(await open('/find?q=github')).toContain('href="/services/github"');
  });

  test('a service that is not in the catalog is not found', async () => {
    expect((await control.inBrowser('/services/nothing', { headers: { cookie } })).status).toBe(404);
    expect((await send('/services/nothing', {})).status).toBe(404);
    expect((await send('/services/nothing/test', {})).status).toBe(404);
  });
});

describe('the narrowest way', () => {
  test('is chosen at first: listed operations', async () => {
    expect(await open('/services/github')).toMatch(/value="connector" checked/);
    expect(await open('/services/notion')).toMatch(/value="bindings" checked/);
  });

  test('without a token stores nothing', async () => {
    const refused = await send('/services/github', { way: 'connector' });
    expect([refused.status, refused.page.includes('It is missing: paste the credential')]).toEqual([400, true]);
    expect(await list('/v1/connectors')).toEqual([]);
  });

  test('installs the connector and stores the token as its credential alone', async () => {
    const connected = await send('/services/github', { way: 'connector', token: ` ${TOKEN} `, owner: 'personal' });
    expect([connected.status, connected.location]).toEqual([303, '/services/github?done=service_connected']);
    const [connector] = await list('/v1/connectors');
    expect(connector).toMatchObject({ fqn: 'catalog/github', active: true, owner: 'personal' });
    expect(await list('/v1/host-bindings')).toEqual([]);
    expect(await open('/services/github')).not.toContain(TOKEN);
  });

  test('a test call sends the credential to the service and shows that it works, without the credential', async () => {
    const { status: code, page } = await send('/services/github/test', {});
    expect(code).toBe(200);
    expect(sent).toEqual([{ url: 'https://api.github.com/user', authorization: `Bearer ${TOKEN}` }]);
    expect(page).toContain('It works.');
    expect(page).toContain('octocat');
    expect(page).not.toContain(TOKEN);
    expect(page).toMatch(/href="\/audit\/evt_\w+"/);
  });

  test('a token that the service refuses is said to be wrong', async () => {
    status = 401;
    expect((await send('/services/github/test', {})).page).toContain('It does not accept the credential');
  });

  test('another token replaces the stored one only if the person says so', async () => {
    const other = `ghp_${'zz99'.repeat(9)}`;
    const refused = await send('/services/github', { way: 'connector', token: other });
    expect([refused.status, refused.page.includes('would replace the stored credential')]).toEqual([400, true]);
    expect(refused.page).not.toContain(other);
    await send('/services/github/test', {});
    expect(sent[0]?.authorization).toBe(`Bearer ${TOKEN}`);
    expect((await send('/services/github', { way: 'connector', token: other, replace: 'on' })).status).toBe(303);
    await send('/services/github/test', {});
    expect(sent[1]?.authorization).toBe(`Bearer ${other}`);
  });
});

describe('every request to the hosts', () => {
  const way = { way: 'bindings', token: TOKEN };

  test('binds each host of the service to one secret', async () => {
    expect((await send('/services/gitlab', way)).location).toBe('/services/gitlab?done=service_connected');
    const bindings = await list('/v1/host-bindings');
    expect(bindings.length).toBeGreaterThan(0);
    for (const binding of bindings)
      expect(binding).toMatchObject({ host: 'gitlab.com', credential_ref: 'vault://user/gitlab' });
    expect(await open('/services/gitlab')).toContain('Bound');
    for (const { id } of bindings) await control.asUser('DELETE', `/v1/host-bindings/${String(id)}`);
  });

  test('asks for what the bindings leave open, and names what is missing', async () => {
    expect(await open('/services/jira')).toContain('the host of your site');
    const refused = await send('/services/jira', { ...way, username: 'me@acme.example' });
    expect([refused.status, refused.page.includes('id="host-problem"')]).toEqual([400, true]);
    const wrong = await send('/services/jira', { ...way, host: 'not a host', username: 'me@acme.example' });
    expect([wrong.status, wrong.page.includes('id="host-problem"')]).toEqual([400, true]);
    expect(await list('/v1/host-bindings')).toEqual([]);
    const full = { ...way, host: 'acme.atlassian.net', username: 'me@acme.example' };
    expect((await send('/services/jira', full)).status).toBe(303);
    expect(await list('/v1/host-bindings')).toMatchObject([{ host: 'acme.atlassian.net', scheme: 'basic' }]);
  });

  test('a host that another credential is bound to is left alone', async () => {
    await control.asUser('POST', '/v1/secrets', { path: 'user/mine', value: 'x'.repeat(20) });
    const mine = { host: 'api.notion.com', scheme: 'bearer', credential_ref: 'vault://user/mine' };
    await control.asUser('POST', '/v1/host-bindings', mine);
    const before = await list('/v1/host-bindings');
    const refused = await send('/services/notion', way);
    expect([refused.status, refused.page.includes('already bound to vault://user/mine')]).toEqual([409, true]);
    expect(await list('/v1/host-bindings')).toEqual(before);
    expect((await list('/v1/secrets')).map(({ path }) => path)).not.toContain('user/notion');
  });

  test('a value that the vault refuses leaves no binding behind', async () => {
    const before = await list('/v1/host-bindings');
    // The stand-in of another binding is no credential.
    const standIn = { host: 'a.example.test', scheme: 'bearer', credential_ref: 'vault://user/mine' };
    const sentinel = { emit_mechanism: 'sentinel-swap', sentinel: { value: 'stand-in-of-a-test-0123456789' } };
    await control.asUser('POST', '/v1/host-bindings', { ...standIn, ...sentinel });
    const refused = await send('/services/sentry', { way: 'bindings', token: 'stand-in-of-a-test-0123456789' });
    expect([refused.status, refused.page.includes('id="token-problem"')]).toEqual([400, true]);
    expect(await list('/v1/host-bindings')).toHaveLength(before.length + 1);
  });
});

test('a test call sends nothing that changes something, also if another spec is installed under the name', async () => {
  const operation = {
    name: 'list-organizations',
    method: 'DELETE',
    path: '/all',
    summary: 'Delete all',
    effect: 'write',
  };
  const connector = { fqn: 'catalog/sentry', version: '1.0.0', title: 'Another' };
  const spec = { schema_version: 1, connector, hosts: ['api.github.com'], credential: { kind: 'api_key' } };
  const installed = await control.asUser('POST', '/v1/connectors', { ...spec, operations: [operation] });
  const { id } = z.object({ id: z.string() }).parse(await installed.json());
  await control.asUser('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: TOKEN });
  const { page } = await send('/services/sentry/test', {});
  expect([sent, page.includes('There is no reply.')]).toEqual([[], true]);
  expect(page).not.toContain('Make a test call');
  await control.asUser('DELETE', `/v1/connectors/${id}`);
});

test('the request that a test call shows is the one of the installed spec', async () => {
  const operation = { name: 'me', method: 'GET', path: '/mine', summary: 'Me', effect: 'read' };
  const connector = { fqn: 'catalog/sentry', version: '1.0.0', title: 'Another' };
  const spec = { schema_version: 1, connector, hosts: ['api.github.com'], credential: { kind: 'api_key' } };
  const installed = await control.asUser('POST', '/v1/connectors', { ...spec, operations: [operation] });
  const { id } = z.object({ id: z.string() }).parse(await installed.json());
  const at = `/services/sentry`;
  expect(await open(at)).not.toContain('Make a test call');
  await control.asUser('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: TOKEN });
  expect(await open(at)).toContain('GET https://api.github.com/mine');
  await send(`${at}/test`, {});
  expect(sent.at(-1)?.url).toBe('https://api.github.com/mine');
  await control.asUser('DELETE', `/v1/connectors/${id}`);
});

describe('refuses', () => {
  test('a way that the service does not have', async () => {
    expect((await send('/services/notion', { way: 'connector', token: TOKEN })).status).toBe(400);
  });

  test('forms of other sites', async () => {
    for (const path of ['/services/stripe', '/services/stripe/test']) {
      expect((await send(path, { way: 'connector', token: TOKEN }, 'https://evil.example')).status).toBe(403);
    }
  });

  test('a member who connects for the enterprise; its connector then serves members', async () => {
    const hosted = await startHosted();
    try {
      const { owner, member } = await ownerWithMember(hosted);
      const as = async (caller: typeof owner.caller) => {
        const headers = { cookie: await signInBrowser(hosted, caller), origin: PUBLIC_URL };
        const body = new URLSearchParams({ way: 'connector', token: TOKEN, owner: 'enterprise' });
        return (await hosted.inBrowser('/services/stripe', { method: 'POST', headers, body, redirect: 'manual' }))
          .status;
      };
      expect(await as(member.caller)).toBe(403);
      expect(await as(owner.caller)).toBe(303);
      const shown = await hosted.inBrowser('/services/stripe', {
        headers: { cookie: await signInBrowser(hosted, member.caller) },
      });
      expect(await shown.text()).toContain('catalog/stripe');
    } finally {
      await hosted.stop();
    }
  });
});

test('whether a stored value may be replaced is asked before a token is pasted', async () => {
  expect(await open('/services/stripe')).not.toContain('name="replace"');
  await control.asUser('POST', '/v1/secrets', { path: 'user/stripe', value: TOKEN, owner: 'personal' });
  expect(await open('/services/stripe')).toContain('name="replace"');
});

test('a connector with a sign-in is installed, and its page takes the OAuth client', async () => {
  const connected = await send('/services/google-calendar', { way: 'connector' });
  expect(connected.location).toMatch(/^\/connectors\/con_\w+\?done=connector_installed$/);
});
