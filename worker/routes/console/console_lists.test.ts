import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ITEMS_SPEC } from '../../../e2e/runtimes/connector_samples.ts';
import {
  type HostedUser,
  outcome,
  ownerWithMember,
  signInBrowser,
  startHosted,
} from '../../../e2e/runtimes/hosted_users.ts';
import { type InProcess, parseReply } from '../../../e2e/runtimes/in_process.ts';
import { removalPreview } from '../../../shared/wire/removals.ts';
import { TestSidecar } from '../../../e2e/runtimes/sidecar_client.ts';

// The lists of a hosted console with two people: what uses a secret, when it was last used, and what would break without it.

const SHARED = { path: 'team/shared', value: 'value-of-the-team', owner: 'enterprise' };
const TOKEN = 'ghp_0123456789abcdefghij';
let control: InProcess;
let owner: HostedUser;
let member: HostedUser;

beforeAll(async () => {
  control = await startHosted();
  ({ owner, member } = await ownerWithMember(control));
  await owner.call('POST', '/v1/secrets', SHARED);
  for (const user of [owner, member]) {
    await user.call('POST', '/v1/secrets', { path: 'user/key', value: `value-of-${user.caller.userId}` });
    await bind(user, 'api.own.test', 'user/key');
  }
  await bind(owner, 'api.shared.test', 'team/shared', 'enterprise');
  await bind(owner, 'api.lost.test', 'user/never-stored');
  await bind(owner, 'api.crossed.test', 'team/shared');
  await owner.call('POST', '/v1/connectors', ITEMS_SPEC);
  await owner.call('POST', '/v1/mcp-servers', { name: 'files', command: ['files-server'] });
});
afterAll(() => control.stop());

const bind = (user: HostedUser, host: string, path: string, of = 'personal') =>
  user.call('POST', '/v1/host-bindings', { host, scheme: 'bearer', credential_ref: `vault://${path}`, owner: of });

async function textOf(user: HostedUser, path: string): Promise<string> {
  const reply = await control.inBrowser(path, { headers: { cookie: await signInBrowser(control, user.caller) } });
  const page = (await reply.text()).replace(/^[^]*<main/, '');
  return page.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
}

async function fetchAs(user: HostedUser, credentials: readonly object[]): Promise<void> {
  const sidecar = await TestSidecar.make(control.send, 'X25519', () => control.clock.now());
  await sidecar.enrol(user.tokens.access_token);
  const body = { request_id: crypto.randomUUID(), credentials };
  await sidecar.call('POST', '/v1/sidecar/credentials', { body });
}

describe('the list of secrets', () => {
  test('names what uses each, and of other people’s uses only those of what they share', async () => {
    await fetchAs(member, [
      { owner: 'personal', path: 'user/key' },
      { owner: 'enterprise', path: 'team/shared' },
    ]);
    const text = await textOf(owner, '/secrets');
    expect(text).toMatch(/vault:\/\/team\/shared\s+api\.shared\.test binding now/);
    expect(text).toMatch(/vault:\/\/user\/key\s+api\.own\.test binding not recently/);
    expect(await textOf(member, '/secrets')).toMatch(/vault:\/\/user\/key\s+api\.own\.test binding now/);
  });

  test('is searched by the host that uses a secret, and ordered by use', async () => {
    expect(await textOf(owner, '/secrets?q=shared.test')).toContain('1 secret of 2');
    const byUse = await textOf(owner, '/secrets?sort=used');
    expect(byUse.indexOf('vault://team/shared')).toBeLessThan(byUse.indexOf('vault://user/key'));
  });
});

test('the list of bindings says whose secret is missing, and whose belongs to another owner', async () => {
  const text = await textOf(owner, '/bindings');
  expect(text).toMatch(/api\.lost\.test vault:\/\/user\/never-stored Not stored/);
  expect(text).toMatch(/api\.crossed\.test vault:\/\/team\/shared Another owner’s/);
  expect(text).toMatch(/api\.shared\.test vault:\/\/team\/shared Bearer/);
  expect(await textOf(member, '/bindings')).not.toContain('api.lost.test');
});

const at = (reference: string, of: string) =>
  `/bindings/new?credential_ref=${encodeURIComponent(reference)}&owner=${of}`;

test('the form of a binding says the same of the reference in it', async () => {
  expect(await textOf(owner, at('vault://team/shared', 'enterprise'))).toContain('Stored');
  expect(await textOf(owner, at('vault://team/shared', 'personal'))).toContain('Another owner’s');
  expect(await textOf(owner, at('vault://user/none', 'personal'))).toContain('Not stored');
  // A personal secret of somebody else is none at all.
  await member.call('POST', '/v1/secrets', { path: 'user/only-theirs', value: 'value-of-theirs' });
  expect(await textOf(owner, at('vault://user/only-theirs', 'enterprise'))).toContain('Not stored');
  expect(await textOf(owner, at(TOKEN, 'personal'))).not.toMatch(/Not stored|Another/);
});

describe('a deletion', () => {
  test('of a secret in use names what would break, and asks for nothing', async () => {
    const text = await textOf(owner, '/secrets/delete?path=team/shared&owner=enterprise');
    expect(text).toMatch(/This secret is in use[^]*api\.shared\.test binding/);
    expect(text).not.toContain('Delete it');
    await owner.call('POST', '/v1/secrets', { path: 'user/idle', value: 'value-of-nobody' });
    expect(await textOf(owner, '/secrets/delete?path=user/idle&owner=personal')).toMatch(
      /Nothing refers to it.*Delete it/,
    );
    expect(await textOf(owner, '/secrets/delete?path=user/none&owner=personal')).toContain(
      'There is no personal secret',
    );
  });

  test('of a binding says what its requests get then', async () => {
    const { items } = JSON.parse(await (await owner.call('GET', '/v1/host-bindings')).text());
    const idOf = (host: string) => items.find((each: { host: string }) => each.host === host).id;
    expect(await textOf(owner, `/bindings/${idOf('api.lost.test')}/delete`)).toContain(
      'forwarded without a credential',
    );
    await bind(owner, 'api.shared.test', 'user/key');
    expect(await textOf(owner, `/bindings/${idOf('api.shared.test')}/delete`)).toMatch(
      /They match these bindings instead: api\.shared\.test binding.*everyone in it.*Last used now/,
    );
  });

  test('of a shared binding names the colleagues who lose it too', async () => {
    const fixed = { host: 'api.given.test', scheme: 'bearer', credential_ref: 'vault://user/key', effect: 'read' };
    const { id } = JSON.parse(await (await owner.call('POST', '/v1/host-bindings', fixed)).text());
    const share = await owner.call('POST', '/v1/shares', { binding_id: id, user_id: member.caller.userId });
    const { shared_with: receiver } = JSON.parse(await share.text());
    expect(await textOf(owner, `/bindings/${id}/delete`)).toContain(
      `shared with these colleagues and groups, who lose it too: ${receiver.display_name}`,
    );
  });

  test('of a connector names the bindings of its hosts', async () => {
    const { items } = JSON.parse(await (await owner.call('GET', '/v1/connectors')).text());
    const [{ id, hosts }] = items;
    expect(await textOf(owner, `/connectors/${id}/remove`)).toContain('Its operations are not in force');
    await owner.call('PUT', `/v1/connectors/${id}/credential`, { kind: 'api_key', value: 'key-of-a-test' });
    expect(await textOf(owner, `/connectors/${id}/remove`)).toContain('no other binding is for these hosts');
    await bind(owner, hosts[0], 'user/key');
    expect(await textOf(owner, `/connectors/${id}/remove`)).toContain(
      `the credential of these bindings: ${hosts[0]} binding`,
    );
  });
});

const preview = async (user: HostedUser, path: string) =>
  parseReply(removalPreview, user.call('GET', `${path}/deletion`));

describe('the API of a deletion', () => {
  test('says the same as the page, and changes nothing', async () => {
    const seen = await owner.call('GET', '/v1/secrets/team/shared/deletion?owner=enterprise');
    const { allowed, effects } = await parseReply(removalPreview, Promise.resolve(seen));
    expect(allowed).toBe(false);
    expect(effects.map(({ code }) => code)).toEqual(['requests_refused', 'for_everyone']);
    expect(await textOf(owner, '/secrets')).toContain('team/shared');
  });

  test('names only what the caller sees', async () => {
    await member.call('POST', '/v1/secrets', { path: 'user/theirs', value: 'value-of-a-colleague' });
    expect(await outcome(owner.call('GET', '/v1/secrets/user/theirs/deletion'))).toBe('not_found');
    const { items } = JSON.parse(await (await owner.call('GET', '/v1/mcp-servers')).text());
    const server = await preview(owner, `/v1/mcp-servers/${items[0].id}`);
    expect(server).toMatchObject({ kind: 'mcp_server', name: 'files', allowed: true });
  });

  test('of what the enterprise owns is for its admins', async () => {
    expect(await outcome(member.call('GET', '/v1/secrets/team/shared/deletion?owner=enterprise'))).toBe(
      'admin_required',
    );
  });
});

test.each(['/connectors', '/mcp-servers'])('the list %s is searched and ordered by its address', async (path) => {
  expect(await textOf(owner, `${path}?q=nowhere`)).toContain('Nothing has these words');
  expect(await textOf(owner, `${path}?sort=used`)).toContain('not recently');
});
