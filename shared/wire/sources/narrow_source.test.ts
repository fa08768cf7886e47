import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { narrowSource } from './narrow_source.ts';
import { type Narrowing, narrowing } from './narrowing.ts';
import { type SecretSource, secretSource } from './source_table.ts';

const source = (fields: object): SecretSource => secretSource.parse(fields);
const github = (more: object = {}) =>
  source({ kind: 'github_app', app_id: '1', installation_id: '2', repositories: ['website', 'docs'], ...more });
const client = (scopes: readonly string[]) =>
  source({ kind: 'client_credentials', token_url: 'https://idp.test/token', client_id: 'c', scopes });
const ROLE = { role_arn: 'arn:aws:iam::123456789012:role/deploy', region: 'eu-central-1' };
const role = (more: object = {}) =>
  source({ kind: 'aws_assume_role', access_key_id: 'AKIAIOSFODNN7EXAMPLE', ...ROLE, ...more });
/** No permission of its own is meant by it. */
const NAME_OF_EVERY_OBJECT = narrowing.parse({ permissions: { constructor: 'read' } });
const POLICY = '{"Version":"2012-10-17","Statement":[]}';

test.each<[string, SecretSource, Narrowing, object]>([
  ['some scopes', client(['a', 'b']), { scopes: ['b'] }, { scopes: ['b'] }],
  ['one repository', github(), { repositories: ['Docs'] }, { repositories: ['Docs'] }],
  ['repositories of the whole installation', github({ repositories: undefined }), { repositories: ['x'] }, {}],
  [
    'a lower level of a permission',
    github({ permissions: { contents: 'write', issues: 'read' } }),
    { permissions: { contents: 'read' } },
    { permissions: { contents: 'read' }, repositories: ['website', 'docs'] },
  ],
  ['permissions of the whole installation', github(), { permissions: { issues: 'write' } }, {}],
  ['a session policy', role(), { policy: POLICY }, { policy: POLICY }],
  ['a shorter life', role(), { duration_seconds: 900 }, { duration_seconds: 900 }],
])('a source is narrowed to %s', (_, from, wanted, fields) => {
  const narrowed = narrowSource(from, wanted);
  expect(narrowed).toMatchObject({ ok: true, value: { ...from, ...wanted, ...fields } });
});

test.each<[string, SecretSource, Narrowing, RegExp]>([
  ['another scope', client(['a']), { scopes: ['a', 'b'] }, /"b" is not one of a/],
  ['a scope of a source that names none', client([]), { scopes: ['a'] }, /names none/],
  ['another repository', github(), { repositories: ['website', 'secrets'] }, /"secrets"/],
  ['another permission', github({ permissions: { issues: 'read' } }), { permissions: { contents: 'read' } }, /more/],
  ['a higher level', github({ permissions: { issues: 'read' } }), { permissions: { issues: 'write' } }, /more/],
  ['a name of every object', github({ permissions: {} }), NAME_OF_EVERY_OBJECT, /more/],
  ['a second session policy', role({ policy: POLICY }), { policy: POLICY }, /adds up/],
  [
    'a policy beside managed ones',
    role({ policy_arns: ['arn:aws:iam::aws:policy/ReadOnlyAccess'] }),
    { policy: POLICY },
    /adds up/,
  ],
  ['a longer life', role({ duration_seconds: 900 }), { duration_seconds: 3600 }, /more than the 900/],
  ['a policy that is none', role(), { policy: '[]' }, /policy: is not a JSON object/],
  ['a field of another kind', role(), { scopes: ['a'] }, /narrowed by policy and duration_seconds/],
  ['a field of another kind beside its own', github(), { repositories: ['docs'], scopes: ['a'] }, /scopes: a secret/],
  ['a borrowed secret', source({ kind: 'borrowed' }), { scopes: ['a'] }, /cannot be narrowed/],
  [
    'a token that Google’s account signs itself',
    source({ kind: 'google_service_account', client_email: 'a@b', audience: 'https://pubsub.googleapis.com/' }),
    { scopes: ['a'] },
    /names none/,
  ],
])('%s is refused', (_, from, wanted, message) => {
  const narrowed = narrowSource(from, wanted);
  expect(narrowed.ok ? '' : narrowed.error).toMatch(message);
});

describe('whatever is asked for', () => {
  const names: fc.Arbitrary<string> = fc.constantFrom('a', 'b', 'c', 'd');
  const some = fc.uniqueArray(names, { minLength: 1 });

  it('scopes are never more than those of the source', () => {
    fc.assert(
      fc.property(fc.uniqueArray(names), some, (own, scopes) => {
        const narrowed = narrowSource(client(own), { scopes });
        if (!narrowed.ok) return scopes.some((scope) => !own.includes(scope)) || own.length === 0;
        return 'scopes' in narrowed.value && narrowed.value.scopes.every((scope) => own.includes(scope));
      }),
    );
  });

  it('a token of GitHub is never for more than that of the source', () => {
    const levels = ['read', 'write', 'admin'] as const;
    const permissions = fc.dictionary(names, fc.constantFrom(...levels), { minKeys: 1 });
    fc.assert(
      fc.property(fc.option(some), fc.option(permissions), some, permissions, (repos, own, wanted, asked) => {
        const from = github({ repositories: repos ?? undefined, permissions: own ?? undefined });
        const narrowed = narrowSource(from, { repositories: wanted, permissions: asked });
        if (!narrowed.ok || narrowed.value.kind !== 'github_app') return true;
        const { repositories = [], permissions: got = {} } = narrowed.value;
        const allowed = repos === null ? null : new Set<string>(repos);
        const levelOf =
          own === null ? null : new Map(Object.entries(own).map(([name, level]) => [name, levels.indexOf(level)]));
        const isLess = ([name, level]: [string, (typeof levels)[number]]): boolean =>
          levelOf === null || levels.indexOf(level) <= (levelOf.get(name) ?? -1);
        const isNamed = (name: string): boolean => allowed === null || allowed.has(name);
        return repositories.every(isNamed) && Object.entries(got).every(isLess);
      }),
    );
  });

  it('nothing else of the source changes', () => {
    const from = github({ api_url: 'https://github.example.test/api/v3' });
    const narrowed = narrowSource(from, { repositories: ['docs'] });
    expect(narrowed).toEqual({ ok: true, value: { ...from, repositories: ['docs'] } });
  });
});
