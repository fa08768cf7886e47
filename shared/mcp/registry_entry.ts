import { err, ok, type Result } from '../model/result.ts';
import type { McpTransport } from '../model/mcp_server.ts';
import { EntryReading } from './registry/entry_reading.ts';
import { cutText, looseFlag, looseObject, looseText, readMember, type LooseObject } from './registry/loose_fields.ts';
import {
  readArguments,
  readInputs,
  readVariables,
  type RegistryArgument,
  type RegistryInput,
  type RegistryVariable,
} from './registry/registry_input.ts';
import { listHiddenCharacters } from '../model/shown_text.ts';

const ENTRY_STATUSES = ['active', 'deprecated', 'deleted'] as const;
type EntryStatus = (typeof ENTRY_STATUSES)[number];

/** A server reached over HTTP. */
export interface RegistryRemote {
  readonly transport: McpTransport;
  /** May contain `{variable}`s. */
  readonly url: string;
  readonly headers: readonly RegistryInput[];
  readonly variables: readonly RegistryVariable[];
}

/** A program that is fetched and started. */
export interface RegistryPackage {
  /** `npm`, `pypi`, `oci`, `nuget`, `mcpb`, or what the publisher wrote. */
  readonly registryType: string;
  readonly registryBaseUrl: string | null;
  readonly identifier: string;
  readonly version: string | null;
  /** The program with which the publisher would start it. */
  readonly runtimeHint: string | null;
  readonly fileSha256: string | null;
  readonly transport: 'stdio' | McpTransport | 'unknown';
  readonly runtimeArguments: readonly RegistryArgument[];
  readonly packageArguments: readonly RegistryArgument[];
  readonly environmentVariables: readonly RegistryInput[];
}

/** An entry of the public registry, in one shape for every registry shape. Its texts are the publisher's: untrusted data. */
export interface RegistryEntry {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly version: string | null;
  readonly status: EntryStatus;
  readonly isLatest: boolean | null;
  readonly publishedAt: string | null;
  readonly updatedAt: string | null;
  readonly repositoryUrl: string | null;
  readonly websiteUrl: string | null;
  /** Addresses of its raster images; others could hold scripts. */
  readonly icons: readonly string[];
  readonly packages: readonly RegistryPackage[];
  readonly remotes: readonly RegistryRemote[];
  /** What was omitted from the entry, and why; bounded. */
  readonly problems: readonly string[];
}

const MAX_ENTRY_NAME = 200;
const MAX_PACKAGES = 50;
const MAX_REMOTES = 50;
const MAX_ICONS = 8;
const MAX_LINE = 512;
const MAX_DESCRIPTION = 4_000;
const MAX_URL = 2_048;

/** A version is one word of printable ASCII. */
const VERSION = /^[!-~]{1,128}$/;

const REGISTRY_META = 'io.modelcontextprotocol.registry/official';
const OLDER_REGISTRY_META = 'x-io.modelcontextprotocol.registry';
/** Older names of package registries. */
const REGISTRY_TYPES: ReadonlyMap<string, string> = new Map([
  ['docker', 'oci'],
  ['docker-hub', 'oci'],
  ['container', 'oci'],
  ['node', 'npm'],
  ['python', 'pypi'],
  ['dxt', 'mcpb'],
]);
const TRANSPORTS: ReadonlyMap<string, 'stdio' | McpTransport> = new Map([
  ['stdio', 'stdio'],
  ['sse', 'sse'],
  ['streamable-http', 'streamable-http'],
  ['streamable_http', 'streamable-http'],
  ['streamable', 'streamable-http'],
  ['http', 'streamable-http'],
]);

/**
 * Reads a registry entry: the present `{server, _meta}`, a bare server.json, or older flat shapes. Lenient, as real
 * registries require: unreadable parts are omitted and listed in `problems`; only an entry without a displayable name is
 * rejected. Work and result are bounded for any input. Never throws.
 */
export function readRegistryEntry(value: unknown): Result<RegistryEntry, string> {
  const outer = looseObject(value);
  if (outer === null) return err('the entry is no object');
  const server = looseObject(readMember(outer, 'server')) ?? outer;
  const name = looseText(readMember(server, 'name'), MAX_ENTRY_NAME);
  if (name === null || name === '') return err('the entry has no name');
  if (name.trim() !== name || listHiddenCharacters(name).length > 0 || /[\t\n\r]/.test(name)) {
    return err('the name of the entry has characters that are not shown');
  }
  return ok(readServer(name, server, registryMeta(outer, server)));
}

function readServer(name: string, server: LooseObject, meta: LooseObject): RegistryEntry {
  const reading = new EntryReading();
  const detail = looseObject(readMember(server, 'version_detail', 'versionDetail')) ?? {};
  const repository = looseObject(readMember(server, 'repository')) ?? {};
  const version = looseText(readMember(server, 'version') ?? readMember(detail, 'version'), MAX_LINE);
  if (version !== null && version !== '' && !VERSION.test(version)) reading.note('the version cannot be shown');
  const isLatest = readMember(meta, 'isLatest', 'is_latest') ?? readMember(detail, 'is_latest');
  return {
    name,
    title: looseText(readMember(server, 'title'), MAX_LINE),
    description: cutText(readMember(server, 'description'), MAX_DESCRIPTION),
    version: version !== null && VERSION.test(version) ? version : null,
    status: readStatus(readMember(meta, 'status') ?? readMember(server, 'status')),
    isLatest: isLatest === undefined ? null : looseFlag(isLatest),
    publishedAt: looseText(
      readMember(meta, 'publishedAt', 'published_at') ?? readMember(detail, 'release_date'),
      MAX_LINE,
    ),
    updatedAt: looseText(readMember(meta, 'updatedAt', 'updated_at'), MAX_LINE),
    repositoryUrl: webAddress(readMember(repository, 'url')),
    websiteUrl: webAddress(readMember(server, 'websiteUrl', 'website_url')),
    icons: readIcons(readMember(server, 'icons'), reading),
    packages: readPackages(readMember(server, 'packages'), reading),
    remotes: readRemotes(readMember(server, 'remotes'), reading),
    problems: reading.problems,
  };
}

function registryMeta(outer: LooseObject, server: LooseObject): LooseObject {
  const all = looseObject(readMember(outer, '_meta')) ?? looseObject(readMember(server, '_meta')) ?? {};
  return looseObject(readMember(all, REGISTRY_META)) ?? looseObject(readMember(outer, OLDER_REGISTRY_META)) ?? {};
}

function readStatus(value: unknown): EntryStatus {
  return ENTRY_STATUSES.find((status) => status === value) ?? 'active';
}

function readPackages(value: unknown, reading: EntryReading): readonly RegistryPackage[] {
  const packages: RegistryPackage[] = [];
  for (const [index, item] of reading.items(value, 'packages', MAX_PACKAGES).entries()) {
    const object = looseObject(item);
    const read = object === null ? null : readPackage(object, reading);
    if (read === null) reading.note(`package ${index + 1} has no identifier that can be read`);
    else packages.push(read);
  }
  return packages;
}

function readPackage(object: LooseObject, reading: EntryReading): RegistryPackage | null {
  const identifier = looseText(readMember(object, 'identifier', 'name'), MAX_URL);
  if (identifier === null || identifier === '') return null;
  const type = (
    looseText(readMember(object, 'registryType', 'registry_type', 'registry_name'), MAX_LINE) ?? 'unknown'
  ).toLowerCase();
  const version = looseText(readMember(object, 'version'), MAX_LINE);
  return {
    registryType: REGISTRY_TYPES.get(type) ?? type,
    registryBaseUrl: looseText(readMember(object, 'registryBaseUrl', 'registry_base_url'), MAX_URL),
    identifier,
    version: version === '' ? null : version,
    runtimeHint: looseText(readMember(object, 'runtimeHint', 'runtime_hint'), MAX_LINE),
    fileSha256: looseText(readMember(object, 'fileSha256', 'file_sha256'), MAX_LINE),
    transport: packageTransport(readMember(object, 'transport')),
    runtimeArguments: readArguments(readMember(object, 'runtimeArguments', 'runtime_arguments'), reading),
    packageArguments: readArguments(readMember(object, 'packageArguments', 'package_arguments'), reading),
    environmentVariables: readInputs(
      readMember(object, 'environmentVariables', 'environment_variables'),
      'variable',
      reading,
    ),
  };
}

/** Older entries omit it and mean stdio. */
function packageTransport(value: unknown): RegistryPackage['transport'] {
  if (value === undefined) return 'stdio';
  const type = typeof value === 'string' ? value : readMember(looseObject(value) ?? {}, 'type');
  return type === undefined ? 'stdio' : (TRANSPORTS.get(String(looseText(type, MAX_LINE))) ?? 'unknown');
}

function readRemotes(value: unknown, reading: EntryReading): readonly RegistryRemote[] {
  const remotes: RegistryRemote[] = [];
  for (const [index, item] of reading.items(value, 'remotes', MAX_REMOTES).entries()) {
    const read = readRemote(looseObject(item) ?? {}, reading);
    if (read === null) reading.note(`remote ${index + 1} has no address and transport that can be read`);
    else remotes.push(read);
  }
  return remotes;
}

function readRemote(object: LooseObject, reading: EntryReading): RegistryRemote | null {
  const url = looseText(readMember(object, 'url'), MAX_URL);
  const type = looseText(readMember(object, 'type', 'transport_type', 'transportType'), MAX_LINE);
  const transport = TRANSPORTS.get(type ?? '');
  if (url === null || url === '' || transport === undefined || transport === 'stdio') return null;
  const headers = readInputs(readMember(object, 'headers'), 'header', reading);
  return { transport, url, headers, variables: readVariables(readMember(object, 'variables'), reading) };
}

const RASTER_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/jpg', 'image/webp', 'image/gif']);

/** Only https addresses that do not say to be something else than a raster image. What they serve is checked again. */
function readIcons(value: unknown, reading: EntryReading): readonly string[] {
  return reading.items(value, 'icons', MAX_ICONS).flatMap((item) => {
    const object = looseObject(item) ?? {};
    const src = webAddress(readMember(object, 'src'));
    const type = readMember(object, 'mimeType', 'mime_type');
    const isRaster = type === undefined || RASTER_TYPES.has(String(looseText(type, MAX_LINE)).toLowerCase());
    if (src === null || !isRaster || !URL.canParse(src)) return [];
    const { protocol, pathname } = new URL(src);
    return protocol === 'https:' && !/\.svgz?$/i.test(pathname) ? [src] : [];
  });
}

/** Only web addresses: an entry's link is shown to people in a browser. */
function webAddress(value: unknown): string | null {
  const text = looseText(value, MAX_URL);
  return text !== null && /^https?:\/\/\S+$/i.test(text) && listHiddenCharacters(text, false).length === 0
    ? text
    : null;
}
