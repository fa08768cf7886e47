import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { runCli, TestHome, type RunResult } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const document = {
  openapi: '3.1.0',
  info: { title: 'Items', version: '2.1.0' },
  servers: [{ url: 'https://api.example.com/v2' }],
  paths: {
    '/items': { get: { operationId: 'items/list', summary: 'List items' } },
    '/items/{id}': {
      get: { operationId: 'items/get' },
      delete: { operationId: 'items/delete' },
    },
    '/files/{name}.{ext}': { get: { operationId: 'files/get' } },
    '/odd': { get: { operationId: 'odd', parameters: [{ name: 'a b', in: 'query' }] } },
  },
};

function fromOpenApi(flags: readonly string[], value: unknown = document): Promise<RunResult> {
  home.write('api.json', JSON.stringify(value));
  return runCli(home, ['connector', 'from-openapi', 'api.json', ...flags]);
}
const named = ['--fqn', 'acme/items'];

describe('svc connector from-openapi', () => {
  test('prints a valid spec of every operation, with a comment for each omitted one', async () => {
    const result = await fromOpenApi([...named, '--all']);
    expect(result.code).toBe(0);
    const spec = connectorSpec.parse(parse(result.stdout));
    expect(spec.operations.map(({ name, method, path }) => `${name} ${method} ${path}`)).toEqual([
      'items-list GET /v2/items',
      'items-get GET /v2/items/{id}',
      'items-delete DELETE /v2/items/{id}',
    ]);
    expect(spec).toMatchObject({ connector: { fqn: 'acme/items', version: '2.1.0' }, hosts: ['api.example.com'] });
    expect(result.stdout).toContain('# left out: files-get: its path has "{name}.{ext}"');
    expect(result.stdout).toMatch(/^# left out: odd: operations\[0\]\.inputs\[0\]\.name \(odd\) is "a b"/m);
    expect(result.stderr).toContain('3 operations, 2 left out');
  });

  test('includes selected operations, by name or by method and path', async () => {
    const result = await fromOpenApi([
      ...named,
      '--select',
      'items-get',
      '--select',
      'GET /items',
      '--approve',
      'items-get',
    ]);
    const { operations } = connectorSpec.parse(parse(result.stdout));
    expect(operations.map(({ name, approval }) => `${name} ${approval}`)).toEqual([
      'items-list none',
      'items-get required',
    ]);
  });

  test('accepts other hosts and another kind of credential', async () => {
    const result = await fromOpenApi([...named, '--all', '--host', 'eu.example.com', '--credential', 'oauth2']);
    expect(connectorSpec.parse(parse(result.stdout))).toMatchObject({
      hosts: ['eu.example.com'],
      credential: { kind: 'oauth2' },
    });
  });

  test('writes an installable file and never overwrites one', async () => {
    const flags = [...named, '--all', '-o', 'items.yaml'];
    expect((await fromOpenApi(flags)).stdout).toContain('svc connector install items.yaml');
    const text = readFileSync(join(home.path, 'items.yaml'), 'utf8');
    expect((await runCli(home, ['connector', 'install', 'items.yaml', '--dry-run'])).code).toBe(0);
    const again = await fromOpenApi(flags);
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toContain('EEXIST');
    expect(readFileSync(join(home.path, 'items.yaml'), 'utf8')).toBe(text);
  });

  test('lists the operations', async () => {
    const result = await fromOpenApi(['--list']);
    expect(result.stdout.split('\n')[0]).toBe('items-list\tGET\t/v2/items\tread\tList items');
    expect(result.stderr).toContain('left out: files-get');
  });

  test.each([
    [[...named], 2, '--select NAME for each, or --all'],
    [[...named, '--all', '--select', 'items-get'], 2, '--select NAME for each, or --all'],
    [['--all'], 2, '--fqn is missing'],
    [[...named, '--select', 'items-gt'], 2, '--select items-gt: did you mean "items-get"?'],
    [[...named, '--select', 'items-get', '--approve', 'items-list'], 2, '--approve items-list'],
    [[...named, '--select', 'files-get'], 1, 'files-get: its path has'],
    [[...named, '--all', '--host', '10.0.0.1'], 1, 'hosts[0] is an address'],
    [['--fqn', 'Items', '--all'], 1, 'connector.fqn must be publisher/name'],
  ])('refuses %j', async (flags, code, message) => {
    const result = await fromOpenApi(flags);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toContain(message);
  });

  test('refuses a document without an https server, and an invalid document', async () => {
    const bare = await fromOpenApi([...named, '--all'], { ...document, servers: [{ url: '/v2' }] });
    expect(bare.stderr).toContain('--host api.example.com');
    expect((await fromOpenApi(['--list'], [])).stderr).toContain('api.json is not an OpenAPI document');
  });

  test('a document cannot inject lines into the spec', async () => {
    const evil = { ...document, paths: { '/a/{x}.{y}': { get: { operationId: 'a\nhosts: [evil.example]' } } } };
    const paths = { ...evil.paths, '/items': document.paths['/items'] };
    const result = await fromOpenApi([...named, '--all'], { ...evil, paths });
    expect(connectorSpec.parse(parse(result.stdout)).hosts).toEqual(['api.example.com']);
  });
});
