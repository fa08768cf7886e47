import type { RegistryRecord } from './registry_record.ts';

/** The properties that lists can be filtered by. */
type Facets = Pick<RegistryRecord, 'transports' | 'registryTypes' | 'needsSecret'>;

const SECRET = new Map([
  ['secret', true],
  ['no-secret', false],
]);

/**
 * Transports before the first slash, package registries after it, and whether a secret is needed after the second one. The
 * words contain neither a slash nor a comma.
 */
export function facetText({ transports, registryTypes, needsSecret }: Facets): string {
  const secret = needsSecret === null ? '' : needsSecret ? '/secret' : '/no-secret';
  return `${transports.join(',')}/${registryTypes.join(',')}${secret}`;
}

/** Parses {@link facetText}. What an earlier version wrote ends after the package registries. */
export function parseFacets(text: string): Facets {
  const [transports = [], registryTypes = [], [secret = ''] = []] = text
    .split('/')
    .map((list) => list.split(',').filter((each) => each));
  return { transports, registryTypes, needsSecret: SECRET.get(secret) ?? null };
}

/** The title and the identifiers of packages, a line each. */
export function searchText({ title, identifiers }: Pick<RegistryRecord, 'title' | 'identifiers'>): string {
  return [title, ...identifiers].join('\n');
}

/** Parses {@link searchText}. */
export function parseSearchText(text: string): Pick<RegistryRecord, 'title' | 'identifiers'> {
  const [title = '', ...identifiers] = text.split('\n');
  return { title, identifiers };
}
