import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli, TestHome, type Answer, type RunResult } from '../testing/run_cli.ts';
import { CONNECTOR } from '../testing/connector_samples.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const TIMES = { created_at: '2026-01-01T11:59:00.000Z', updated_at: '2026-01-01T11:59:00.000Z' };
const existing = {
  id: 'bnd_01m7yjc1391a5krmyacsgq908t',
  ...TIMES,
  owner: 'personal',
  host: 'api.example.com',
  credential_ref: 'vault://user/demo',
  scheme: 'bearer',
  emit_mechanism: 'inject',
  allowed_hosts: [],
  body: 'buffer',
};
const secret = {
  id: 'sec_01m7yjbz4dz98vffmftfxp52e5',
  ...TIMES,
  path: 'user/demo',
  ref: 'vault://user/demo',
  owner: 'personal',
  description: null,
  version: 1,
};

const GUARDED_CONNECTOR = {
  ...CONNECTOR,
  spec: {
    schema_version: 1,
    connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items' },
    hosts: ['api.example.com'],
    credential: { kind: 'api_key' },
    operations: [{ name: 'merge', method: 'POST', path: '/merge', effect: 'write', approval: 'required', inputs: [] }],
  },
};

/** A control plane with one binding and one secret; it returns a written binding as a record. */
const control: Answer = ({ method, url, body }) => {
  if (url.pathname === '/v1/secrets') return { status: 200, body: { items: [secret], next_cursor: null } };
  if (url.pathname === '/v1/connectors') return { status: 200, body: { items: [], next_cursor: null } };
  if (method === 'GET') return { status: 200, body: { items: [existing], next_cursor: null } };
  if (method === 'DELETE') return { status: 204 };
  return { status: 201, body: { ...existing, ...(typeof body === 'object' ? body : {}) } };
};

function listWrites(run: RunResult): readonly string[] {
  return run.calls.filter((call) => call.method !== 'GET').map((call) => `${call.method} ${call.url.pathname}`);
}

const add = ['binding', 'add', 'api.example.org', '--credential', 'vault://user/demo'];

describe('a binding without an effect on a host with gated operations', () => {
  const { spec, ...summary } = GUARDED_CONNECTOR;
  const answerWithConnector: Answer = (call) => {
    if (call.url.pathname === '/v1/connectors') return { status: 200, body: { items: [summary], next_cursor: null } };
    if (call.url.pathname.startsWith('/v1/connectors/')) return { status: 200, body: { ...summary, spec } };
    return control(call);
  };
  const bind = ['binding', 'add', 'api.example.com', '--credential', 'vault://user/demo', '--scheme', 'bearer'];

  test('is pointed out on creation, with the command for either choice', async () => {
    const run = await runCli(home, bind, { answer: answerWithConnector });
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(/warning: the binding for api\.example\.com has no effect, so it only reads there/);
    expect(run.stderr).toContain(`svc binding effect ${existing.id} read, or write`);
    expect(listWrites(run)).toEqual(['POST /v1/host-bindings']);
  });

  test('is narrowed only if the person confirms it at a terminal', async () => {
    const yes = await runCli(home, bind, { answer: answerWithConnector, terminal: true, stdin: 'y\n' });
    expect(listWrites(yes)).toEqual(['POST /v1/host-bindings', `PUT /v1/host-bindings/${existing.id}`]);
    expect(yes.calls.at(-1)?.body).toMatchObject({ host: 'api.example.com', effect: 'read' });
    const no = await runCli(home, bind, { answer: answerWithConnector, terminal: true, stdin: '\n' });
    expect(listWrites(no)).toEqual(['POST /v1/host-bindings']);
  });

  test('is not pointed out if it has an effect', async () => {
    const run = await runCli(home, [...bind, '--effect', 'write'], { answer: answerWithConnector });
    expect(run.stderr).toBe('');
  });

  test('is pointed out when the connector is installed later', async () => {
    home.write('items.json', JSON.stringify(spec));
    const answer: Answer = (call) =>
      call.method === 'POST' ? { status: 201, body: { ...summary, spec, warnings: [] } } : answerWithConnector(call);
    const run = await runCli(home, ['connector', 'install', './items.json'], { answer });
    expect(run.code).toBe(0);
    expect(run.stderr).toContain(`svc binding effect ${existing.id} read, or write`);
  });
});

describe('svc binding effect', () => {
  test('changes only the effect', async () => {
    const run = await runCli(home, ['binding', 'effect', 'api.example.com', 'write'], { answer: control });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(listWrites(run)).toEqual([`PUT /v1/host-bindings/${existing.id}`]);
    const { id: _id, created_at: _created, updated_at: _updated, ...input } = existing;
    expect(run.calls.at(-1)).toMatchObject({ ifMatch: `"${existing.updated_at}"` });
    expect(run.calls.at(-1)?.body).toEqual({ ...input, effect: 'write' });
  });

  test('refuses an unknown effect, and a host without a binding', async () => {
    const wrong = await runCli(home, ['binding', 'effect', 'api.example.com', 'all'], { answer: control });
    const none = await runCli(home, ['binding', 'effect', 'other.example.com', 'read'], { answer: control });
    expect([wrong.code, none.code, ...listWrites(wrong), ...listWrites(none)]).toEqual([2, 1]);
  });
});

describe('svc binding limit', () => {
  const { id: _id, created_at: _created, updated_at: _updated, ...input } = existing;

  test('changes only the limits that are given, and shows them', async () => {
    const argv = ['binding', 'limit', 'api.example.com', '--per-minute', '60', '--per-day', '2000'];
    const run = await runCli(home, argv, { answer: control });
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toContain('at most 60 requests a minute and 2000 requests a day, on each machine');
    expect(run.calls.at(-1)?.body).toEqual({ ...input, requests_per_minute: 60, requests_per_day: 2000 });
  });

  test('removes a limit, and without options only shows them', async () => {
    const limited = { ...existing, requests_per_minute: 60, requests_per_day: 2000 };
    const answer: Answer = (call) =>
      call.method === 'GET' ? { status: 200, body: { items: [limited], next_cursor: null } } : control(call);
    const off = await runCli(home, ['binding', 'limit', 'api.example.com', '--per-day', 'off'], { answer });
    expect(off.calls.at(-1)?.body).toEqual({ ...input, requests_per_minute: 60 });
    const shown = await runCli(home, ['binding', 'limit', 'api.example.com'], { answer });
    expect([listWrites(shown), shown.stdout]).toEqual([[], expect.stringContaining('60 requests a minute')]);
  });

  test('takes a size of bytes in words, shows it so, and removes it', async () => {
    const argv = ['binding', 'limit', 'api.example.com', '--bytes-per-day'];
    const run = await runCli(home, [...argv, '500MB'], { answer: control });
    expect(run.calls.at(-1)?.body).toEqual({ ...input, bytes_per_day: 500_000_000 });
    expect(run.stdout).toContain('at most 500 MB a day, on each machine');
    const limited = { ...existing, bytes_per_day: 500_000_000 };
    const answer: Answer = (call) =>
      call.method === 'GET' ? { status: 200, body: { items: [limited], next_cursor: null } } : control(call);
    const off = await runCli(home, [...argv, 'off'], { answer });
    expect([off.calls.at(-1)?.body, off.stdout]).toEqual([
      input,
      expect.stringContaining('no limit of requests or bytes'),
    ]);
    const wrong = await runCli(home, [...argv, '1.5GB'], { answer: control });
    expect([wrong.code, listWrites(wrong), wrong.stderr]).toEqual([
      2,
      [],
      'svc: --bytes-per-day must be a whole number of bytes, or a size such as 500MB or 2GiB\n     To remove the limit: off\n',
    ]);
  });

  test.each([
    ['0', 'must be at least 1'],
    ['1.5', 'must be a whole number from 1 to 1000000'],
    ['many', 'must be a whole number from 1 to 1000000'],
    ['9999999', 'must be at most 1000000: leave it out for no limit'],
  ])('refuses %s, and says how a limit is removed', async (text, problem) => {
    const run = await runCli(home, ['binding', 'limit', 'api.example.com', '--per-day', text], { answer: control });
    expect([run.code, listWrites(run)]).toEqual([2, []]);
    expect(run.stderr).toBe(`svc: --per-day ${problem}\n     To remove the limit: off\n`);
  });
});

describe('svc binding add', () => {
  test('takes limits of requests', async () => {
    const limits = ['--requests-per-minute', '5', '--requests-per-day', '90', '--bytes-per-day', '2 GiB'];
    const run = await runCli(home, [...add, '--scheme', 'bearer', ...limits], { answer: control });
    const expected = { requests_per_minute: 5, requests_per_day: 90, bytes_per_day: 2_147_483_648 };
    expect(run.calls[0]?.body).toMatchObject(expected);
    const wrong = await runCli(home, [...add, '--scheme', 'bearer', '--requests-per-day', 'x'], { answer: control });
    expect(wrong.stderr).toContain('--requests-per-day must be a whole number from 1 to 1000000');
  });

  test('writes the fields given by flags', async () => {
    const flags = [
      '--scheme',
      'bearer',
      '--effect',
      'read',
      '--allowed-host',
      'a.example',
      '--allowed-host',
      'b.example',
    ];
    const run = await runCli(home, [...add, ...flags], { answer: control });
    expect(run).toMatchObject({ code: 0, stdout: `${existing.id}\n`, stderr: '' });
    expect(run.calls[0]?.body).toEqual({
      owner: 'personal',
      host: 'api.example.org',
      credential_ref: 'vault://user/demo',
      scheme: 'bearer',
      emit_mechanism: 'inject',
      effect: 'read',
      allowed_hosts: ['a.example', 'b.example'],
      body: 'buffer',
    });
  });

  test('says if replies give the agent cookies or credentials', async () => {
    const argv = ['binding', 'add', 'sts.amazonaws.com', ...add.slice(3), '--scheme', 'bearer', '--keep-cookies'];
    const run = await runCli(home, argv, { answer: control });
    expect(run.calls[0]?.body).toMatchObject({ keep_cookies: true });
    expect(run.stderr).toContain('keep their cookies');
    expect(run.stderr).toContain('issues AWS keys');
  });

  test('names a secret that is not stored yet, and how to store it', async () => {
    const argv = ['binding', 'add', 'api.example.org', '--scheme', 'bearer', '--credential', 'vault://user/other'];
    expect((await runCli(home, argv, { answer: control })).stderr).toContain('svc secret set user/other');
  });

  test.each([
    ['an upper-case scheme', [...add, '--scheme', 'Bearer'], '--scheme'],
    ['a missing parameter', [...add, '--scheme', 'basic'], '--username'],
    ['a host with port 80', ['binding', 'add', 'api.example.org:80', ...add.slice(3), '--scheme', 'bearer'], 'HOST'],
    ['*.com', ['binding', 'add', '*.com', ...add.slice(3), '--scheme', 'bearer'], 'HOST'],
    ['no host', ['binding', 'add', '--scheme', 'bearer', '--credential', 'vault://user/demo'], 'HOST'],
    ['no credential', ['binding', 'add', 'api.example.org', '--scheme', 'bearer'], '--credential'],
  ])('refuses %s before any call and names the flag', async (_name, argv, flag) => {
    const run = await runCli(home, argv, { answer: control });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain(flag);
  });

  test('does not repeat a secret typed in place of its reference', async () => {
    const argv = ['binding', 'add', 'api.example.org', '--scheme', 'bearer', '--credential', 'ghp_planted0123456789'];
    const run = await runCli(home, argv, { answer: control });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).not.toContain('ghp_planted');
  });

  test('completes a path to its reference, but not what may be a secret', async () => {
    const argv = ['binding', 'add', 'api.example.org', '--scheme', 'bearer', '--credential'];
    const run = await runCli(home, [...argv, 'user/github'], { answer: control });
    expect(run.calls[0]?.body).toMatchObject({ credential_ref: 'vault://user/github' });
    const refused = await runCli(home, [...argv, 'wJalrXUtnFEMI/K7MDENG/planted'], { answer: control });
    expect(refused).toMatchObject({ code: 2, calls: [] });
    expect(refused.stderr).not.toContain('planted');
  });

  test.each(['localhost', 'db.localhost'])('warns that requests to %s do not use the proxy', async (host) => {
    const argv = ['binding', 'add', host, ...add.slice(3), '--scheme', 'bearer'];
    expect((await runCli(home, argv, { answer: control })).stderr).toContain(`warning: ${host} is this machine`);
  });

  test('names the flag for a placeholder of a template', async () => {
    const argv = ['binding', 'add', '--from', 'jira-cloud', '--credential', 'vault://jira'];
    const run = await runCli(home, argv, { answer: control });
    expect(run).toMatchObject({ code: 2, calls: [] });
    expect(run.stderr).toContain('<site>: give HOST');
    expect(run.stderr).toContain('<username>: give --username');
  });

  test("generates a placeholder in the vendor's format and prints it", async () => {
    const argv = ['binding', 'add', 'api.github.com', '--credential', 'vault://user/demo', '--scheme', 'bearer'];
    const run = await runCli(home, [...argv, '--emit', 'sentinel-swap', '--sentinel-env', 'GITHUB_TOKEN'], {
      answer: control,
    });
    expect(run.calls[0]?.body).toMatchObject({
      sentinel: { env: 'GITHUB_TOKEN', value: expect.stringMatching(/^ghp_[A-Za-z0-9]{36}$/) },
    });
    expect(run.stderr).toMatch(/placeholder for the agent \(not a secret\): ghp_/);
  });

  test('starts from a template', async () => {
    const argv = ['binding', 'add', '--from', 'github-api', '--credential', 'vault://user/demo'];
    const run = await runCli(home, argv, { answer: control });
    expect(run.stderr).toBe('');
    expect(run.calls[0]?.body).toMatchObject({ host: 'api.github.com', scheme: 'bearer' });
  });

  test('suggests the nearest template for an unknown name', async () => {
    const run = await runCli(home, ['binding', 'add', '--from', 'github-ap'], { answer: control });
    expect(run.stderr).toContain('Did you mean github-api?');
  });
});

const yaml = (effect: string): string => `
- host: api.example.com
  credential_ref: vault://user/demo
  scheme: bearer
  ${effect}
`;

describe('svc binding apply', () => {
  test('changes nothing if the file matches the stored bindings', async () => {
    home.write('b.yaml', yaml(''));
    const run = await runCli(home, ['binding', 'apply', '-f', 'b.yaml'], { answer: control });
    expect(run).toMatchObject({ code: 0, stdout: '= unchanged api.example.com (bearer)\n' });
    expect(listWrites(run)).toEqual([]);
  });

  test('updates differing bindings and shows the changed fields', async () => {
    home.write('b.yaml', yaml('effect: read'));
    const run = await runCli(home, ['binding', 'apply', '-f', 'b.yaml'], { answer: control });
    expect(run.stdout).toBe('~ update api.example.com (bearer)\n    effect: (none) -> "read"\n');
    expect(listWrites(run)).toEqual([`PUT /v1/host-bindings/${existing.id}`]);
    const put = run.calls.find(({ method }) => method === 'PUT');
    expect(put?.ifMatch).toBe(`"${existing.updated_at}"`);
    expect(put?.body).not.toHaveProperty('revision');
  });

  test('creates new bindings, and writes nothing in a dry run', async () => {
    const text = `bindings:\n${yaml('').replace('api.example.com', 'new.example.com')}`;
    const apply = ['binding', 'apply', '-f', '-'];
    const run = await runCli(home, apply, { answer: control, stdin: text });
    expect(listWrites(run)).toEqual(['POST /v1/host-bindings']);
    const dry = await runCli(home, [...apply, '--dry-run'], { answer: control, stdin: text });
    expect(dry.stdout).toBe(run.stdout);
    expect(listWrites(dry)).toEqual([]);
  });

  test.each([
    ['an unknown key', yaml('efect: read'), 'efect'],
    ['a duplicate', yaml('') + yaml('').trimStart(), 'binding 2 (api.example.com)'],
    ['a key given twice', yaml('scheme: basic'), 'unique'],
    ['broken YAML', '- host: [', 'was not applied'],
    ['nothing', '# only a comment\n', 'no binding'],
  ])('refuses the whole file if it has %s', async (_name, text, message) => {
    home.write('b.yaml', text);
    const run = await runCli(home, ['binding', 'apply', '-f', 'b.yaml'], { answer: control });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect(listWrites(run)).toEqual([]);
  });

  test('accepts the output of show', async () => {
    const shown = await runCli(home, ['binding', 'show', 'api.example.com'], { answer: control });
    const run = await runCli(home, ['binding', 'apply', '-f', '-'], { answer: control, stdin: shown.stdout });
    expect(run.stdout).toContain('= unchanged api.example.com');
  });
});

describe('svc binding rm', () => {
  test('deletes by host', async () => {
    const run = await runCli(home, ['binding', 'rm', 'API.example.com'], { answer: control });
    expect(listWrites(run)).toEqual([`DELETE /v1/host-bindings/${existing.id}`]);
  });

  test('asks for the id if several bindings have the host', async () => {
    const items = [existing, { ...existing, id: 'bnd_01m7yjc1391a5krmyacsgq908v', owner: 'enterprise' }];
    const answer: Answer = () => ({ status: 200, body: { items, next_cursor: null } });
    const run = await runCli(home, ['binding', 'rm', 'api.example.com'], { answer });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('bnd_01m7yjc1391a5krmyacsgq908v');
    expect(listWrites(run)).toEqual([]);
  });

  test('an unknown host is an error', async () => {
    expect((await runCli(home, ['binding', 'rm', 'other.example'], { answer: control })).code).toBe(1);
  });
});

test('svc binding templates lists the catalog', async () => {
  const run = await runCli(home, ['binding', 'templates']);
  expect(run.stdout).toContain('github-api\t');
  expect((await runCli(home, ['binding', 'templates', 'github-api', '--json'])).stdout).toContain('"wire_form"');
});
