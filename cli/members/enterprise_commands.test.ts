import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, runCli, TestHome } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = 'ent_01m7yjbz4dz98vffmftfxp52e5';
const OWN = { issuer: 'https://id.acme.test', client_id: 'svc', domains: ['acme.test'] };
const SETTINGS = {
  id: ID,
  slug: 'acme',
  name: 'Acme',
  created_at: '2026-01-08T12:00:00.000Z',
  billing_email: 'bills@acme.test',
  allowed_domains: ['acme.test'],
  allowed_providers: null,
  sso_required: true,
  domain_joining: 'request',
  provider_mcp_clients: ['https://client.example.com/client.json'],
  oidc: { ...OWN, redirect_path: `/auth/${ID}/callback` },
  saml: null,
};
const SAML = {
  entity_id: 'https://idp.acme.test/saml',
  sso_url: 'https://idp.acme.test/sso',
  certificates: ['a'.repeat(64)],
  metadata_url: null,
  domains: ['beta.test'],
  metadata_path: `/auth/${ID}/metadata`,
  acs_path: `/auth/${ID}/acs`,
};
const SAME = {
  name: 'Acme',
  billing_email: 'bills@acme.test',
  allowed_domains: ['acme.test'],
  allowed_providers: null,
  sso_required: true,
  domain_joining: 'request',
  oidc: OWN,
  saml: null,
};

const answers =
  (settings: object): Answer =>
  () => ({ status: 200, body: settings });

/** The body of the command's write. */
async function written(args: readonly string[], settings: object = SETTINGS, stdin?: string): Promise<unknown> {
  const run = await runCli(home, ['enterprise', ...args], {
    answer: answers(settings),
    ...(stdin !== undefined && { stdin }),
  });
  return run.code === 0 ? run.calls.find(({ method }) => method === 'PUT')?.body : [run.code, run.stderr];
}

test.each([[['set', '--name', 'Other']], [['oidc', 'set', OWN.issuer, OWN.client_id]], [['oidc', 'remove', '--yes']]])(
  'svc enterprise %j changes the settings that were read, and no later ones',
  async (args) => {
    const run = await runCli(home, ['enterprise', ...args], { answer: answers({ ...SETTINGS, revision: 'r1' }) });
    expect(run.calls.at(-1)).toMatchObject({ method: 'PUT', ifMatch: '"r1"' });
  },
);

test('svc enterprise show prints the settings, and with --json as the API has them', async () => {
  const run = await runCli(home, ['enterprise', 'show'], { answer: answers(SETTINGS) });
  expect(run.stdout).toContain('OpenID provider:        https://id.acme.test\n');
  expect(run.stdout).toContain('provider’s MCP clients: https://client.example.com/client.json\n');
  expect(run.stdout).toContain('allowed providers:      any\n');
  const json = await runCli(home, ['enterprise', 'show', '--json'], { answer: answers(SETTINGS) });
  expect(JSON.parse(json.stdout)).toEqual(SETTINGS);
  const saml = await runCli(home, ['enterprise', 'show'], { answer: answers({ ...SETTINGS, oidc: null, saml: SAML }) });
  expect(saml.stdout).toContain(`certificate:            ${'a'.repeat(64)}\n`);
});

describe('svc enterprise set', () => {
  test('changes what is named and sends the rest as it is, without a secret', async () => {
    expect(await written(['set', '--sso-required', 'off'])).toEqual({ ...SAME, sso_required: false });
    const more = ['--name', 'Beta', '--billing-email', '', '--any-domain', '--allow-provider', 'codehost'];
    expect(await written(['set', ...more, '--joining', 'closed'])).toEqual({
      ...SAME,
      name: 'Beta',
      billing_email: null,
      allowed_domains: [],
      allowed_providers: ['codehost'],
      domain_joining: 'closed',
    });
  });

  test('keeps a SAML provider', async () => {
    const kept = { ...SAME, oidc: null, saml: { domains: ['beta.test'] } };
    expect(await written(['set', '--any-provider'], { ...SETTINGS, oidc: null, saml: SAML })).toEqual(kept);
  });

  test('sets the MCP clients that the provider connects, which stay if they are not named', async () => {
    const client = 'https://other.example.com/client.json';
    expect(await written(['set', '--provider-client', client])).toEqual({ ...SAME, provider_mcp_clients: [client] });
    expect(await written(['set', '--without-provider-clients'])).toEqual({ ...SAME, provider_mcp_clients: [] });
  });

  test('refuses another word than on and off', async () => {
    expect(await written(['set', '--sso-required', 'yes'])).toEqual([2, expect.stringContaining('use on or off')]);
  });
});

/** The calls of a removal that a person answers at a terminal. */
async function callsOfRemoval(typed: string): Promise<readonly string[]> {
  const asked = { answer: answers(SETTINGS), typed: [typed], terminal: true };
  const { calls } = await runCli(home, ['enterprise', 'oidc', 'remove'], asked);
  return calls.map(({ method }) => method);
}

describe('the provider of an enterprise', () => {
  test('is an OpenID provider, whose secret is read from stdin and in no argument', async () => {
    const args = ['oidc', 'set', 'https://new.test', 'client', '--domain', 'a.test', '--domain', 'b.test', '--stdin'];
    const oidc = {
      issuer: 'https://new.test',
      client_id: 'client',
      client_secret: 'secret',
      domains: ['a.test', 'b.test'],
    };
    expect(await written(args, SETTINGS, 'secret\n')).toEqual({ ...SAME, oidc });
    expect(await written(['oidc', 'set', OWN.issuer, 'svc'])).toEqual(SAME);
  });

  test('is a SAML provider by a file or a URL, instead of the other one', async () => {
    const file = join(home.path, 'metadata.xml');
    writeFileSync(file, '<x/>');
    const byFile = { metadata: '<x/>', domains: ['acme.test'] };
    expect(await written(['saml', 'set', '--metadata-file', file])).toEqual({ ...SAME, oidc: null, saml: byFile });
    const url = 'https://idp.acme.test/metadata';
    const byUrl = { metadata_url: url, domains: ['c.test'] };
    const args = ['saml', 'set', '--metadata-url', url, '--domain', 'c.test'];
    expect(await written(args)).toEqual({ ...SAME, oidc: null, saml: byUrl });
    expect(await written([...args, '--metadata-file', file])).toEqual([2, expect.stringContaining('choose one')]);
    expect(await written(['saml', 'set', '--metadata-file', '/none'])).toEqual([
      expect.any(Number),
      expect.stringContaining('--metadata-file'),
    ]);
  });

  const ofKind = { oidc: SETTINGS, saml: { ...SETTINGS, oidc: null, saml: SAML } };

  test.each([
    ['oidc', 'saml'],
    ['saml', 'oidc'],
  ] as const)('is removed by %s remove with --yes, and not by %s remove', async (kind, other) => {
    expect(await written([kind, 'remove', '--yes'], ofKind[kind])).toEqual({ ...SAME, oidc: null });
    const refusal = [1, expect.stringContaining('nothing was changed')];
    expect(await written([other, 'remove', '--yes'], ofKind[kind])).toEqual(refusal);
    expect(await written([kind, 'remove'], ofKind[kind])).toEqual([2, expect.stringContaining('--yes is missing')]);
  });

  test('is removed when a person at a terminal says so', async () => {
    expect([await callsOfRemoval('n'), await callsOfRemoval('y')]).toEqual([['GET'], ['GET', 'GET', 'PUT']]);
  });
});
