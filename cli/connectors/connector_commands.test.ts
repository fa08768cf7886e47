import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { catalogNames } from './connector_catalog.ts';
import { runCli, TestHome, type Answer, type RunOptions, type SeenCall } from '../testing/run_cli.ts';
import { CONNECTOR, CONNECTOR_ID, NO_CREDENTIAL } from '../testing/connector_samples.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const KEY = 'planted-secret-0123456789';
const time = '2026-01-01T11:59:00.000Z';
const spec = {
  schema_version: 1,
  connector: { fqn: 'acme/items', version: '1.0.0', title: 'Items' },
  hosts: ['api.example.com', 'eu.example.com'],
  credential: { kind: 'api_key' },
  operations: [
    {
      name: 'update-item',
      method: 'PATCH',
      path: '/items/{id}',
      effect: 'write',
      inputs: [
        { name: 'id', in: 'path', type: 'integer', required: true },
        { name: 'title', in: 'body', required: true },
        { name: 'open', in: 'body', type: 'boolean' },
        { name: 'tags', in: 'body', type: 'array' },
        { name: 'meta', in: 'body', type: 'object' },
      ],
    },
  ],
};
const summary = { ...CONNECTOR, hosts: spec.hosts, active: false };
const record = { ...summary, spec };

/** A control plane with these connectors; `extra` answers other calls. */
function control(extra: Answer = () => ({ status: 500 }), items: readonly unknown[] = [summary]): Answer {
  return (call) => {
    if (call.method !== 'GET') return extra(call);
    if (call.url.pathname === '/v1/connectors') return { status: 200, body: { items, next_cursor: null } };
    return call.url.pathname === `/v1/connectors/${CONNECTOR_ID}` ? { status: 200, body: record } : extra(call);
  };
}

const refusal = (code: string, details?: object): object => ({
  error: { code, message: 'no', request_id: 'req_1', ...(details && { details }) },
});
const run = (argv: readonly string[], options: RunOptions = {}) => runCli(home, ['connector', ...argv], options);
const writes = (calls: readonly SeenCall[]): readonly SeenCall[] => calls.filter(({ method }) => method !== 'GET');

const answerInstalled: Answer = () => ({ status: 201, body: { ...record, warnings: ['a and b overlap'] } });

describe('svc connector install', () => {
  test('sends the spec of a file and prints the next step', async () => {
    home.write('items.json', JSON.stringify(spec));
    const result = await run(['install', './items.json', '--owner', 'enterprise'], { answer: answerInstalled });
    expect(result).toMatchObject({ code: 0, stdout: `${CONNECTOR_ID}\n` });
    expect(result.calls).toMatchObject([{ method: 'POST', body: { connector: { fqn: 'acme/items' } } }]);
    expect(result.calls[0]?.url.search).toBe('?owner=enterprise');
    expect(result.stderr).toContain('warning: a and b overlap\n');
    expect(result.stderr).toContain('svc connector credential set acme/items');
  });

  const REF = 'vault://user/items';
  const LOGIN = 'vault://connectors/login/items';
  const stored = {
    id: 'sec_01m7yjbz4dz98vffmftfxp52e5',
    path: 'user/items',
    ref: REF,
    owner: 'personal',
    description: null,
    version: 1,
    created_at: time,
    updated_at: time,
  };
  const bound = (host: string, ref: string, more: object = {}): object => ({
    id: `bnd_${String(host.length).padStart(26, '0')}`,
    owner: 'personal',
    host,
    scheme: 'bearer',
    credential_ref: ref,
    emit_mechanism: 'inject',
    allowed_hosts: [],
    body: 'buffer',
    created_at: time,
    updated_at: time,
    ...more,
  });
  const bindings = [
    bound('*.example.com', REF),
    bound('other.test', 'vault://user/other'),
    bound('*.example.com', LOGIN),
    bound('*.example.com', 'vault://user/gone'),
    bound('api.example.com', 'vault://team/items', { owner: 'enterprise' }),
  ];
  const serving: Answer = ({ method, url }) => {
    if (method === 'PUT')
      return { status: 200, body: { ...NO_CREDENTIAL, ref: REF, state: 'ready', updated_at: time } };
    if (method === 'POST') return { status: 201, body: { ...record, warnings: [] } };
    const items =
      url.pathname === '/v1/secrets'
        ? [stored, { ...stored, ref: LOGIN }]
        : url.pathname === '/v1/host-bindings'
          ? bindings
          : [];
    return { status: 200, body: { items, next_cursor: null } };
  };
  const served = { kind: 'api_key', credential_ref: REF };

  test.each([['user/items'], [REF]])('lets the secret --secret %s serve it', async (secret) => {
    const result = await run(['install', '-', '--secret', secret, '--json'], {
      stdin: JSON.stringify(spec),
      answer: serving,
    });
    expect(writes(result.calls).map(({ url, body }) => [url.pathname, body])).toMatchObject([
      ['/v1/connectors', {}],
      [`/v1/connectors/${CONNECTOR_ID}/credential`, served],
    ]);
    expect(JSON.parse(result.stdout)).toMatchObject({ active: true, credential: { ref: REF, state: 'ready' } });
  });

  test.each([
    ['a credential in place of its path', 'ghp_0123456789', spec, '--secret must be a reference such as'],
    ["another connector's", 'vault://connectors/a/b', spec, '--secret the vault path begins with the reserved'],
    ['a secret for OAuth', REF, { ...spec, credential: { kind: 'oauth2' } }, 'takes an oauth2 credential'],
  ])('refuses %s before anything is installed', async (_, secret, written, message) => {
    const result = await run(['install', '-', '--secret', secret], { stdin: JSON.stringify(written), answer: serving });
    expect([result.code, result.calls]).toEqual([2, []]);
    expect(result.stderr).toContain(message);
    expect(result.stderr).not.toContain('ghp_0123456789');
  });

  test('asks at a terminal which stored secret serves it, and lists those that its hosts get from a binding', async () => {
    home.write('items.json', JSON.stringify(spec));
    const result = await run(['install', './items.json'], { terminal: true, typed: ['1'], answer: serving });
    expect(result.stderr).toContain('Stored secrets that bindings send to api.example.com, eu.example.com:');
    expect(result.stderr).toContain('  1  vault://user/items  (*.example.com)\n');
    expect(result.stderr).not.toContain('  2  ');
    expect(result.stderr).toContain('vault://user/items serves acme/items on api.example.com, eu.example.com.');
    expect(writes(result.calls).at(-1)?.body).toEqual(served);
    expect(result.stderr).not.toContain('inactive');
  });

  test('offers no secret that also goes to a host where no binding sends it, and names the host', async () => {
    const operations = [...spec.operations, { ...spec.operations[0], name: 'other', hosts: ['evil.test'] }];
    const hidden = { ...spec, operations };
    home.write('items.json', JSON.stringify(hidden));
    const answer: Answer = (call) =>
      call.method === 'POST' ? { status: 201, body: { ...record, spec: hidden, warnings: [] } } : serving(call);
    const asked = await run(['install', './items.json'], { terminal: true, typed: ['1'], answer });
    expect(asked.stderr).not.toContain('Stored secrets');
    expect(writes(asked.calls).map(({ method }) => method)).toEqual(['POST']);
    const named = await run(['install', './items.json', '--secret', REF], { answer });
    expect(named.stderr).toContain('vault://user/items also goes to evil.test, where no binding sends it');
    expect(writes(named.calls).at(-1)?.body).toEqual(served);
  });

  test.each([[''], ['2'], ['vault://user/other']])('leaves it inactive if the answer is %j', async (typed) => {
    home.write('items.json', JSON.stringify(spec));
    const result = await run(['install', './items.json'], { terminal: true, typed: [typed], answer: serving });
    expect(writes(result.calls).map(({ method }) => method)).toEqual(['POST']);
    expect(result.stderr).toContain('It is inactive and changes nothing until it has a credential: svc connector');
  });

  test('a bare name means the catalog, even if a file has that name', async () => {
    home.write('github', 'hosts: [evil.example]');
    const result = await run(['install', 'github'], { answer: answerInstalled });
    expect(result.calls[0]?.body).toMatchObject({ connector: { fqn: 'catalog/github' }, hosts: ['api.github.com'] });
  });

  test('reads stdin', async () => {
    const result = await run(['install', '-'], { stdin: JSON.stringify(spec), answer: answerInstalled });
    expect(result.calls[0]?.body).toMatchObject({ hosts: spec.hosts });
  });

  test.each([
    ['hosts', { ...spec, hosts: ['*.example.com'] }, 'hosts[0] has a "*" in it: a connector names each host exactly'],
    ['an unknown field', { ...spec, host: 'x' }, 'unknown field "host": did you mean "hosts"?'],
    [
      'a path',
      { ...spec, operations: [{ ...spec.operations[0], path: 'items' }] },
      'operations[0].path (update-item) must begin with "/"',
    ],
  ])('refuses a spec before sending it and names %s', async (_what, value, message) => {
    home.write('bad.json', JSON.stringify(value));
    const result = await run(['install', './bad.json'], { answer: answerInstalled });
    expect(result).toMatchObject({ code: 1, stdout: '', calls: [] });
    expect(result.stderr).toContain('./bad.json was not installed:\n');
    expect(result.stderr).toContain(message);
  });

  test.each([
    ['./gone.yaml', 'cannot be read'],
    ['githib', 'Did you mean github?'],
    ['catalog/github', 'svc connector install github'],
  ])('says what to do about %s', async (name, message) => {
    const result = await run(['install', name], { answer: answerInstalled });
    expect(result.code).not.toBe(0);
    expect(result.stderr).toContain(message);
    expect(result.calls).toEqual([]);
  });

  test.each([
    ['a: [', 'Flow sequence'],
    ['a: 1\na: 2', 'unique'],
    ['a: &a [x]\nb: [*a, *c]', 'alias'],
  ])('refuses YAML that cannot be read: %j', async (text, message) => {
    const result = await run(['install', '-'], { stdin: text });
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(message);
  });

  test('only checks locally with --dry-run, and warns about overlapping paths', async () => {
    const read = { name: 'a', method: 'GET', path: '/x/{id}/tags', effect: 'read' };
    const id = { name: 'id', in: 'path', required: true };
    const operations = [
      { ...read, inputs: [id] },
      { ...read, name: 'b', path: '/x/mine/{id}', inputs: [id] },
      { ...read, name: 'c', path: '/y/mine/{id}', inputs: [id] },
    ];
    const result = await run(['install', '-', '--dry-run'], { stdin: JSON.stringify({ ...spec, operations }) });
    expect(result).toMatchObject({ code: 0, stdout: 'acme/items 1.0.0 is valid: 3 operations\n', calls: [] });
    expect(result.stderr).toBe(
      'warning: a and b overlap: a request such as GET /x/mine/tags matches both, so it counts as neither\n',
    );
  });
});

describe('svc connector', () => {
  test('list is tab-separated for a program', async () => {
    const result = await run(['list'], { answer: control() });
    const cells = [
      'acme/items',
      '1.0.0',
      'personal',
      '1',
      'no',
      'api_key: missing',
      spec.hosts.join(' '),
      '1m ago',
      CONNECTOR_ID,
    ];
    expect(result.stdout).toBe(`${cells.join('\t')}\n`);
  });

  test('show prints a spec that can be reinstalled', async () => {
    const result = await run(['show', 'acme/items'], { answer: control() });
    expect(result.stdout).toContain(`# ${CONNECTOR_ID} (personal)`);
    expect(connectorSpec.parse(parse(result.stdout))).toEqual(connectorSpec.parse(spec));
  });

  test.each([['acme/items'], [CONNECTOR_ID], ['items']])('remove finds %s', async (name) => {
    const result = await run(['remove', name], { answer: control(() => ({ status: 204 })) });
    expect(writes(result.calls).map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
      `DELETE /v1/connectors/${CONNECTOR_ID}`,
    ]);
  });

  test('suggests the nearest name if a connector is not installed', async () => {
    const result = await run(['show', 'acme/itms'], { answer: control() });
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('did you mean "acme/items"?');
  });

  test('refuses a name that two owners have, unless --owner is given', async () => {
    const other = { ...summary, id: 'con_01m7yjbz4dz98vffmftfxp52e6', owner: 'enterprise' };
    const answer = control(() => ({ status: 204 }), [summary, other]);
    expect((await run(['remove', 'acme/items'], { answer })).stderr).toContain(other.id);
    const result = await run(['remove', 'acme/items', '--owner', 'personal'], { answer });
    expect(writes(result.calls)[0]?.url.pathname).toBe(`/v1/connectors/${CONNECTOR_ID}`);
  });

  test('catalog lists every connector, and prints one unchanged', async () => {
    const root = new URL('../..', import.meta.url).pathname;
    const names = (await run(['catalog'])).stdout.trimEnd().split('\n');
    expect(names.map((line) => line.split('\t')[0])).toEqual(catalogNames(root));
    const file = readFileSync(join(root, 'catalog', 'connectors', 'linear.yaml'), 'utf8');
    expect((await run(['catalog', 'linear'])).stdout).toBe(file);
  });
});

const reply = (status: number, body: string | Uint8Array): Answer =>
  control(() => ({
    status: 200,
    body: {
      status: 'proxied',
      audit_id: 'evt_01m7yjbz4dz98vffmftfxp52e5',
      connector_fqn: 'acme/items',
      operation: 'update-item',
      upstream_status: status,
      content_type: 'application/json',
      body_base64: Buffer.from(body).toString('base64'),
    },
  }));

describe('svc connector test', () => {
  const args = ['--arg', 'id=7', '--arg', 'title=x=y'];

  test('sends args with the types of the inputs and prints the body', async () => {
    const more = ['--arg', 'open=false', '--arg', 'tags=a', '--arg', 'tags=b', '--arg', 'meta={"n":1}'];
    const argv = ['test', 'items', 'update-item', ...args, ...more, '--host', 'eu.example.com'];
    const result = await run(argv, { answer: reply(200, '{"ok":true}') });
    expect(result).toMatchObject({ code: 0, stdout: '{"ok":true}' });
    expect(result.stderr).toContain('200  application/json  11 bytes');
    expect(writes(result.calls)).toMatchObject([{ url: { pathname: '/v1/connector-operations/run' } }]);
    expect(writes(result.calls)[0]?.body).toEqual({
      connector_fqn: 'acme/items',
      operation: 'update-item',
      args: { id: 7, title: 'x=y', open: false, tags: ['a', 'b'], meta: { n: 1 } },
      host: 'eu.example.com',
    });
  });

  test('takes args as JSON', async () => {
    home.write('args.json', '{"title": "x"}');
    const argv = ['test', 'items', 'update-item', '--args', '@args.json', '--arg', 'id=7'];
    const result = await run(argv, { answer: reply(200, '') });
    expect(writes(result.calls)[0]?.body).toMatchObject({ args: { id: 7, title: 'x' } });
  });

  test.each([
    [['--arg', 'id=x', '--arg', 'title=x'], '--arg id must be a number'],
    [['--arg', 'id=1.5', '--arg', 'title=x'], 'args.id must be a whole number'],
    [['--arg', 'id=7'], 'args.title is missing: a text'],
    [[...args, '--arg', 'titel=x'], '--arg titel is not an input of this operation: did you mean "title"?'],
    [[...args, '--arg', 'title=z'], '--arg title is given more than once: only a list takes several values'],
    [[...args, '--arg', 'open=yes'], '--arg open must be true or false'],
    [[...args, '--arg', 'meta=[]'], '--arg meta must be a JSON object'],
    [[...args, '--arg', 'tags=[1'], '--arg tags is not a JSON array'],
    [[...args, '--args', '{"id": 1}'], '--arg id is also in --args'],
    [[...args, '--args', '[]'], '--args is not a JSON object'],
    [[...args, '--arg', 'open'], '--arg has no "="'],
    [[...args, '--host', 'evil.example'], 'host is not allowed here: use one of api.example.com, eu.example.com'],
  ])('sends nothing for %j', async (flags, message) => {
    const result = await run(['test', 'items', 'update-item', ...flags], { answer: reply(200, '') });
    expect(result.code).toBe(2);
    expect(writes(result.calls)).toEqual([]);
    expect(result.stderr).toContain(message);
  });

  test('lists the operations if the name is unknown', async () => {
    const result = await run(['test', 'items', 'update-itm'], { answer: reply(200, '') });
    expect(result.stderr).toContain('did you mean "update-item"?');
  });

  test('fails if the upstream refuses, and prints its reply', async () => {
    const result = await run(['test', 'items', 'update-item', ...args], { answer: reply(404, '{"message":"gone"}') });
    expect(result).toMatchObject({ code: 1, stdout: '{"message":"gone"}' });
  });

  test('escapes control characters at a terminal and omits binary bodies', async () => {
    const argv = ['test', 'items', 'update-item', ...args];
    const evil = await run(argv, { terminal: true, answer: reply(200, 'a\u001b[2J\nb') });
    expect(evil.stdout).toBe('a\\x1b[2J\nb\n');
    const bytes = await run(argv, { terminal: true, answer: reply(200, new Uint8Array([0xff, 0xfe])) });
    expect(bytes.stdout).toContain('(binary');
  });

  const approval = { approval_id: 'apr_01m7yjbz4dz98vffmftfxp52e5' };
  test.each([
    ['approval_required', approval, 'svc approvals approve apr_01m7yjbz4dz98vffmftfxp52e5'],
    ['binding_required', { connector_id: CONNECTOR_ID }, 'svc connector credential set acme/items'],
    ['reauthorisation_required', { connector_id: CONNECTOR_ID }, 'svc connector authorize acme/items'],
  ])('says what to do about %s', async (code, details, fix) => {
    const answer = control(() => ({ status: 403, body: refusal(code, details) }));
    const result = await run(['test', 'items', 'update-item', ...args], { answer });
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(fix);
  });
});

describe('svc connector credential set', () => {
  const stored = control(() => ({ status: 200, body: { ...NO_CREDENTIAL, state: 'ready', updated_at: time } }));

  test('sends the value from stdin and prints only the reference', async () => {
    const result = await run(['credential', 'set', 'items', '--stdin'], { stdin: `${KEY}\n`, answer: stored });
    expect(result).toMatchObject({ code: 0, stdout: 'vault://connectors/acme/items\n', stderr: '' });
    expect(writes(result.calls)).toMatchObject([{ method: 'PUT', body: { kind: 'api_key', value: KEY } }]);
    expect(writes(result.calls)[0]?.url.pathname).toBe(`/v1/connectors/${CONNECTOR_ID}/credential`);
  });

  test.each([[['items', KEY]], [['items', '--value', KEY]], [['items', `--value=${KEY}`]]])(
    'refuses a value on the command line without repeating it: %j',
    async (argv) => {
      const result = await run(['credential', 'set', ...argv], { stdin: 'x', answer: stored });
      expect(result).toMatchObject({ code: 2, stdout: '', calls: [] });
      expect(result.stderr).not.toContain(KEY);
    },
  );

  test('points to authorize for an oauth2 connector', async () => {
    const oauth2 = { ...summary, credential: { ...NO_CREDENTIAL, kind: 'oauth2' } };
    const answer = control(undefined, [oauth2]);
    const result = await run(['credential', 'set', 'items', '--stdin'], { stdin: KEY, answer });
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('svc connector authorize acme/items');
    expect(writes(result.calls)).toEqual([]);
  });

  test('names a stored secret with --secret, and reads no value', async () => {
    const ready = { ...NO_CREDENTIAL, ref: 'vault://user/items', state: 'ready', updated_at: time };
    const none = { status: 200, body: { items: [], next_cursor: null } };
    const answer = control(({ method }) =>
      method === 'GET' ? none : method === 'PUT' ? { status: 200, body: ready } : { status: 500 },
    );
    const result = await run(['credential', 'set', 'items', '--secret', 'user/items'], { answer });
    expect(result).toMatchObject({ code: 0, stdout: 'vault://user/items\n' });
    expect(writes(result.calls)[0]?.body).toEqual({ kind: 'api_key', credential_ref: 'vault://user/items' });
    const both = await run(['credential', 'set', 'items', '--secret', 'user/items', '--stdin'], { answer, stdin: KEY });
    expect([both.code, writes(both.calls)]).toEqual([2, []]);
  });

  const replacing = (before: object, after: object): Answer => {
    const items = [{ ...summary, active: true, credential: before }];
    const page = { status: 200, body: { items: [], next_cursor: null } };
    return control(({ method }) => (method === 'PUT' ? { status: 200, body: after } : page), items);
  };

  test('says what a new credential takes the place of', async () => {
    const own = { ...NO_CREDENTIAL, state: 'ready', updated_at: time };
    const shared = { ...own, ref: 'vault://user/items' };
    const key = await run(['credential', 'set', 'items', '--stdin'], { stdin: KEY, answer: replacing(shared, own) });
    expect(key.stderr).toContain('vault://user/items no longer serves acme/items');
    const secret = ['credential', 'set', 'items', '--secret', 'user/items'];
    expect((await run(secret, { answer: replacing(own, shared) })).stderr).toContain(
      'stored for acme/items alone is deleted',
    );
    expect((await run(secret, { answer: replacing(shared, shared) })).stderr).not.toContain('deleted');
  });

  test('rm of an active connector says that its operations are refused from now on', async () => {
    const shared = { ...NO_CREDENTIAL, ref: 'vault://user/items', state: 'ready', updated_at: time };
    const items = [{ ...summary, active: true, credential: shared }];
    const result = await run(['credential', 'rm', 'items'], {
      terminal: true,
      answer: control(() => ({ status: 204 }), items),
    });
    expect(result.stdout).toContain('vault://user/items no longer serves acme/items');
    expect(result.stderr).toContain(
      'acme/items stays active: its operations are refused until it has a credential again',
    );
  });

  const OAUTH2 = {
    ...NO_CREDENTIAL,
    kind: 'oauth2',
    state: 'ready',
    updated_at: time,
    token_url: 'https://auth.example.test/token',
  };

  test.each([
    [{ status: 200, body: { outcome: 'revoked', message: null } }, 'The provider has revoked the tokens of acme/items'],
    [{ status: 200, body: { outcome: 'failed', message: 'it did not' } }, 'auth.example.test, because it did not: end'],
    [{ status: 200, body: { outcome: 'not_named', message: null } }, 'because svc does not know where to revoke them'],
    [{ status: 500, body: 'no JSON' }, 'the tokens of acme/items stay valid at auth.example.test'],
  ])('rm has the tokens revoked before it deletes them, and says what became of them: %j', async (revoked, text) => {
    for (const argv of [
      ['credential', 'rm', 'items'],
      ['remove', 'items'],
    ]) {
      const answer = control(
        ({ method }) => (method === 'DELETE' ? { status: 204 } : revoked),
        [{ ...summary, credential: OAUTH2 }],
      );
      const result = await run(argv, { answer });
      expect([result.code, result.stderr]).toEqual([0, expect.stringContaining(text)]);
      expect(writes(result.calls).map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
        `POST /v1/connectors/${CONNECTOR_ID}/credential/revoke`,
        expect.stringContaining(`DELETE /v1/connectors/${CONNECTOR_ID}`),
      ]);
    }
  });

  test('rm deletes it', async () => {
    const result = await run(['credential', 'rm', 'items'], { answer: control(() => ({ status: 204 })) });
    expect(writes(result.calls)[0]).toMatchObject({ method: 'DELETE' });
  });
});
