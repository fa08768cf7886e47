import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { refusalOf, commandDangers } from './command_dangers.ts';
import { completeInstallation } from './complete_installation.ts';
import type { InputValues } from './install/input_values.ts';
import type { InstallationPlan } from './install/plan.ts';
import { previewUrl, previewWords } from './install/preview.ts';
import { installationOptions, planInstallation } from './installation.ts';
import { isNpmName, isNpmVersion, isNugetName, isNugetVersion, isPypiName, isPypiVersion } from './package_specs.ts';
import { readOciReference } from './oci_reference.ts';
import { referenceProblem } from './references.ts';
import { mcpServerInput } from '../wire/mcp/mcp_servers.ts';
import { readRegistryEntry } from './registry_entry.ts';
import { localServer, SERVER_ID } from './testing/servers.ts';

/** Words with a meaning to a shell, a runner, docker, a URL or this service. */
const hostile = fc.constantFrom(
  'bash',
  '-c',
  '--',
  '-',
  '-e',
  '--call',
  '--from',
  '--package=evil',
  '-v',
  '/:/host',
  '--privileged',
  '--network',
  'host',
  '-p',
  '$(reboot)',
  '`reboot`',
  '; reboot',
  '| sh',
  '&& x',
  '\n',
  '\0',
  '\u202e',
  '{x}',
  '{token}',
  '${HOME}',
  '{}',
  '{',
  'vault://user/demo',
  `vault://mcp-servers/${SERVER_ID}/A`,
  '@evil',
  'a@b',
  'demo',
  '@acme/demo',
  'demo@latest',
  'demo@1.0.0',
  '1.0.0',
  'latest',
  '^1',
  '../x',
  'http://evil.example',
  'https://a.example/{x}',
  'https://{x}.example.com?q={token}',
  '__proto__',
  'constructor',
  'true',
  'false',
  'PATH',
  'LD_PRELOAD',
  'API_KEY',
  'Authorization',
  'Host',
  'stdio',
  'run',
  'acme/demo:1.0',
  'acme/demo',
  '',
);
const text = fc.oneof({ weight: 4, arbitrary: hostile }, { weight: 1, arbitrary: fc.string() });
const flag = fc.oneof(fc.boolean(), fc.constantFrom('true', 1, null));
const variable = fc.record(
  {
    description: text,
    isRequired: flag,
    isSecret: flag,
    format: fc.oneof(text, fc.constantFrom('boolean', 'number', 'filepath')),
    value: text,
    default: text,
    choices: fc.array(text, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
const input = fc.tuple(
  variable,
  fc.record({ name: text, variables: fc.dictionary(text, variable, { maxKeys: 2 }) }, { requiredKeys: [] }),
);
const merged = input.map(([one, two]) => ({ ...one, ...two }));
const argument = fc
  .tuple(
    merged,
    fc.record(
      { type: fc.constantFrom('named', 'positional', ''), isRepeated: flag, valueHint: text },
      { requiredKeys: [] },
    ),
  )
  .map(([one, two]) => ({ ...one, ...two }));
const list = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 4 });
const item = fc.record(
  {
    registryType: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('npm', 'pypi', 'oci', 'nuget', 'mcpb') },
      { weight: 1, arbitrary: text },
    ),
    registryBaseUrl: text,
    identifier: fc.oneof(fc.constantFrom('demo', 'Acme.Demo', 'acme/demo', 'acme/demo:1.0'), text),
    version: fc.oneof(fc.constant('1.0.0'), text),
    runtimeHint: fc.oneof(fc.constantFrom('npx', 'uvx', 'docker', 'dnx'), text),
    transport: fc.record({
      type: fc.oneof({ weight: 5, arbitrary: fc.constant('stdio') }, { weight: 1, arbitrary: text }),
    }),
    runtimeArguments: list(argument),
    packageArguments: list(argument),
    environmentVariables: list(merged),
  },
  { requiredKeys: ['registryType', 'identifier', 'version'] },
);
const remote = fc.record(
  {
    type: fc.constantFrom('sse', 'streamable-http', 'stdio'),
    url: fc.oneof(text, fc.constant('https://a.example.com/mcp')),
    headers: list(merged),
    variables: fc.dictionary(text, variable, { maxKeys: 2 }),
  },
  { requiredKeys: ['type', 'url'] },
);
const entry = fc.record(
  {
    name: fc.oneof(fc.constant('a/b'), text),
    version: text,
    status: text,
    packages: list(item),
    remotes: list(remote),
    title: text,
    description: text,
  },
  { requiredKeys: ['name'] },
);

function isExactPackage(command: readonly string[]): boolean {
  const [program, first = '', second = ''] = command;
  const [name = '', version = ''] = (program === 'npx' ? second : first).split(/(?!^)@/);
  if (program === 'npx') return first === '-y' && isNpmName(name) && isNpmVersion(version);
  if (program === 'uvx') return isPypiName(name) && isPypiVersion(version);
  if (program === 'dnx') return isNugetName(name) && isNugetVersion(version) && second === '--yes';
  return (
    program === 'docker' && first === 'run' && command.some((word) => (readOciReference(word)?.tag ?? null) !== null)
  );
}

const packageOf = (packageArguments: readonly unknown[]) => ({
  registryType: 'npm',
  identifier: 'demo',
  version: '1.0.0',
  packageArguments,
});
const many = (count: number, one: unknown) => Array.from({ length: count }, () => one);

/** What must hold for every way to install an entry. */
function faultsOf(plan: InstallationPlan, extra: InputValues): readonly string[] {
  const answers = plan.inputs.map(
    ({ name, choices }, index) => [name, choices[0] ?? Object.values(extra)[index] ?? 'x'] as const,
  );
  const shown = previewUrl(plan) ?? previewWords(plan.command).join('');
  const values = [{}, Object.fromEntries(answers), extra];
  return [
    ...(shown === '' ? ['shows nothing'] : []),
    ...values.flatMap((given) => faultsOfCompleted(completeInstallation(plan, SERVER_ID, given))),
  ];
}

function faultsOfCompleted(completed: ReturnType<typeof completeInstallation>): readonly string[] {
  if (!completed.ok) return [];
  const { mode, command, env, url, headers, transport, version, credentials } = completed.value;
  const wire = mcpServerInput.safeParse({ name: 'demo', mode, command, env, url, headers, transport, version });
  const faults = [
    ...(wire.error?.issues ?? []).map(({ path, message }) => `${path.join('.')} ${message}`),
    referenceProblem(localServer({ mode, command, env, url, headers })),
    refusalOf(mode === 'local' ? commandDangers(command, env) : [])?.message ?? null,
    credentials.some(({ value }) => value === '') ? 'an empty credential' : null,
    mode === 'local' && !isExactPackage(command) ? `starts ${command.join(' ')}` : null,
    mode === 'remote' && !(url ?? '').startsWith('https://') ? `calls ${String(url)}` : null,
  ];
  return faults.filter((fault) => fault !== null);
}

describe('for any entry', () => {
  test('its plans are returned, are bounded, and start nothing but one exact package', { timeout: 600_000 }, () => {
    let completedPlans = 0;
    const property = fc.property(
      entry,
      fc.dictionary(text, fc.oneof(text, list(text)), { maxKeys: 4 }),
      (value, extra) => {
        const read = readRegistryEntry(value);
        const options = read.ok ? installationOptions(read.value) : [];
        const refusals = options.flatMap(({ plan }) => (plan.ok ? [] : [plan.error.message]));
        completedPlans += options.length - refusals.length;
        expect(refusals.filter((message) => /[^\x20-\x7e]/.test(message))).toEqual([]);
        expect(options.flatMap(({ plan }) => (plan.ok ? faultsOf(plan.value, extra) : []))).toEqual([]);
      },
    );
    fc.assert(property, { numRuns: 1_500 });
    expect(completedPlans).toBeGreaterThan(200);
  });

  test('the same entry gives the same plan', () => {
    fc.assert(
      fc.property(entry, (value) => {
        const plan = () => {
          const read = readRegistryEntry(value);
          return read.ok ? planInstallation(read.value) : null;
        };
        expect(plan()).toEqual(plan());
      }),
      { numRuns: 100 },
    );
  });

  test('the largest entry is planned quickly', () => {
    const shared = { value: `{x}${'a'.repeat(4_000)}`, isRepeated: true, variables: { x: { isRequired: true } } };
    const own = Array.from({ length: 200 }, (_unused, index) => {
      const value = Array.from({ length: 40 }, (_none, at) => `{v${index}_${at}}`).join('.');
      return { type: 'named', name: '--x', value };
    });
    const packages = [
      ...many(12, packageOf(many(200, { type: 'named', name: '--x', ...shared }))),
      ...many(13, packageOf(own)),
    ];
    const read = readRegistryEntry({ name: 'a/b', packages });
    expect(read.ok && installationOptions(read.value)).toHaveLength(25);
  });

  test.each([
    'your_a'.repeat(600),
    'a-'.repeat(2_000),
    '{a}'.repeat(1_300),
    '<'.repeat(4_000),
    '1.'.repeat(60),
    '@'.repeat(200),
  ])('no text takes long to read: %#', (one) => {
    const value = `${one}!`;
    const packageArguments = many(50, { type: 'named', name: one, value, default: value });
    const environmentVariables = [
      { name: one, value, default: value },
      { name: 'A', value, default: value },
    ];
    const of = (registryType: string) => ({
      registryType,
      identifier: one.slice(0, 2_000),
      version: one.slice(0, 500),
      registryBaseUrl: one.slice(0, 2_000),
      packageArguments,
      environmentVariables,
    });
    const remotes = [
      { type: 'sse', url: `https://a.example.com/${one.slice(0, 2_000)}`, headers: environmentVariables },
    ];
    const read = readRegistryEntry({
      name: 'a/b',
      packages: ['npm', 'pypi', 'oci', 'nuget'].map((type) => of(type)),
      remotes,
    });
    expect(read.ok && installationOptions(read.value)).toHaveLength(5);
  });
});
