/** What the registry says of an entry's state. */
export const REGISTRY_STATES = ['active', 'deprecated', 'deleted'] as const;
export type RegistryState = (typeof REGISTRY_STATES)[number];

/** An entry of the registry, as far as listing and searching goes; the whole of it stands in `document`. */
export interface RegistryRecord {
  /** Its id: `namespace/name`. */
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly state: RegistryState;
  /** False for an entry that another version has replaced. */
  readonly isLatest: boolean;
  /** As the registry wrote it; empty when it did not say. */
  readonly updatedAt: string;
  readonly transports: readonly string[];
  readonly registryTypes: readonly string[];
  /** The entry as JSON, as it was published. */
  readonly document: string;
}

/** An entry that is larger is none: the largest of the public registry has 60 KB. */
export const MAX_ENTRY_CHARACTERS = 256 * 1024;
const MAX_DEPTH = 32;
const MAX_NAME_CHARACTERS = 300;
const MAX_DESCRIPTION_CHARACTERS = 2_000;
const MAX_VERSION_CHARACTERS = 255;
const MAX_FACETS = 64;
const OFFICIAL = 'io.modelcontextprotocol.registry/official';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads an entry of a list, in the wrapped shape (`{server, _meta}`) or in the flat one of early 2025. Null for what is no
 * entry: without a name that can be shown and asked for, too large, nested too deeply.
 */
export function readRegistryRecord(value: unknown): RegistryRecord | null {
  if (!isFields(value) || isTooDeep(value)) return null;
  const server = isFields(value['server']) ? value['server'] : value;
  const name = server['name'];
  if (typeof name !== 'string' || !isName(name)) return null;
  const document = JSON.stringify(value);
  if (document.length > MAX_ENTRY_CHARACTERS) return null;
  const official = officialMeta(value, server);
  const detail = fieldsAt(server, 'version_detail');
  const packages = listAt(server, 'packages');
  return {
    name,
    description: shortText(server['description'], MAX_DESCRIPTION_CHARACTERS),
    version: shortText(server['version'] ?? detail['version'], MAX_VERSION_CHARACTERS),
    state: readState(official['status'] ?? server['status']),
    isLatest: (official['isLatest'] ?? official['is_latest'] ?? detail['is_latest']) !== false,
    updatedAt: readTime(official['updatedAt'] ?? official['updated_at'] ?? detail['release_date']),
    transports: transportsOf(server, packages),
    registryTypes: facets(
      packages.map((each) => each['registryType'] ?? each['registry_type'] ?? each['registry_name']),
    ),
    document,
  };
}

/** A name that can be shown, put into a URL and found again. */
export function isName(name: string): boolean {
  if (name.length === 0 || name.length > MAX_NAME_CHARACTERS) return false;
  return !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(name) && name.trim() === name;
}

/** What the registry itself adds; it stood in several places over time. */
function officialMeta(entry: Fields, server: Fields): Fields {
  for (const meta of [fieldsAt(entry, '_meta'), fieldsAt(server, '_meta')]) {
    if (isFields(meta[OFFICIAL])) return meta[OFFICIAL];
  }
  return {};
}

function transportsOf(server: Fields, packages: readonly Fields[]): readonly string[] {
  const local = packages.map((each) => fieldsAt(each, 'transport')['type'] ?? 'stdio');
  const remote = listAt(server, 'remotes').map((each) => each['type'] ?? each['transport_type']);
  return facets([...local, ...remote]);
}

/** The words that lists are filtered by; anything else that stands in their place is left out. */
function facets(values: readonly unknown[]): readonly string[] {
  const words = values.filter((value): value is string => typeof value === 'string' && /^[\w-]{1,32}$/.test(value));
  return [...new Set(words.map((word) => word.toLowerCase()))].slice(0, MAX_FACETS);
}

function readState(value: unknown): RegistryState {
  return REGISTRY_STATES.find((state) => state === value) ?? 'active';
}

function readTime(value: unknown): string {
  return typeof value === 'string' && value.length <= 40 && Number.isFinite(Date.parse(value))
    ? new Date(value).toISOString()
    : '';
}

/** Text for people: well-formed, and no longer than it may be. */
function shortText(value: unknown, maxCharacters: number): string {
  if (typeof value !== 'string') return '';
  return value.slice(0, maxCharacters).toWellFormed();
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

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsAt(of: Fields, key: string): Fields {
  const value = of[key];
  return isFields(value) ? value : {};
}

function listAt(of: Fields, key: string): readonly Fields[] {
  const value = of[key];
  return Array.isArray(value) ? value.filter((each): each is Fields => isFields(each)) : [];
}
