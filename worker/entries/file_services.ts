import { readdirSync, readFileSync } from 'node:fs';
import type { ReadyService } from '../../shared/wire/ready_services.ts';
import { parseReadyServices } from './parse_services.ts';

const CATALOG = new URL('../../catalog/', import.meta.url);

/** The well-known services of the checkout's catalog. */
export function fileServices(): readonly ReadyService[] {
  return parseReadyServices({ services: readTexts('services'), connectors: readTexts('connectors') });
}

function readTexts(folder: string): readonly string[] {
  const url = new URL(`${folder}/`, CATALOG);
  const files = readdirSync(url).filter((name) => name.endsWith('.yaml'));
  return files.toSorted().map((name) => readFileSync(new URL(name, url), 'utf8'));
}
