import type { RegistryRecord } from './registry_record.ts';

/** What lists are filtered by. */
type Facets = Pick<RegistryRecord, 'transports' | 'registryTypes'>;

/** Transports before the slash, package registries after it; their words hold neither a slash nor a comma. */
export function facetText({ transports, registryTypes }: Facets): string {
  return `${transports.join(',')}/${registryTypes.join(',')}`;
}

/** What {@link facetText} stands for. */
export function parseFacets(text: string): Facets {
  const [transports = [], registryTypes = []] = text.split('/').map((list) => list.split(',').filter((each) => each));
  return { transports, registryTypes };
}
