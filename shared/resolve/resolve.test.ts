import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bearerBinding } from '../model/testing/sample_binding.ts';
import { sampleConnector, sampleOperation } from '../connect/testing/sample_connector.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { matchesHostPattern, parseHostPattern } from '../net/host_pattern.ts';
import { canonicalPath } from '../net/http/target.ts';
import { compilePolicy, resolve, type Policy } from './resolve.ts';

function winners(bindings: readonly HostBinding[], host: string): string[] {
  return compilePolicy(bindings)
    .bindingsFor(host)
    .map((found) => found.id);
}

describe('resolution', () => {
  const bindings = ['api.example.com', '*.example.com', '*.api.example.com', '*.a.api.example.com'].map((host) =>
    bearerBinding(host),
  );

  test.each([
    ['api.example.com', 'bnd_api.example.com'],
    ['www.example.com', 'bnd_*.example.com'],
    ['x.api.example.com', 'bnd_*.api.example.com'],
    ['x.b.api.example.com', 'bnd_*.api.example.com'],
    ['x.a.api.example.com', 'bnd_*.a.api.example.com'],
    ['a.api.example.com', 'bnd_*.api.example.com'],
  ])('an exact host wins over a wildcard, then the longest suffix wins: %s', (host, winner) => {
    expect(winners(bindings, host)).toEqual([winner]);
  });

  test.each(['example.com', 'evilexample.com', 'api.example.com.evil.test', 'com', '', '.', '.example.com'])(
    'matches no other host: %j',
    (host) => {
      expect(winners(bindings.slice(1, 2), host)).toEqual([]);
    },
  );

  test('no binding means passthrough', () => {
    const request = { method: 'GET', host: 'other.test', path: '/' };
    expect(resolve(compilePolicy(bindings), request)).toEqual({ kind: 'passthrough' });
  });

  test('a match returns every binding of the pattern, in order', () => {
    const first = bearerBinding('api.example.com', { id: 'bnd_1' });
    const second = bearerBinding('api.example.com', { id: 'bnd_2' });
    const request = { method: 'GET', host: 'api.example.com', path: '/' };
    expect(resolve(compilePolicy([first, second]), request)).toEqual({
      kind: 'binding',
      bindings: [first, second],
      besideApprovals: false,
    });
  });

  test('personal bindings replace the enterprise ones of the same pattern, in any order', () => {
    const enterprise = [1, 2].map((n) => bearerBinding('*.example.com', { id: `bnd_e${n}`, owner: 'enterprise' }));
    const personal = bearerBinding('*.example.com', { id: 'bnd_p' });
    for (const list of [
      [...enterprise, personal],
      [personal, ...enterprise],
    ]) {
      expect(winners(list, 'api.example.com')).toEqual(['bnd_p']);
    }
    expect(winners(enterprise, 'api.example.com')).toEqual(['bnd_e1', 'bnd_e2']);
  });

  test('a personal wildcard does not replace an exact enterprise binding', () => {
    const exact = bearerBinding('api.example.com', { id: 'bnd_e', owner: 'enterprise' });
    expect(winners([exact, bearerBinding('*.example.com')], 'api.example.com')).toEqual(['bnd_e']);
  });

  test('agrees with comparing every pattern (property)', () => {
    const label = fc.constantFrom('a', 'b', 'c');
    const host = fc.array(label, { minLength: 2, maxLength: 5 }).map((labels) => labels.join('.'));
    const text = fc.tuple(fc.boolean(), host).map(([isWildcard, name]) => (isWildcard ? `*.${name}` : name));
    fc.assert(
      fc.property(fc.uniqueArray(text, { maxLength: 20 }), host, (texts, wanted) => {
        const matching = texts.filter((each) => {
          const pattern = parseHostPattern(each);
          return pattern.ok && matchesHostPattern(pattern.value, wanted);
        });
        const best = matching.toSorted((x, y) => rank(y) - rank(x))[0];
        expect(
          winners(
            texts.map((each) => bearerBinding(each)),
            wanted,
          ),
        ).toEqual(best === undefined ? [] : [`bnd_${best}`]);
      }),
    );
  });
});

/** Exact above every wildcard, longer above shorter. */
function rank(pattern: string): number {
  return pattern.startsWith('*') ? pattern.length : 1_000;
}

describe('connectors come first', () => {
  const host = 'api.example.com';
  const get = sampleOperation();
  const user = sampleOperation({ name: 'get-user', path: '/user', inputs: [] });
  const remove = sampleOperation({ name: 'delete-item', method: 'DELETE', effect: 'delete', approval: 'required' });
  const policy = compilePolicy([bearerBinding(host)], [sampleConnector([get, user, remove])]);
  const kindOf = (method: string, path: string, fields: readonly { name: string; value: string }[] = []): string =>
    resolve(policy, { method, host, path, fields }).kind;

  test('an operation wins over a binding of its host', () => {
    const found = resolve(policy, { method: 'GET', host, path: '/items/7' });
    expect(found).toMatchObject({ kind: 'connector', match: { operation: { name: 'get-item' } } });
  });

  test.each([
    ['GET', '/other'],
    ['GET', '/items'],
    ['POST', '/items/7'],
    ['HEAD', '/items/7'],
  ])('%s %s is not an operation, and goes to the binding', (method, path) => {
    expect(kindOf(method, path)).toBe('binding');
  });

  test('a request that several operations match is none of them: it goes to the binding, or passes through', () => {
    const twice = [sampleConnector(), sampleConnector(undefined, { id: 'con_2', fqn: 'other/items' })];
    const request = { method: 'GET', host, path: '/items/7' };
    expect(resolve(compilePolicy([bearerBinding(host)], twice), request).kind).toBe('binding');
    expect(resolve(compilePolicy([], twice), request).kind).toBe('passthrough');
  });

  test("a connector is found by name; a personal one wins over the enterprise's", () => {
    const enterprise = sampleConnector(undefined, { id: 'con_2', owner: 'enterprise' });
    for (const both of [
      [sampleConnector(), enterprise],
      [enterprise, sampleConnector()],
    ]) {
      expect(compilePolicy([], both).connectorNamed('acme/items')?.id).toBe('con_1');
      expect(compilePolicy([], both).installed.map(({ id }) => id)).toEqual(['con_1']);
    }
    expect(policy.connectorNamed('acme/other')).toBeUndefined();
  });

  test('an inactive connector changes nothing: its requests go to the binding, and it replaces no active one', () => {
    const guarded = sampleOperation({ name: 'drop', method: 'DELETE', approval: 'required', effect: 'delete' });
    const inactive = sampleConnector([sampleOperation(), guarded], { inactive: true });
    const bound = bearerBinding('api.example.com');
    const alone = compilePolicy([bound], [inactive]);
    const asked = { method: 'DELETE', host: 'api.example.com', path: '/items/7' };
    expect(resolve(alone, asked)).toEqual({ kind: 'binding', bindings: [bound], besideApprovals: false });
    expect(resolve(alone, { ...asked, path: '//items/%37' }).kind).toBe('binding');
    expect([alone.connectors.hosts.has('api.example.com'), alone.installed]).toEqual([false, []]);
    expect(alone.connectorNamed('acme/items')).toBe(inactive);
    const enterprise = sampleConnector([guarded], { id: 'con_2', owner: 'enterprise' });
    const both = compilePolicy([bound], [inactive, enterprise]);
    expect(resolve(both, asked)).toMatchObject({ kind: 'connector', match: { connector: { id: 'con_2' } } });
    expect(both.connectorNamed('acme/items')?.id).toBe('con_2');
  });

  test('a host without connectors is never checked for spellings', () => {
    expect(resolve(policy, { method: 'GET', host: 'other.test', path: '//items/%69' }).kind).toBe('passthrough');
  });

  test.each([
    '//items/7',
    '/%69tems/7',
    '/x/..%2fitems/7',
    '/user;x',
    '/user/',
    '/items;x/7',
    '/items/7/',
    '/./items/7',
    '/items\\7',
  ])('invariant 8, no way round a connector: GET %s is refused, with a binding and without', (path) => {
    const request = { method: 'GET', host, path };
    expect(resolve(policy, request).kind).toBe('ambiguous_target');
    expect(resolve(compilePolicy([], [sampleConnector([get, user])]), request).kind).toBe('ambiguous_target');
  });

  test('invariant 8, no way round a connector: nor by the spelling of the method, nor by a header that overrides it', () => {
    expect(kindOf('delete', '/items/7')).toBe('ambiguous_target');
    for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
      expect(kindOf('POST', '/items/7', [{ name, value: ' delete ' }])).toBe('ambiguous_target');
      expect(kindOf('POST', '/items/7', [{ name, value: 'PATCH' }])).toBe('binding');
      expect(kindOf('POST', '/other', [{ name, value: 'DELETE' }])).toBe('binding');
    }
  });

  test('invariant 8, no way round a connector: HEAD counts as GET if that is more than reading', () => {
    const guarded = compilePolicy(
      [bearerBinding(host)],
      [sampleConnector([sampleOperation({ approval: 'required' })])],
    );
    expect(resolve(guarded, { method: 'HEAD', host, path: '/items/7' }).kind).toBe('ambiguous_target');
  });

  test('invariant 8, no way round a connector: nor by such a header in another spelling, nor by the query of a POST', () => {
    expect(kindOf('POST', '/items/7', [{ name: 'x_http_method_override', value: 'DELETE' }])).toBe('ambiguous_target');
    const request = { method: 'POST', host, path: '/items/7/' };
    expect(resolve(policy, { ...request, query: 'a=1&_method=delete' }).kind).toBe('ambiguous_target');
    expect(resolve(policy, { ...request, query: '_method=PATCH' }).kind).toBe('binding');
    expect(resolve(policy, { ...request, path: '/other', query: '_method=DELETE' }).kind).toBe('binding');
    expect(resolve(policy, { ...request, method: 'PUT', query: '_method=DELETE' }).kind).toBe('binding');
  });

  describe('invariant 8, no way round a connector: nor by another spelling of method and path at once', () => {
    const repo = sampleOperation({ method: 'DELETE', path: '/repos/{o}/{r}', effect: 'delete', approval: 'required' });
    const wipe = sampleOperation({ name: 'wipe', path: '/wipe', approval: 'required' });
    const guarded = compilePolicy([bearerBinding(host)], [sampleConnector([repo, wipe, user])]);

    test.each(['//repos/o/r', '/repos/o/r/', '/%72epos/o/r', '/x/../repos/o/r', '/repos%2Fo/r', '/repos/o/r'])(
      'DELETE of %s in lower case or in a header',
      (path) => {
        const overridden = {
          method: 'POST',
          host,
          path,
          fields: [{ name: 'x-http-method-override', value: 'DELETE' }],
        };
        expect(resolve(guarded, { method: 'delete', host, path }).kind).toBe('ambiguous_target');
        expect(resolve(guarded, overridden).kind).toBe('ambiguous_target');
        expect(resolve(guarded, { method: 'POST', host, path }).kind).toBe('binding');
      },
    );

    test.each(['/wipe/', '/%77ipe', '//wipe', '/wipe'])('HEAD of %s, which does what GET does', (path) => {
      const fields = [{ name: 'x-http-method-override', value: 'HEAD' }];
      expect(resolve(guarded, { method: 'HEAD', host, path }).kind).toBe('ambiguous_target');
      expect(resolve(guarded, { method: 'head', host, path }).kind).toBe('ambiguous_target');
      expect(resolve(guarded, { method: 'POST', host, path, fields }).kind).toBe('ambiguous_target');
    });

    test('HEAD of a read operation goes to the binding, in any spelling', () => {
      expect(resolve(guarded, { method: 'HEAD', host, path: '/%75ser/' }).kind).toBe('binding');
    });

    test('a request that several operations match may still be another operation with another method', () => {
      const posts = ['con_2', 'con_3'].map((id) =>
        sampleConnector([sampleOperation({ method: 'POST', path: '/repos/{o}/{r}' })], { id, fqn: `other/${id}` }),
      );
      const shared = compilePolicy([bearerBinding(host)], [sampleConnector([repo]), ...posts]);
      const request = { method: 'POST', host, path: '/repos/o/r' };
      const fields = [{ name: 'x-http-method', value: 'DELETE' }];
      expect(resolve(shared, request).kind).toBe('binding');
      expect(resolve(shared, { ...request, fields }).kind).toBe('ambiguous_target');
    });
  });

  describe('invariant 8, no way round a connector: an operation that needs an approval', () => {
    const refund = sampleOperation({ method: 'POST', path: '/v1/refunds', effect: 'spend', approval: 'required' });
    const batch = sampleOperation({
      name: 'batch',
      method: 'POST',
      path: '/v1/things:batchDelete',
      approval: 'required',
    });
    const thing = sampleOperation({ name: 'thing', method: 'POST', path: '/v1/{thing}', effect: 'write' });
    const plain = sampleOperation({ name: 'plain', method: 'PUT', path: '/v1/notes', effect: 'write' });
    const both = compilePolicy([bearerBinding(host)], [sampleConnector([refund, batch, plain])]);
    const within = compilePolicy([bearerBinding(host)], [sampleConnector([refund, batch, thing])]);
    const kind = (policyOf: Policy, method: string, path: string, name = ''): string =>
      resolve(policyOf, { method, host, path, fields: name === '' ? [] : [{ name, value: '/v1/refunds' }] }).kind;

    test.each([
      '/v1/Refunds',
      '/V1/refunds',
      '/v1/refunds.json',
      '/v1/refunds%20',
      '/v1/%72%45funds',
      '/v1/things%3AbatchDelete',
    ])('is not reached as %s, even beside a template that needs none', (path) => {
      expect(kind(both, 'POST', path)).toBe('ambiguous_target');
      expect(kind(both, 'post', path)).toBe('ambiguous_target');
      expect(kind(within, 'POST', path)).toBe('ambiguous_target');
    });

    test.each([
      'x-original-url',
      'x-rewrite-url',
      'x-forwarded-uri',
      'x-forwarded-prefix',
      'x_original_url',
      'script_name',
      'path-info',
    ])('is not reached by the header %s, on any path and with any method', (name) => {
      expect(kind(both, 'POST', '/v1/other', name)).toBe('ambiguous_target');
      expect(kind(both, 'PUT', '/v1/notes', name)).toBe('ambiguous_target');
      expect(kind(both, 'GET', '/', name)).toBe('ambiguous_target');
    });

    test('is not reached by a method that servers do not know', () => {
      for (const method of ['FOO', 'POST-', 'TRACE']) {
        expect(kind(both, method, '/v1/refunds')).toBe('ambiguous_target');
        expect(kind(both, method, '/v1/Refunds')).toBe('ambiguous_target');
        expect(kind(both, method, '/v1/notes')).toBe('binding');
      }
      expect(['PUT', 'GET', 'DELETE', 'OPTIONS'].map((method) => kind(both, method, '/v1/refunds'))).toEqual(
        Array.from({ length: 4 }, () => 'binding'),
      );
    });

    test('does not block any other request', () => {
      expect(['/v1/refunds', '/v1/things:batchDelete'].map((path) => kind(both, 'POST', path))).toEqual([
        'connector',
        'connector',
      ]);
      for (const path of [
        '/v1/refund',
        '/v1/refunds/7',
        '/v2/refunds',
        '/v1/things:batchGet',
        '/v1/things',
        '/v1/refunds-old',
        '/v1.1/refunds',
      ]) {
        expect([path, kind(both, 'POST', path)]).toEqual([path, 'binding']);
      }
      expect([kind(both, 'PUT', '/v1/Notes'), kind(both, 'PUT', '/v1/notes.json')]).toEqual(['binding', 'binding']);
      expect([kind(within, 'POST', '/v1/charges'), kind(within, 'POST', '/v1/Charges.json')]).toEqual([
        'connector',
        'connector',
      ]);
    });

    test('makes a binding without an effect read-only on its host', () => {
      const elsewhere = sampleConnector([{ ...refund, hosts: ['pay.example.com'] }, plain]);
      const split = compilePolicy([bearerBinding('*.example.com')], [elsewhere]);
      const resolveOther = (name: string): unknown => resolve(split, { method: 'GET', host: name, path: '/other' });
      expect(resolveOther('pay.example.com')).toMatchObject({ kind: 'binding', besideApprovals: true });
      expect(resolveOther(host)).toMatchObject({ kind: 'binding', besideApprovals: false });
      const personal = sampleConnector([{ ...refund, approval: 'none' }], { id: 'con_2' });
      const enterprise = sampleConnector([refund], { owner: 'enterprise' });
      const replaced = compilePolicy([bearerBinding(host)], [enterprise, personal]);
      expect(resolve(replaced, { method: 'GET', host, path: '/' })).toMatchObject({ besideApprovals: false });
    });
  });

  test('no spelling that a server may read as an operation ever reaches a binding (property)', () => {
    const piece = fc.constantFrom('items', '7', '', '.', '..', ';x', '%2f', '%2F', '%5c', '\\', '%69tems', '%2e', 'a');
    const path = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => `/${pieces.join('/')}`);
    fc.assert(
      fc.property(path, (spelled) => {
        const kind = kindOf('DELETE', spelled);
        const read = canonicalPath(spelled).replace(/(?<=.)\/$/, '');
        const isOperation = /^\/items\/[^/]+$/.test(read);
        expect(!isOperation || kind !== 'binding').toBe(true);
        expect(kind === 'connector').toBe(
          /^\/items\/(?!(?:\.|%2e){1,2}$)[^/]+$/i.test(spelled) && kind !== 'ambiguous_target',
        );
      }),
    );
  });
});
