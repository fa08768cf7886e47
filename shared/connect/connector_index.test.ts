import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { InstalledConnector, Operation } from '../model/connector.ts';
import { compileConnectors, evadesConnector, matchOperation, type OperationMatch } from './connector_index.ts';
import { sampleConnector, sampleOperation } from './testing/sample_connector.ts';

const host = 'api.example.com';
const operation = (path: string, method: Operation['method'] = 'GET'): Operation =>
  sampleOperation({ name: `${method} ${path}`, path, method });
const match = (operations: readonly Operation[], path: string, method = 'GET'): string | null =>
  nameOf(matchOperation(compileConnectors([sampleConnector(operations)]), { method, host, path }));
const evades = (operations: readonly Operation[], path: string, method = 'GET'): boolean =>
  evadesConnector(compileConnectors([sampleConnector(operations)]), { method, host, path });

function nameOf(result: OperationMatch): string | null {
  return result.kind === 'operation' ? result.match.operation.name : result.kind === 'ambiguous' ? 'ambiguous' : null;
}

describe('the operation a request is', () => {
  test('is found by method, host and exact path', () => {
    const operations = [operation('/user'), operation('/user', 'PATCH'), operation('/users')];
    expect(match(operations, '/user')).toBe('GET /user');
    expect(match(operations, '/user', 'PATCH')).toBe('PATCH /user');
    expect([match(operations, '/user', 'DELETE'), match(operations, '/use'), match(operations, '/')]).toEqual([
      null,
      null,
      null,
    ]);
    const index = compileConnectors([sampleConnector(operations)]);
    expect(matchOperation(index, { method: 'GET', host: 'other.example.com', path: '/user' }).kind).toBe('none');
  });

  test('is found by its template if no segment is empty or a dot segment', () => {
    const operations = [operation('/items/{id}')];
    expect(match(operations, '/items/7')).toBe('GET /items/{id}');
    expect(match(operations, '/items/group%2Fproject')).toBe('GET /items/{id}');
    const others = ['/items/', '/items', '/items/7/8', '/items/.', '/items/..', '/items/%2e%2E', '/items/%2e'];
    expect(others.filter((path) => match(operations, path) !== null)).toEqual([]);
  });

  test('is the one with a literal segment if another has a template there', () => {
    const operations = [operation('/items/{id}'), operation('/items/latest'), operation('/items/{id}/tags')];
    expect(match(operations, '/items/latest')).toBe('GET /items/latest');
    expect(match(operations, '/items/latest/tags')).toBe('GET /items/{id}/tags');
  });

  test('is none if two templates match and neither is more literal', () => {
    const operations = [operation('/a/{x}/c'), operation('/a/b/{y}')];
    expect(match(operations, '/a/b/c')).toBe('ambiguous');
    expect(match(operations, '/a/b/d')).toBe('GET /a/b/{y}');
    expect(match([...operations, operation('/a/b/c')], '/a/b/c')).toBe('GET /a/b/c');
  });

  test('is none if two connectors declare it', () => {
    const two = [sampleConnector(), sampleConnector(undefined, { fqn: 'other/items', id: 'con_2' })];
    expect(matchOperation(compileConnectors(two), { method: 'GET', host, path: '/items/1' }).kind).toBe('ambiguous');
  });

  test("is the personal connector's if the enterprise has one of the same name", () => {
    const personal = sampleConnector();
    const enterprise = sampleConnector(undefined, { owner: 'enterprise', id: 'con_2' });
    for (const order of [
      [personal, enterprise],
      [enterprise, personal],
    ]) {
      const found = matchOperation(compileConnectors(order), { method: 'GET', host, path: '/items/1' });
      expect(found.kind === 'operation' && found.match.connector.owner).toBe('personal');
    }
  });

  test("is found on the operation's own hosts", () => {
    const index = compileConnectors([sampleConnector([sampleOperation({ hosts: ['upload.example.com'] })])]);
    expect(matchOperation(index, { method: 'GET', host, path: '/items/1' }).kind).toBe('none');
    expect(matchOperation(index, { method: 'GET', host: 'upload.example.com', path: '/items/1' }).kind).toBe(
      'operation',
    );
  });
});

describe('invariant 8: no way round a connector', () => {
  const operations = [operation('/repos/{owner}/{repo}'), operation('/admin/keys', 'POST'), operation('/user')];

  test.each([
    '//admin/keys',
    '/admin//keys',
    '/%61dmin/keys',
    '/x/../admin/keys',
    '/x/..%2fadmin/keys',
    '/x/%2e%2e/admin/keys',
    '/admin/keys;x',
    '/admin;v=1/keys',
    '/admin/./keys',
    '/admin%2Fkeys',
    '/admin%5ckeys',
    '/admin/keys/',
    String.raw`/admin\keys`,
  ])('%s is treated as the operation it could be', (path) => {
    expect(evades(operations, path, 'POST')).toBe(true);
  });

  test.each(['/admin/keys', '/other', '/repos/a%2Db/c', '/repos/a/b%20c', '/adminx/keys', '/other//thing', '/%6fther'])(
    '%s has one reading',
    (path) => {
      expect([evades(operations, path, 'POST'), evades(operations, path)]).toEqual([false, false]);
    },
  );

  test('a slash at the end of the operation or of the request is no way round either', () => {
    const wipe = [operation('/items/{id}', 'POST'), operation('/items/wipe/', 'POST')];
    for (const path of ['/items/wipe', '/items/%77ipe', '/items%2Fwipe', '/items/wipe//', '//items/wipe']) {
      expect([path, evades(wipe, path, 'POST')]).toEqual([path, true]);
    }
    expect(evades([operation('/all/', 'DELETE')], '/all', 'DELETE')).toBe(true);
    const plain = ['/items/7', '/items', '/items/wiped', '/'];
    expect(plain.filter((path) => evades(wipe, path, 'POST'))).toEqual([]);
  });

  describe('for operations that need an approval, the most lenient reading counts', () => {
    const guardedOperation = (path: string): Operation => ({ ...operation(path, 'POST'), approval: 'required' });
    const all = [
      guardedOperation('/v1/refunds'),
      operation('/v1/{thing}', 'POST'),
      guardedOperation('/repos/{o}/{r}'),
      guardedOperation('/x/a.json'),
    ];

    test.each([
      '/v1/Refunds',
      '/v1/refunds.json',
      '/v1/%2572efunds',
      '/REPOS/a/b',
      '/repos%252Fa/b',
      '/x/a',
      '/x/A.xml',
    ])('%s is one of them', (path) => expect(evades(all, path, 'POST')).toBe(true));

    test.each(['/v1/refunds%00', '/%2525252525', '/any%0Athing', '/a%252F..%252Fb'])('%s may be any of them', (path) =>
      expect(evades(all, path, 'POST')).toBe(true),
    );

    test('a host and method without one is skipped', () => {
      const open = all.map((each) => ({ ...each, approval: 'none' as const }));
      for (const path of ['/v1/Refunds', '/any%0Athing']) {
        expect([evades(open, path, 'POST'), evades(all, path)]).toEqual([false, false]);
      }
    });

    test('a literal path of an operation is that operation, whatever else it could be read as', () => {
      const both = [
        guardedOperation('/v1/refunds'),
        operation('/v1/Refunds', 'POST'),
        operation('/v1/refunds.csv', 'POST'),
      ];
      expect(['/v1/Refunds', '/v1/refunds.csv', '/v1/refunds'].map((path) => evades(both, path, 'POST'))).toEqual([
        false,
        false,
        false,
      ]);
      expect(evades(both, '/v1/refunds.xml', 'POST')).toBe(true);
      const preview = [guardedOperation('/v1/refunds/{id}'), operation('/v1/refunds/preview', 'POST')];
      expect(evades(preview, '/v1/refunds/Preview', 'POST')).toBe(false);
      expect(match(preview, '/v1/refunds/Preview', 'POST')).toBe('POST /v1/refunds/{id}');
    });

    test('unusual values of an operation are still its own', () => {
      for (const path of ['/repos/Octo/Hello.World', '/repos/a/b%3Fc', '/repos/%C3%BC/x', '/v1/Charges', '/v1/a%20b']) {
        expect([path, evades(all, path, 'POST')]).toEqual([path, false]);
      }
    });
  });

  test('a path that is another operation in canonical form is an evasion', () => {
    expect(evades([operation('/items/{id}'), operation('/items/all')], '/items/%61ll')).toBe(true);
  });
});

const literal = (each: Operation): boolean[] => each.path.split('/').map((name) => !name.startsWith('{'));

const beats = (one: Operation, other: Operation): boolean => {
  const [a, b] = [literal(one), literal(other)];
  return a.every((is, at) => is || b[at] !== true) && a.some((is, at) => is && b[at] !== true);
};

/** The rule as written, without any index. */
function slowMatch(connectors: readonly InstalledConnector[], method: string, path: string): string | null {
  const fits = (template: string): boolean => {
    const [names, segments] = [template.split('/'), path.split('/')];
    return (
      names.length === segments.length &&
      names.every((name, at) => (name.startsWith('{') ? segments[at] !== '' : name === segments[at]))
    );
  };
  const all = connectors
    .flatMap(({ spec }) => spec.operations)
    .filter((each) => each.method === method && fits(each.path));
  const best = all.filter((each) => !all.some((other) => beats(other, each)));
  if (best.length === 0) return null;
  return best.length === 1 ? (best[0]?.name ?? null) : 'ambiguous';
}

test('the index agrees with the rule as written', () => {
  const segment = fc.constantFrom('a', 'b', '{x}');
  const path = fc
    .array(segment, { minLength: 1, maxLength: 4 })
    .map((parts) => `/${parts.map((part, at) => (part === '{x}' ? `{x${at}}` : part)).join('/')}`);
  const paths = fc.uniqueArray(path, { minLength: 1, maxLength: 12 });
  const asked = fc
    .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 })
    .map((parts) => `/${parts.join('/')}`);
  fc.assert(
    fc.property(paths, paths, asked, (one, two, wanted) => {
      const connectors = [
        sampleConnector(one.map((each) => operation(each))),
        sampleConnector(
          two.map((each) => operation(each)),
          { fqn: 'b/b' },
        ),
      ];
      const found = matchOperation(compileConnectors(connectors), { method: 'GET', host, path: wanted });
      expect(nameOf(found)).toBe(slowMatch(connectors, 'GET', wanted));
    }),
    { numRuns: 500 },
  );
});
