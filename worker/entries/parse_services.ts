import { parse } from 'yaml';
import { connectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { type ReadyService, readyServices } from '../../shared/wire/ready_services.ts';
import { parseSealedService } from '../../shared/wire/sealed_service.ts';

/** The services of the catalog from the texts of its files. Throws for an invalid one; tests check the catalog against its schemas. */
export function parseReadyServices(texts: {
  readonly services: readonly string[];
  readonly connectors: readonly string[];
}): readonly ReadyService[] {
  const services = texts.services.map((text) => {
    const parsed = parseSealedService(parse(text));
    if (parsed.ok) return parsed.value;
    throw new Error(`a service of the catalog is damaged: ${parsed.error}`);
  });
  const connectors = texts.connectors.map((text) => connectorSpec.parse(parse(text)));
  return readyServices(services, connectors);
}
