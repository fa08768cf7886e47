import type { RegistryRecord } from './registry_record.ts';

/** The properties that lists can be filtered by. */
type Facets = Pick<RegistryRecord, 'transports' | 'registryTypes'>;

/** Transports before the slash, package registries after it. The words contain neither a slash nor a comma. */
export function facetText({ transports, registryTypes }: Facets): string {
  return `${transports.join(',')}/${registryTypes.join(',')}`;
}

/** Parses {@link facetText}. */
export function parseFacets(text: string): Facets {
  const [transports = [], registryTypes = []] = text.split('/').map((list) => list.split(',').filter((each) => each));
  return { transports, registryTypes };
}
