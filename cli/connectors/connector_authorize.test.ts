import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli, TestHome, type Answer, type RunOptions, type SeenCall } from '../testing/run_cli.ts';
import { CONNECTOR, CONNECTOR_ID, NO_CREDENTIAL } from '../testing/connector_samples.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const SECRET = 'planted-secret-0123456789';
const time = '2026-01-01T11:59:00.000Z';
const waiting = {
  ...NO_CREDENTIAL,
  kind: 'oauth2',
  state: 'authorisation_required',
  updated_at: time,
  client_id: 'client-1',
  token_url: 'https://auth.example.com/token',
  scopes: ['read'],
};
const ready = { ...waiting, state: 'ready', renewable: true, updated_at: '2026-01-01T12:00:01.000Z' };
const missing = { ...waiting, state: 'missing', client_id: null, updated_at: null };
const operation = { name: 'get', method: 'GET', path: '/items', effect: 'read' };
const spec = {
  schema_version: 1,
  connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items' },
  hosts: ['api.example.com'],
  credential: { kind: 'oauth2' },
  operations: [operation],
};
const link = {
  grant: 'browser',
  authorization_url: 'https://auth.example.com/authorize?state=1',
  redirect_uri: 'http://127.0.0.1:7420/auth/connectors/callback',
  expires_at: '2026-01-01T12:00:10.000Z',
};
const code = {
  grant: 'device',
  user_code: 'ABCD-EFGH',
  verification_uri: 'https://auth.example.com/device',
  verification_uri_complete: null,
  interval_seconds: 5,
  expires_at: '2026-01-01T12:00:10.000Z',
};

/** A control plane that returns these credentials of the connector, one per read. */
function control(looks: readonly object[], reply: object = link): Answer {
  const left = [...looks];
  return ({ method, url }) => {
    const credential = looks[0];
    if (method === 'PUT') return { status: 200, body: waiting };
    if (method === 'POST') return { status: 200, body: reply };
    if (url.pathname === '/v1/connectors') {
      return { status: 200, body: { items: [{ ...CONNECTOR, credential }], next_cursor: null } };
    }
    return { status: 200, body: { ...CONNECTOR, spec, credential: left.length > 1 ? left.shift() : left[0] } };
  };
}

const authorize = (flags: readonly string[], options: RunOptions) =>
  runCli(home, ['connector', 'authorize', 'acme/items', ...flags], options);
const bodies = (calls: readonly SeenCall[]): unknown[] =>
  calls.flatMap(({ body }) => (body === undefined ? [] : [body]));

describe('svc connector authorize', () => {
  test('prints the link, waits, and reports success', async () => {
    const run = await authorize([], { answer: control([waiting, waiting, ready]) });
    expect(run).toMatchObject({ code: 0, stdout: 'authorised acme/items: it is renewed automatically\n' });
    expect(run.stderr).toContain(`\n  ${link.authorization_url}\n`);
    expect(run.stderr).toContain(link.redirect_uri);
    expect(bodies(run.calls)).toEqual([{ grant: 'browser' }]);
  });

  test('waits for a new authorisation if there is an old one', async () => {
    const before = { ...ready, updated_at: time };
    const run = await authorize([], { answer: control([before, before, ready]) });
    expect(run.code).toBe(0);
    expect(run.calls.filter(({ url }) => url.pathname.endsWith(CONNECTOR_ID))).toHaveLength(3);
  });

  test('prints the device code', async () => {
    const run = await authorize(['--device'], { answer: control([waiting, ready], code) });
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('open https://auth.example.com/device and enter the code:\n\n  ABCD-EFGH\n');
    expect(bodies(run.calls)).toEqual([{ grant: 'device' }]);
  });

  test('gives up when the link expires', async () => {
    const run = await authorize([], { answer: control([waiting]) });
    expect(run).toMatchObject({ code: 1, stdout: '' });
    expect(run.stderr).toContain('acme/items was not authorised in time');
  });

  test('prints only the link with --no-wait', async () => {
    const run = await authorize(['--no-wait', '--json'], { answer: control([waiting]) });
    expect(JSON.parse(run.stdout)).toEqual(link);
  });

  test('stores the client first, and never prints its secret from stdin', async () => {
    const flags = ['--client-id', 'c', '--client-secret-stdin', '--scope', 'a', '--scope', 'b', '--token-url'];
    const run = await authorize([...flags, 'https://x.example/t', '--client-authentication', 'basic'], {
      stdin: `${SECRET}\n`,
      answer: control([missing, ready]),
    });
    expect(run.code).toBe(0);
    expect(bodies(run.calls)[0]).toEqual({
      kind: 'oauth2',
      client_id: 'c',
      client_secret: SECRET,
      client_authentication: 'basic',
      token_url: 'https://x.example/t',
      scopes: ['a', 'b'],
    });
    expect(run.stdout + run.stderr).not.toContain(SECRET);
  });

  test('stores a client without a secret', async () => {
    const run = await authorize(['--client-id', 'c', '--public-client'], { answer: control([missing, ready]) });
    expect(bodies(run.calls)[0]).toEqual({ kind: 'oauth2', client_id: 'c' });
  });

  test('prompts for the secret at a terminal; empty means none', async () => {
    const typed = { terminal: true, answer: control([missing, ready]) };
    const run = await authorize(['--client-id', 'c'], { ...typed, stdin: `${SECRET}\n` });
    expect(bodies(run.calls)[0]).toMatchObject({ client_secret: SECRET });
    expect(run.stdout + run.stderr).not.toContain(SECRET);
    const empty = await authorize(['--client-id', 'c'], { ...typed, stdin: '\n' });
    expect(bodies(empty.calls)[0]).toEqual({ kind: 'oauth2', client_id: 'c' });
  });

  test.each([
    ['no client', missing, [], 'the connector has no OAuth client yet'],
    ['an incomplete client', waiting, ['--scope', 'x'], 'the other options need it'],
    ['no secret', waiting, ['--client-id', 'c'], '--public-client'],
    ['two answers', waiting, ['--client-id', 'c', '--public-client', '--client-secret-stdin'], 'choose one'],
    ['a connector with an API key', { ...missing, kind: 'api_key' }, [], 'svc connector credential set acme/items'],
  ])('refuses %s', async (_what, credential, flags, message) => {
    const run = await authorize(flags, { answer: control([credential]) });
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(bodies(run.calls)).toEqual([]);
    expect(run.stderr).toContain(message);
  });

  test("escapes control characters in the provider's text", async () => {
    const run = await authorize(['--device'], {
      answer: control([waiting, ready], { ...code, user_code: 'A\u001b[2J' }),
    });
    expect(run.stderr).toContain('A\\x1b[2J');
  });
});
