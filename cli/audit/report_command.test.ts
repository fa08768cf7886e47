import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { sealLines } from '../../shared/report/seal_advice.ts';
import { hostBindingInput } from '../../shared/wire/host_binding.ts';
import { loadTemplates } from '../bindings/binding_templates.ts';
import { runCli, TestHome, type Answer } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const id = (prefix: string, n: number) => `${prefix}_0000000000000000000000000${n}`;
const STORED = '2026-01-01T10:00:00.000Z';
const OWN_SIDECAR = id('sdc', 1);

function secret(path: string, change: object = {}) {
  const times = { created_at: STORED, updated_at: STORED };
  const named = { id: id('sec', 1), path, ref: `vault://${path}`, owner: 'personal', description: null };
  return { ...named, version: 1, ...times, ...change };
}
function binding(host: string, ref: string, change: object = {}) {
  const times = { created_at: STORED, updated_at: STORED };
  const input = hostBindingInput.parse({ host, scheme: 'bearer', credential_ref: ref, ...change });
  return { ...input, id: id('bnd', 1), ...times };
}
function unsealedEvent(ref: string, change: object = {}) {
  const place = { writer: OWN_SIDECAR, sequence: 1, previous_hash: '0', hash: '1', received_at: STORED };
  return {
    id: id('evt', 1),
    type: 'sandbox.proxy.credential_unsealed',
    time: '2026-01-01T11:00:00.000Z',
    sidecar_id: OWN_SIDECAR,
    session_id: 'ses_1',
    actor: 'session',
    data: {
      'svc.proxy.credential_ref': ref,
      'svc.proxy.upstream.host': 'db.example.com',
      'svc.proxy.reason': 'not HTTP',
    },
    ...place,
    ...change,
  };
}

interface World {
  readonly secrets?: readonly object[];
  readonly bindings?: readonly object[];
  readonly connectors?: readonly object[];
  readonly events?: readonly object[];
}

/** A control plane with this data. */
function holding(world: World): Answer {
  const sidecar = { id: OWN_SIDECAR, name: 'laptop', created_at: STORED, last_seen_at: null, revoked_at: null };
  const lists: Readonly<Record<string, readonly object[]>> = {
    '/v1/secrets': world.secrets ?? [],
    '/v1/host-bindings': world.bindings ?? [],
    '/v1/connectors': world.connectors ?? [],
    '/v1/sidecars': [sidecar],
    '/v1/audit-events': world.events ?? [],
  };
  return ({ url }) => ({ status: 200, body: { items: lists[url.pathname], next_cursor: null } });
}

const report = z.object({
  items: z.array(z.record(z.string(), z.unknown())),
  sealed: z.number(),
  not_sealed: z.number(),
});
async function reportOf(world: World) {
  const run = await runCli(home, ['report', 'sealability', '--json'], { answer: holding(world) });
  expect([run.code, run.stderr]).toEqual([0, '']);
  return report.parse(JSON.parse(run.stdout));
}

describe('svc report sealability', () => {
  test('lists the bindings that seal a credential, with scheme and emit mechanism', async () => {
    const bindings = [
      binding('a.example.com', 'vault://user/demo'),
      binding('b.example.com', 'vault://user/demo', {
        emit_mechanism: 'sentinel-swap',
        sentinel: { value: 'a-stand-in-of-some-length' },
      }),
    ];
    const { items, ...counts } = await reportOf({ secrets: [secret('user/demo')], bindings });
    expect(counts).toEqual({ sealed: 1, not_sealed: 0 });
    expect(items).toMatchObject([
      {
        path: 'user/demo',
        owner: 'personal',
        sealed: true,
        why_not: null,
        bindings: [
          { host: 'a.example.com', scheme: 'bearer', emit_mechanism: 'inject' },
          { host: 'b.example.com', scheme: 'bearer', emit_mechanism: 'sentinel-swap' },
        ],
        how_to_seal: [],
      },
    ]);
  });

  test('counts a session token as named by its binding', async () => {
    const signed = { scheme: 'sigv4-resign', access_key_id: 'AKIDEXAMPLE', region: 'eu-west-1', service: 's3' };
    const bindings = [binding('s3.example.com', 'vault://key', { ...signed, session_token_ref: 'vault://token' })];
    expect(await reportOf({ secrets: [secret('key'), secret('token')], bindings })).toMatchObject({ not_sealed: 0 });
  });

  test('only bindings of the credential’s owner count', async () => {
    const bindings = [binding('a.example.com', 'vault://key')];
    const { items } = await reportOf({ secrets: [secret('key', { owner: 'enterprise' }), secret('key')], bindings });
    expect(items).toMatchObject([
      { owner: 'enterprise', sealed: false, why_not: 'no_binding' },
      { owner: 'personal', sealed: true },
    ]);
    expect(items[0]?.['how_to_seal']).toEqual([
      "svc binding add '<host>' --scheme bearer --credential vault://key --owner enterprise",
    ]);
  });

  test('reports a credential that was handed out: when, for which host, why, and what to do', async () => {
    const events = [unsealedEvent('vault://db'), unsealedEvent('vault://db', { time: '2026-01-01T10:30:00.000Z' })];
    expect(await reportOf({ secrets: [secret('db')], events })).toMatchObject({
      not_sealed: 1,
      items: [
        {
          why_not: 'handed_out_unsealed',
          unsealed: {
            time: '2026-01-01T11:00:00.000Z',
            session_id: 'ses_1',
            host: 'db.example.com',
            reason: 'not HTTP',
          },
          how_to_seal: ['svc binding add db.example.com --scheme bearer --credential vault://db', 'svc secret set db'],
        },
      ],
    });
  });

  test('a credential that was handed out is not sealed, even if bound, until a new value is stored', async () => {
    const world = { bindings: [binding('db.example.com', 'vault://db')], events: [unsealedEvent('vault://db')] };
    const before = await reportOf({ ...world, secrets: [secret('db')] });
    expect(before.items).toMatchObject([{ sealed: false, how_to_seal: ['svc secret set db'], bindings: [{}] }]);
    const after = await reportOf({ ...world, secrets: [secret('db', { updated_at: '2026-01-01T11:00:01.000Z' })] });
    expect(after.items).toMatchObject([{ sealed: true, unsealed: null }]);
  });

  test.each([
    ['connectors/con_1/credential', 'connector'],
    ['mcp-servers/mcp_1/TOKEN', 'mcp_server'],
  ])('counts %s as sealed: only its %s receives it', async (path, keeper) => {
    const { items } = await reportOf({ secrets: [secret(path)] });
    expect(items).toMatchObject([{ sealed: true, kept_for: keeper, how_to_seal: [] }]);
  });

  test('names the image of the container that received a credential', async () => {
    const { data } = unsealedEvent('vault://db');
    const events = [unsealedEvent('vault://db', { data: { ...data, 'svc.sandbox.image': 'acme/agent:1' } })];
    expect((await reportOf({ secrets: [secret('db')], events })).items).toMatchObject([
      { unsealed: { image: 'acme/agent:1', session_id: 'ses_1' } },
    ]);
  });

  test('ignores events of other users and credentials of the enterprise', async () => {
    const colleague = unsealedEvent('vault://db', { sidecar_id: id('sdc', 2) });
    const bindings = [binding('a.test', 'vault://db'), binding('a.test', 'vault://db', { owner: 'enterprise' })];
    const mine = await reportOf({ secrets: [secret('db')], bindings, events: [colleague] });
    expect(mine.not_sealed).toBe(0);
    const shared = secret('db', { owner: 'enterprise' });
    const theirs = await reportOf({ secrets: [shared], bindings, events: [unsealedEvent('vault://db')] });
    expect(theirs.not_sealed).toBe(0);
  });

  test.each([
    [['--fail-on-unsealed'], [], 1],
    [['--fail-on-unsealed'], [binding('a.test', 'vault://db')], 0],
    [[], [], 0],
  ])('with %j and %j exits accordingly', async (flags, bindings, code) => {
    const answer = holding({ secrets: [secret('db')], bindings });
    expect((await runCli(home, ['report', 'sealability', ...flags], { answer })).code).toBe(code);
  });

  test('prints one line per credential for a program', async () => {
    const secrets = [secret('a'), secret('b'), secret('c')];
    const bindings = [binding('a.test', 'vault://a')];
    const events = [unsealedEvent('vault://c')];
    const { stdout } = await runCli(home, ['report', 'sealability'], {
      answer: holding({ secrets, bindings, events }),
    });
    expect(stdout.split('\n')).toEqual([
      'vault://a\tpersonal\tyes\ta.test (bearer, inject)\t',
      "vault://b\tpersonal\tno\tno binding names it\tsvc binding add '<host>' --scheme bearer --credential vault://b",
      'vault://c\tpersonal\tno\thanded out unsealed at 2026-01-01T11:00:00.000Z for db.example.com: not HTTP\tsvc binding add db.example.com --scheme bearer --credential vault://c; svc secret set c',
      '',
    ]);
  });

  test('prints a table and commands for a person, with control characters escaped', async () => {
    const events = [
      unsealedEvent('vault://c', { data: { ...unsealedEvent('vault://c').data, 'svc.proxy.reason': 'a\u001b[2Jb' } }),
    ];
    const answer = holding({ secrets: [secret('c')], events });
    const { stdout } = await runCli(home, ['report', 'sealability'], {
      answer,
      terminal: true,
      env: { NO_COLOR: '1' },
    });
    expect(stdout).toContain('CREDENTIAL  OWNER');
    expect(stdout).toContain('How to seal\nvault://c:\n  svc binding add db.example.com');
    expect(stdout).not.toContain('\u001b');
    const none = await runCli(home, ['report', 'sealability'], { answer: holding({}), terminal: true });
    expect(none.stdout).toContain('No secrets yet');
  });
});

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const templates = loadTemplates(root);
const linesFor = (path: string, host: string | null = null, description: string | null = null) =>
  sealLines({ path, ref: `vault://${path}`, owner: 'personal', description }, host, templates);

/** Splits a line as a shell would (only ' quotes) and fills in the <> placeholders. */
function splitLine(line: string): string[] {
  const words = Array.from(line.matchAll(/'([^']*)'|(\S+)/g), (match) => match[1] ?? match[2] ?? '');
  return words.slice(1).map((word) => word.replaceAll(/<[^>]*>/g, 'example'));
}

/** A control plane that stores every valid binding. */
const takingBindings: Answer = ({ url, body }) => {
  if (url.pathname !== '/v1/host-bindings') return { status: 200, body: { items: [], next_cursor: null } };
  const times = { created_at: STORED, updated_at: STORED };
  return { status: 201, body: { ...hostBindingInput.parse(body), id: id('bnd', 1), ...times } };
};

describe('how to seal', () => {
  test.each([
    ['user/github', 'svc binding add --from github-api --credential vault://user/github'],
    ['user/github-git-token', 'svc binding add --from github-git --credential vault://user/github-git-token'],
    ['work/openai_key', 'svc binding add --from openai --credential vault://work/openai_key'],
    [
      'jira',
      "svc binding add '<site>.atlassian.net' --from jira-cloud --username '<username>' --credential vault://jira",
    ],
    [
      'aws/s3',
      "svc binding add --from aws-s3 --region '<region>' --access-key-id '<access-key-id>' --credential vault://aws/s3",
    ],
    ['user/demo', "svc binding add '<host>' --scheme bearer --credential vault://user/demo"],
    ['git', "svc binding add '<host>' --scheme bearer --credential vault://git"],
  ])('suggests a template that matches the path %s', (path, expected) => {
    expect(linesFor(path)[0]).toBe(expected);
  });

  test('prefers the host that it was handed out for, then the path, then the description', () => {
    expect(linesFor('user/openai', 'api.stripe.com')).toEqual([
      'svc binding add --from stripe --credential vault://user/openai',
    ]);
    expect(linesFor('user/key', null, 'The Stripe key')[0]).toContain('--from stripe');
  });

  test.each(templates.map(({ name }) => [name]))('the suggested command for %s is valid', async (name) => {
    const line = linesFor(name.replaceAll('-', '/')).find((each) => each.includes(`--from ${name} `)) ?? '';
    const run = await runCli(home, splitLine(line), { answer: takingBindings });
    expect([line, run.code, run.stderr.includes('error')]).toEqual([line, 0, false]);
  });
});
