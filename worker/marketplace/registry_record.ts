import { readRegistryEntry, type RegistryEntry } from '../../shared/mcp/registry_entry.ts';

/** An entry of the registry, as far as listing and searching goes; the whole of it stands in `document`. */
export interface RegistryRecord {
  /** Its id: `namespace/name`. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly state: RegistryEntry['status'];
  /** False for an entry that another version has replaced. */
  readonly isLatest: boolean;
  /** RFC 3339 in UTC; empty when the registry did not say. */
  readonly updatedAt: string;
  readonly transports: readonly string[];
  readonly registryTypes: readonly string[];
  /** The entry as JSON, as it was published. */
  readonly document: string;
}

/** An entry that is larger is none: the largest of the public registry has 60 KB. */
export const MAX_ENTRY_CHARACTERS = 128 * 1024;
const MAX_DEPTH = 32;
const MAX_DESCRIPTION_CHARACTERS = 2_000;
const MAX_FACETS = 16;

/**
 * Reads an entry of a list, in whatever shape a registry gives it. Null for what is no entry: without a name that can be
 * shown and asked for, too large, nested too deeply.
 */
export function readRegistryRecord(value: unknown): RegistryRecord | null {
  if (isTooDeep(value)) return null;
  const entry = readRegistryEntry(value);
  if (!entry.ok || !entry.value.name.isWellFormed()) return null;
  const document = JSON.stringify(value);
  return document.length <= MAX_ENTRY_CHARACTERS ? recordOf(entry.value, document) : null;
}

/** The entry of a document that was kept. */
export function entryOf(document: string): RegistryEntry {
  const entry = readRegistryEntry(JSON.parse(document));
  if (!entry.ok) throw new Error('an entry that was kept cannot be read');
  return entry.value;
}

function recordOf(entry: RegistryEntry, document: string): RegistryRecord {
  return {
    name: entry.name,
    description: entry.description.slice(0, MAX_DESCRIPTION_CHARACTERS).toWellFormed(),
    version: entry.version ?? '',
    state: entry.status,
    isLatest: entry.isLatest !== false,
    updatedAt: readTime(entry.updatedAt ?? entry.publishedAt),
    transports: facets([...entry.packages, ...entry.remotes].map(({ transport }) => transport)),
    registryTypes: facets(entry.packages.map(({ registryType }) => registryType)),
    document,
  };
}

/** The words that lists are filtered by; anything else that stands in their place is left out. */
function facets(values: readonly string[]): readonly string[] {
  const words = values.filter((value) => /^[\w-]{1,32}$/.test(value)).map((word) => word.toLowerCase());
  return [...new Set(words)].slice(0, MAX_FACETS);
}

function readTime(text: string | null): string {
  const time = Date.parse(text ?? '');
  return Number.isFinite(time) ? new Date(time).toISOString() : '';
}

/** Goes level by level, so that no nesting is too deep for it. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}
