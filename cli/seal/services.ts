import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { mayBeCredential } from '../../shared/model/credential_shapes.ts';
import { nearMatch } from '../../shared/model/near_match.ts';
import { parseSealedService, type SealedService } from '../../shared/wire/sealed_service.ts';
import { CliError, EXIT } from '../exit_codes.ts';

const FOLDER = ['catalog', 'services'];

/** The well-known services of this checkout, by name. */
export function loadServices(root: string): readonly SealedService[] {
  const folder = join(root, ...FOLDER);
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  return files.toSorted().map((file) => loadService(join(folder, file)));
}

function loadService(path: string): SealedService {
  const parsed = parseSealedService(parse(readFileSync(path, 'utf8')));
  if (parsed.ok) return parsed.value;
  throw new CliError(EXIT.failed, `${path} is damaged: ${parsed.error}`, ['Get a complete checkout.']);
}

/** Finds a service by name; the error suggests the nearest one. */
export function findService(services: readonly SealedService[], name: string): SealedService {
  const found = services.find((service) => service.name === name);
  if (found !== undefined) return found;
  const names = services.map((service) => service.name);
  if (mayBeCredential(name)) {
    throw new CliError(EXIT.usage, 'there is no service of this name', [
      'If it is a credential, treat it as exposed: replace it at the service that issued it.',
      `Known services: ${names.join(', ')}.`,
    ]);
  }
  const near = nearMatch(name, names);
  throw new CliError(EXIT.usage, `there is no service ${JSON.stringify(name)}`, [
    ...(near === null ? [] : [`Did you mean ${near}?`]),
    `Known services: ${names.join(', ')}.`,
    'Any other credential: svc secret set PATH, then svc binding add HOST --credential PATH --scheme SCHEME.',
  ]);
}
