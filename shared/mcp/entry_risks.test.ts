import { expect, test } from 'vitest';
import { entryRisks } from './entry_risks.ts';
import { entryOf, packageEntry, remoteEntry } from './testing/entries.ts';

const NOW = Date.parse('2026-01-10T00:00:00Z');
const texts = (entry: Parameters<typeof entryRisks>[0]) => entryRisks(entry, NOW).map(({ text }) => text);
const secret = (name: string, isRequired: boolean) => ({ name, isRequired, isSecret: true });
const DIGEST = `sha256:${'0a'.repeat(32)}`;

test('a package runs code as the person, a container does not, and a remote server is named', () => {
  expect(texts(packageEntry({}))).toEqual(['runs code as you']);
  expect(texts(packageEntry({ registryType: 'oci', identifier: `ghcr.io/acme/demo@${DIGEST}` }))).toEqual([
    'runs a container',
  ]);
  expect(texts(remoteEntry({}))).toEqual(['calls mcp.example.com']);
  expect(texts(remoteEntry({ url: 'https://{tenant}.example.com/mcp', variables: { tenant: {} } }))).toEqual([
    'calls an address that you enter',
  ]);
});

test('an image that is named by a tag can change', () => {
  expect(texts(packageEntry({ registryType: 'oci', identifier: 'ghcr.io/acme/demo:1.2.3' }))).toEqual([
    'runs a container',
    'unpinned image',
  ]);
  expect(texts(packageEntry({ registryType: 'oci', identifier: 'ghcr.io/acme/demo:latest', version: null }))).toEqual([
    'cannot be installed: no exact version',
  ]);
});

test('secrets are counted, required ones and others', () => {
  const environmentVariables = [secret('A', true), secret('B', true), secret('C', false), { name: 'D' }];
  expect(texts(packageEntry({ environmentVariables }))).toEqual(['runs code as you', '2 secrets', '1 optional secret']);
  const headers = [secret('Authorization', true)];
  expect(texts(remoteEntry({ headers }))).toEqual(['calls mcp.example.com', '1 secret']);
});

test.each([
  ['2026-01-03T00:00:00Z', false],
  ['2026-01-03T00:00:01Z', true],
  ['2026-01-10T00:00:00Z', true],
  ['2026-01-10T00:00:01Z', false],
  ['soon', false],
])('published at %s, new this week: %s', (publishedAt, isNew) => {
  const official = { 'io.modelcontextprotocol.registry/official': { publishedAt } };
  const entry = entryOf({ server: { name: 'io.example/demo', version: '1.0.0' }, _meta: official });
  expect(texts(entry).includes('new this week')).toBe(isNew);
});

test('what is deprecated or cannot be installed says so', () => {
  expect(texts({ ...packageEntry({}), status: 'deprecated' })).toEqual(['runs code as you', 'deprecated']);
  expect(texts(packageEntry({ registryType: 'mcpb' }))).toEqual(['cannot be installed']);
  expect(texts(packageEntry({ transport: { type: 'streamable-http' } }))).toEqual(['cannot be installed']);
});
