/** One entry as a registry publishes it: the server, and the registry's own metadata. */
export interface PublishedEntry {
  readonly server: Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string };
  readonly status: 'active' | 'deprecated' | 'deleted';
  readonly updatedAt: string;
}

const WORDS =
  'github weather database search files email calendar cloud deploy monitor payments invoice crypto market data news image video audio speech translate postgres mysql sqlite redis kafka docker kubernetes terraform slack discord notion jira linear figma browser scrape crawl memory vector graph agent workflow automation'.split(
    ' ',
  );
const FIRST_UPDATE = Date.parse('2026-01-01T00:00:00Z');

/** Whole numbers below a bound, the same ones for the same seed (a linear congruence: quality does not matter here). */
function numbers(seed: number): (bound: number) => number {
  let state = (seed * 2_654_435_761 + 1) % 2_147_483_648;
  return (bound) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * bound);
  };
}

/** The entry of this number: two thirds are remote-only, as in the public registry. The number is in its name, so that names sort. */
export function generatedEntry(index: number, seed: number): PublishedEntry {
  const next = numbers(seed * 100_003 + index);
  const word = () => WORDS[next(WORDS.length)] ?? 'mcp';
  const tail = `${word()}-${word()}-mcp`;
  const name = `io.example.n${String(index).padStart(6, '0')}/${tail}`;
  const description = Array.from({ length: 8 + next(8) }, word).join(' ');
  const version = `1.${next(9)}.${next(20)}`;
  const server = { name, description, version, ...(next(3) === 0 ? packagesOf(tail, version) : remotesOf(tail)) };
  return { server, status: 'active', updatedAt: new Date(FIRST_UPDATE + index * 1000).toISOString() };
}

function packagesOf(tail: string, version: string) {
  const environmentVariables = [
    { name: 'API_KEY', description: 'Key of the service', isRequired: true, isSecret: true },
  ];
  const transport = { type: 'stdio' };
  return {
    packages: [{ registryType: 'npm', identifier: `@example/${tail}`, version, transport, environmentVariables }],
  };
}

function remotesOf(tail: string) {
  const headers = [{ name: 'Authorization', description: 'Bearer token', isRequired: true, isSecret: true }];
  return { remotes: [{ type: 'streamable-http', url: `https://${tail}.example.com/mcp`, headers }] };
}

/** The same entry in the form of the registry of early 2025. */
export function flatEntry({ server, updatedAt }: PublishedEntry): Record<string, unknown> {
  const { name, description, version } = server;
  const flat = { registry_name: 'npm', name: `@example/${name.split('/')[1]}`, version };
  const environment_variables = [{ name: 'API_KEY', description: 'Key of the service' }];
  return {
    id: `00000000-0000-4000-8000-${String(updatedAt.length).padStart(12, '0')}`,
    name,
    description,
    version_detail: { version, release_date: updatedAt, is_latest: true },
    packages: [{ ...flat, environment_variables }],
  };
}

/** Invalid entries, which no registry should list. */
export const BAD_ENTRIES: readonly unknown[] = [
  null,
  'a text',
  [],
  {},
  { server: { description: 'without a name', version: '1.0.0' } },
  { server: { name: '', version: '1.0.0' } },
  { server: { name: `io.example/${'x'.repeat(4000)}`, version: '1.0.0' } },
  { server: { name: 'io.example/line\nbreak', version: '1.0.0' } },
  { server: { name: 'io.example/turned\u202egnp.exe', version: '1.0.0' } },
  { server: { name: 'io.example/half\ud800', version: '1.0.0' } },
  { server: { name: 'io.example/huge', version: '1.0.0', description: 'x'.repeat(300_000) } },
  { server: { name: 'io.example/deep', version: '1.0.0', packages: nestObject(2_000) } },
];

function nestObject(depth: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}
