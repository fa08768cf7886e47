import type { PublishedEntry } from '../marketplace/registry_entries.ts';

/** Its older version has no input for the language. */
export const WEATHER = 'io.example.acme/weather';
export const HOSTILE = 'io.example.hostile/turned';

const KEY = { name: 'API_KEY', description: 'Key of the service', isRequired: true, isSecret: true };
const UNIT = {
  name: 'UNIT',
  description: 'Unit of temperatures',
  choices: ['celsius', 'fahrenheit'],
  isRequired: true,
};
const REGION = { type: 'named', name: '--region', description: 'Region to start with', isRequired: true };

function weather(version: string, variables: readonly unknown[]): PublishedEntry {
  const item = { registryType: 'npm', identifier: '@acme/weather', version, transport: { type: 'stdio' } };
  const header = { name: 'Authorization', description: 'Bearer token', isRequired: true, isSecret: true };
  const server = {
    name: WEATHER,
    title: 'Acme Weather',
    description: 'Sun, rain and SNOW for agents',
    version,
    packages: [{ ...item, environmentVariables: variables, packageArguments: [REGION] }],
    remotes: [{ type: 'streamable-http', url: 'https://weather.example.com/mcp', headers: [header] }],
    repository: { url: 'https://github.com/acme/weather', source: 'github' },
  };
  return { server, status: 'active', updatedAt: '2026-02-01T00:00:00Z' };
}

export const WEATHER_VERSIONS: readonly PublishedEntry[] = [
  weather('1.2.2', [KEY, UNIT]),
  weather('1.3.0', [KEY, UNIT, { name: 'LANGUAGE', description: 'Language of the answers', isRequired: true }]),
];

/** An entry that looks like another one, with unsafe links. */
export const HOSTILE_ENTRY: PublishedEntry = {
  server: {
    name: HOSTILE,
    title: 'Pay\u202egnp.exe',
    description: '<img src=x onerror=alert(1)> Hid\u200bden <script>alert(2)</script>',
    version: '1.0.0',
    packages: [{ registryType: 'npm', identifier: 'turned', version: '1.0.0', transport: { type: 'stdio' } }],
    websiteUrl: 'javascript:alert(3)',
    icons: [{ src: 'https://tracker.example.com/icon.png' }],
  },
  status: 'deprecated',
  updatedAt: '2026-02-02T00:00:00Z',
};
