import type { ConnectorSpecRecord } from './connectors/connector_spec.ts';
import type { SealedService } from './sealed_service.ts';

/** A well-known service of the catalog: its bindings, its connector, or both. */
export interface ReadyService {
  /** The name in paths: that of the service's file, or of the connector's. */
  readonly name: string;
  readonly title: string;
  /** Null if the catalog has only a connector. */
  readonly service: SealedService | null;
  /** Null if the catalog has only bindings. */
  readonly connector: ConnectorSpecRecord | null;
}

/** The files of the catalog as services, by title. A connector that no service names is one of its own. Throws for a name that is in no file. */
export function readyServices(
  services: readonly SealedService[],
  connectors: readonly ConnectorSpecRecord[],
): readonly ReadyService[] {
  const named = new Map(connectors.map((spec) => [spec.connector.fqn, spec]));
  const withBindings = services.map((service): ReadyService => {
    const { name, title, connector: fqn } = service;
    const connector = fqn === undefined ? null : (named.get(fqn) ?? null);
    if (fqn !== undefined && connector === null) throw new Error(`the catalog has no connector ${JSON.stringify(fqn)}`);
    return { name, title, service, connector };
  });
  const used = new Set(services.map(({ connector }) => connector));
  const others = connectors
    .filter(({ connector }) => !used.has(connector.fqn))
    .map((spec): ReadyService => {
      const { fqn, title } = spec.connector;
      return { name: fqn.slice(fqn.indexOf('/') + 1), title, service: null, connector: spec };
    });
  return [...withBindings, ...others].toSorted((a, b) => (a.title.toLowerCase() < b.title.toLowerCase() ? -1 : 1));
}

/** The services that have every word of the text in their name, title, hosts or variables. */
export function findReadyServices(all: readonly ReadyService[], text: string): readonly ReadyService[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return all.filter((ready) => {
    const { name, title, service, connector } = ready;
    const parts = [name, title, service?.credential, ...(service?.variables ?? []), ...(connector?.hosts ?? [])];
    const searched = parts.join(' ').toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

/** What an agent may send with the credential: listed operations only, or every request to the hosts of the bindings. */
export const WAYS = ['connector', 'bindings'] as const;
export type Way = (typeof WAYS)[number];

/** The ways that a service has, the narrowest first. */
export function waysOf({ service, connector }: Pick<ReadyService, 'service' | 'connector'>): readonly Way[] {
  return [
    ...(connector === null ? [] : (['connector'] as const)),
    ...(service === null ? [] : (['bindings'] as const)),
  ];
}

type SpecOperation = ConnectorSpecRecord['operations'][number];

/** An operation that shows whether a credential works: it reads, needs no approval, and nothing has to be filled in. Null if there is none. */
export function testOperation({ operations }: Pick<ConnectorSpecRecord, 'operations'>): SpecOperation | null {
  const found = operations.find(
    ({ method, effect, approval, inputs, graphql, json }) =>
      method === 'GET' &&
      effect === 'read' &&
      approval === 'none' &&
      graphql === undefined &&
      json === undefined &&
      inputs.every(({ required: isRequired }) => !isRequired),
  );
  return found ?? null;
}
