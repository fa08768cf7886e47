import { planInstallation } from '../../shared/mcp/installation.ts';
import { readRegistryEntry, type RegistryEntry } from '../../shared/mcp/registry_entry.ts';

/** The fields of a registry entry for lists and searches; `document` has all of it. */
export interface RegistryRecord {
  /** Its id: `namespace/name`. */
  readonly name: string;
  readonly description: string;
  /** Empty if there is none. */
  readonly title: string;
  /** Of its packages. */
  readonly identifiers: readonly string[];
  readonly version: string;
  readonly state: RegistryEntry['status'];
  /** False if another version has replaced this one. */
  readonly isLatest: boolean;
  /** RFC 3339 in UTC; empty if the registry did not say. */
  readonly updatedAt: string;
  readonly transports: readonly string[];
  readonly registryTypes: readonly string[];
  /** Whether an install asks for a secret; null if it cannot be installed. */
  readonly needsSecret: boolean | null;
  /** The entry as JSON, as published. */
  readonly document: string;
}

/** A larger entry is rejected. The largest of the public registry has 60 KB. */
const MAX_ENTRY_CHARACTERS = 128 * 1024;
const MAX_DEPTH = 32;
const MAX_DESCRIPTION_CHARACTERS = 2_000;
const MAX_FACETS = 16;
const MAX_IDENTIFIERS = 8;
const MAX_IDENTIFIER_CHARACTERS = 200;

/**
 * Reads an entry of a list, in each format that registries use. Null if it is invalid: it has no name that can be shown
 * and requested, is too large, or is nested too deeply.
 */
export function readRegistryRecord(value: unknown): RegistryRecord | null {
  if (isTooDeep(value)) return null;
  const entry = readRegistryEntry(value);
  if (!entry.ok || !entry.value.name.isWellFormed()) return null;
  const document = JSON.stringify(value);
  return document.length <= MAX_ENTRY_CHARACTERS ? recordOf(entry.value, document) : null;
}

/** The entry of a stored document. */
export function entryOf(document: string): RegistryEntry {
  const entry = readRegistryEntry(JSON.parse(document));
  if (!entry.ok) throw new Error('a stored registry entry cannot be read');
  return entry.value;
}

function recordOf(entry: RegistryEntry, document: string): RegistryRecord {
  return {
    name: entry.name,
    description: entry.description.slice(0, MAX_DESCRIPTION_CHARACTERS).toWellFormed(),
    title: line(entry.title ?? ''),
    identifiers: entry.packages
      .map(({ identifier }) => line(identifier))
      .filter((identifier) => identifier.length <= MAX_IDENTIFIER_CHARACTERS)
      .slice(0, MAX_IDENTIFIERS),
    version: entry.version ?? '',
    state: entry.status,
    isLatest: entry.isLatest !== false,
    updatedAt: readTime(entry.updatedAt ?? entry.publishedAt),
    transports: facets([...entry.packages, ...entry.remotes].map(({ transport }) => transport)),
    registryTypes: facets(entry.packages.map(({ registryType }) => registryType)),
    needsSecret: needsSecret(entry),
    document,
  };
}

/** As one line, which is how a mirror stores it. */
function line(text: string): string {
  return text.toWellFormed().replaceAll(/\s+/gu, ' ');
}

function needsSecret(entry: RegistryEntry): boolean | null {
  const plan = planInstallation(entry);
  return plan.ok ? plan.value.inputs.some(({ required, secret }) => required && secret) : null;
}

/** The words that lists are filtered by. Unknown values are left out. */
function facets(values: readonly string[]): readonly string[] {
  const words = values.filter((value) => /^[\w-]{1,32}$/.test(value)).map((word) => word.toLowerCase());
  return [...new Set(words)].slice(0, MAX_FACETS);
}

function readTime(text: string | null): string {
  const time = Date.parse(text ?? '');
  return Number.isFinite(time) ? new Date(time).toISOString() : '';
}

/** Works level by level, so that deep nesting cannot overflow the stack. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}
