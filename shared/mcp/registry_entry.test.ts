import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_PROBLEMS } from './registry/entry_reading.ts';
import { readRegistryEntry, type RegistryEntry } from './registry_entry.ts';

function entryOf(value: unknown): RegistryEntry {
  const result = readRegistryEntry(value);
  if (!result.ok) throw new Error(result.error);
  return result.value;
}

const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);

const server = {
  name: 'io.github.acme/weather',
  title: 'Weather',
  description: 'Forecasts',
  version: '1.2.3',
  repository: { url: 'https://github.com/acme/weather', source: 'github' },
  websiteUrl: 'https://acme.example',
  packages: [
    {
      registryType: 'npm',
      registryBaseUrl: 'https://npm.example',
      identifier: '@acme/weather',
      version: '1.2.3',
      runtimeHint: 'npx',
      transport: { type: 'stdio' },
      runtimeArguments: [{ type: 'named', name: '-y' }],
      packageArguments: [
        { type: 'positional', valueHint: 'city', isRequired: true },
        { type: 'named', name: '--unit', default: 'c', choices: ['c', 'f'], isRepeated: true },
      ],
      environmentVariables: [
        {
          name: 'AUTH',
          value: 'Bearer {token}',
          isSecret: true,
          variables: { token: { isRequired: true, isSecret: true, format: 'string', description: 'A token' } },
        },
      ],
    },
  ],
  remotes: [{ type: 'streamable-http', url: 'https://acme.example/mcp', headers: [{ name: 'X-Key', isSecret: true }] }],
};
const meta = {
  'io.modelcontextprotocol.registry/official': {
    status: 'deprecated',
    publishedAt: '2025-10-09T17:05:17Z',
    isLatest: true,
  },
};

const noValue = { value: null, default: null, placeholder: null, choices: [], format: null };

describe('a registry entry', () => {
  test('is read from the wrapped shape', () => {
    const entry = entryOf({ server, _meta: meta });
    expect(entry).toMatchObject({
      name: 'io.github.acme/weather',
      title: 'Weather',
      version: '1.2.3',
      status: 'deprecated',
      isLatest: true,
      publishedAt: '2025-10-09T17:05:17Z',
      repositoryUrl: 'https://github.com/acme/weather',
      problems: [],
    });
    expect(entry.packages[0]).toMatchObject({ registryType: 'npm', identifier: '@acme/weather', transport: 'stdio' });
    expect(entry.packages[0]?.packageArguments).toEqual([
      {
        ...noValue,
        type: 'positional',
        name: '',
        description: '',
        isRequired: true,
        isSecret: false,
        variables: [],
        valueHint: 'city',
        isRepeated: false,
      },
      {
        ...noValue,
        type: 'named',
        name: '--unit',
        description: '',
        isRequired: false,
        isSecret: false,
        variables: [],
        valueHint: null,
        isRepeated: true,
        default: 'c',
        choices: ['c', 'f'],
      },
    ]);
    expect(entry.packages[0]?.environmentVariables[0]).toMatchObject({
      name: 'AUTH',
      value: 'Bearer {token}',
      variables: [{ name: 'token', isRequired: true, isSecret: true, format: 'string', description: 'A token' }],
    });
    expect(entry.remotes).toMatchObject([
      { transport: 'streamable-http', url: 'https://acme.example/mcp', headers: [{ name: 'X-Key' }] },
    ]);
  });

  test('is read from a bare server.json the same way', () => {
    const { status, isLatest, publishedAt, ...wrapped } = entryOf({ server, _meta: meta });
    expect([status, isLatest, publishedAt]).toEqual(['deprecated', true, '2025-10-09T17:05:17Z']);
    expect(entryOf(server)).toEqual({ ...wrapped, status: 'active', isLatest: null, publishedAt: null });
    expect(entryOf({ ...server, _meta: meta })).toEqual(entryOf({ server, _meta: meta }));
  });

  test('is read from older flat shapes', () => {
    const entry = entryOf({
      id: 'c296f683',
      name: 'io.github.acme/weather',
      description: 'Forecasts',
      version_detail: { version: '0.0.1-seed', release_date: '2025-05-16T18:56:57Z', is_latest: true },
      packages: [
        {
          registry_name: 'docker',
          name: 'acme/weather',
          version: '',
          runtime_hint: 'docker',
          package_arguments: [{ type: 'positional', value: 'mcp', is_required: true, value_hint: 'mcp' }],
          environment_variables: [{ name: 'KEY', description: 'A key', is_secret: true }],
        },
      ],
      remotes: [{ transport_type: 'sse', url: 'https://acme.example/sse' }],
    });
    expect(entry).toMatchObject({ version: '0.0.1-seed', isLatest: true, publishedAt: '2025-05-16T18:56:57Z' });
    expect(entry.packages).toMatchObject([
      {
        registryType: 'oci',
        identifier: 'acme/weather',
        version: null,
        runtimeHint: 'docker',
        transport: 'stdio',
        packageArguments: [{ type: 'positional', value: 'mcp', isRequired: true, valueHint: 'mcp' }],
        environmentVariables: [{ name: 'KEY', isSecret: true }],
      },
    ]);
    expect(entry.remotes).toMatchObject([{ transport: 'sse', url: 'https://acme.example/sse' }]);
  });

  test('keeps what can be read, and lists what was omitted', () => {
    const entry = entryOf({
      ...server,
      packages: [
        null,
        { registryType: 'npm' },
        server.packages[0],
        { identifier: 'x', registryType: 7, transport: { type: 'carrier-pigeon' } },
      ],
      remotes: [{ url: 'https://acme.example' }, 'x', server.remotes[0]],
    });
    expect(entry.packages.map((one) => [one.registryType, one.transport])).toEqual([
      ['npm', 'stdio'],
      ['7', 'unknown'],
    ]);
    expect(entry.remotes).toHaveLength(1);
    expect(entry.problems).toHaveLength(4);
  });

  test('reports variables without a name, and duplicates', () => {
    const environmentVariables = [{ name: '' }, { name: 'A', default: '1' }, { name: 'A', default: '2' }, 7];
    const entry = entryOf({ ...server, packages: [{ registryType: 'npm', identifier: 'x', environmentVariables }] });
    expect(entry.packages[0]?.environmentVariables).toMatchObject([{ name: 'A', default: '1' }]);
    expect(entry.problems).toHaveLength(3);
  });

  test.each([
    ['no object', 7],
    ['null', null],
    ['an array', [server]],
    ['no name', { ...server, name: undefined }],
    ['an empty name', { ...server, name: '' }],
    ['a name that is no text', { ...server, name: {} }],
    ['a name of spaces', { ...server, name: ' ' }],
    ['a name with a hidden character', { ...server, name: 'acme/we\u200bather' }],
    ['a name that runs backwards', { ...server, name: 'acme/\u202ewx' }],
    ['a name with a line break', { ...server, name: 'acme/a\nb' }],
    ['a name too long', { ...server, name: 'a'.repeat(201) }],
  ])('%s is not an entry', (_what, value) => {
    expect(readRegistryEntry(value).ok).toBe(false);
  });

  test('a link that is not a web address is omitted', () => {
    const entry = entryOf({ ...server, websiteUrl: 'javascript:alert(1)', repository: { url: 'data:x' } });
    expect([entry.websiteUrl, entry.repositoryUrl]).toEqual([null, null]);
  });

  test('member names have no special meaning to JavaScript', () => {
    const hostile: unknown = JSON.parse(
      '{"name":"a/b","packages":[{"identifier":"x","environmentVariables":[{"name":"__proto__","variables":{"__proto__":{"isSecret":true}}}]}]}',
    );
    const [variable] = entryOf(hostile).packages[0]?.environmentVariables ?? [];
    expect(variable?.name).toBe('__proto__');
    expect(variable?.variables).toMatchObject([{ name: '__proto__', isSecret: true }]);
    expect(Object.hasOwn(Object.prototype, 'isSecret')).toBe(false);
  });
});

describe('an entry of any size', () => {
  test('gives a bounded result', () => {
    const choices = many(1_000, 'c');
    const pack = {
      identifier: 'x',
      environmentVariables: Array.from({ length: 5_000 }, (_unused, index) => ({
        name: `V${index}`,
        choices,
      })),
      packageArguments: many(5_000, { value: 'x'.repeat(100_000) }),
    };
    const entry = entryOf({
      name: 'a/b',
      description: 'd'.repeat(1_000_000),
      packages: many(1_000, pack),
      remotes: many(1_000, 7),
    });
    expect(entry.description).toHaveLength(4_000);
    const values = entry.packages.flatMap((one) =>
      one.environmentVariables.map((variable) => variable.choices.length + 1),
    );
    expect(values.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(5_000);
    expect(entry.packages).toHaveLength(50);
    expect(entry.packages[0]?.environmentVariables).toHaveLength(200);
    expect(entry.packages[0]?.packageArguments[0]?.value).toBeNull();
    expect(entry.problems).toHaveLength(MAX_PROBLEMS);
  });

  test('at any depth', () => {
    let deep: unknown = 'x';
    for (let level = 0; level < 100_000; level += 1) deep = { variables: { a: deep }, server: deep, value: deep };
    const entry = entryOf({
      name: 'a/b',
      packages: [{ identifier: 'x', environmentVariables: [{ name: 'A', variables: { a: deep } }], transport: deep }],
    });
    expect(entry.packages).toHaveLength(1);
  });

  test('any value is an entry, or gives the reason why not', () => {
    const shape = fc.anything({ maxDepth: 3, withNullPrototype: true });
    const record = fc.record(
      {
        name: fc.oneof(fc.string(), shape),
        server: shape,
        packages: fc.array(shape),
        remotes: shape,
        repository: shape,
        _meta: shape,
        version_detail: shape,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(shape, record), (value) => {
        const result = readRegistryEntry(value);
        expect(result.ok ? typeof result.value.name : typeof result.error).toBe('string');
      }),
      { numRuns: 300 },
    );
  });
});
