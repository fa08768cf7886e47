import { hasReference } from './references.ts';

/** A package as named in a runner's argument. */
export interface PackageSpec {
  readonly name: string;
  /** As written; null if there is none. */
  readonly version: string | null;
  /** True if it names exactly one release. */
  readonly isExact: boolean;
}

const NPM_NAME = /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/i;
const PYPI_NAME = /^[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?$/i;
const PYPI_EXTRAS = /^\[[a-z0-9][a-z0-9._-]*(?:,[a-z0-9][a-z0-9._-]*)*\]$/i;
const NUGET_NAME = /^[a-z0-9_]+(?:[.-][a-z0-9_]+)*$/i;

/** Semantic versioning 2.0, complete. */
const SEMVER =
  /^(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})(?:-[0-9a-z-]+(?:\.[0-9a-z-]+)*)?(?:\+[0-9a-z-]+(?:\.[0-9a-z-]+)*)?$/i;
/** PEP 440, without its local part's exotic spellings. */
const PEP440 =
  /^v?(?:\d{1,6}!)?\d{1,9}(?:\.\d{1,9}){0,8}(?:[._-]?(?:a|b|c|rc|alpha|beta|pre|preview)[._-]?\d{0,9})?(?:-\d{1,9}|[._-]?(?:post|rev|r)[._-]?\d{0,9})?(?:[._-]?dev[._-]?\d{0,9})?(?:\+[a-z0-9]+(?:[._-][a-z0-9]+)*)?$/i;
/** NuGet: two to four numbers, then semantic versioning's suffixes. */
const NUGET_VERSION = /^\d{1,9}(?:\.\d{1,9}){1,3}(?:-[0-9a-z-]+(?:\.[0-9a-z-]+)*)?(?:\+[0-9a-z-]+(?:\.[0-9a-z-]+)*)?$/i;

const MAX_NAME = 214;
const MAX_VERSION = 128;
/** A tag or a range is not exact: it can name another release tomorrow. */
const LOOSE_VERSION = /^[a-z0-9^~*<>=|.+_ -]*$/i;

/** True for an npm package name: never a URL, a path, a repository or an option. */
export function isNpmName(name: string): boolean {
  return name.length <= MAX_NAME && NPM_NAME.test(name);
}

export function isPypiName(name: string): boolean {
  return name.length <= MAX_NAME && PYPI_NAME.test(name);
}

export function isNugetName(name: string): boolean {
  return name.length <= MAX_NAME && NUGET_NAME.test(name);
}

export function isNpmVersion(version: string): boolean {
  return version.length <= MAX_VERSION && SEMVER.test(version);
}

export function isPypiVersion(version: string): boolean {
  return version.length <= MAX_VERSION && PEP440.test(version);
}

export function isNugetVersion(version: string): boolean {
  return version.length <= MAX_VERSION && NUGET_VERSION.test(version);
}

/** `name`, `name@version`, `@scope/name@version`; null for everything else that npm accepts: repositories, URLs, paths, aliases. */
export function readNpmSpec(text: string): PackageSpec | null {
  const at = text.indexOf('@', 1);
  const name = at < 0 ? text : text.slice(0, at);
  const version = at < 0 ? null : text.slice(at + 1);
  if (!isNpmName(name)) return null;
  if (version === null) return { name, version, isExact: false };
  if (!LOOSE_VERSION.test(version)) return null;
  return { name, version, isExact: isNpmVersion(version) };
}

/** `name`, `name[extra]`, then `@version` or `==version`; null for everything else that Python's tools accept. */
export function readPypiSpec(text: string): PackageSpec | null {
  const match = /^([^@=<>~![\]\s]+)(\[[^\]]*\])?(?:(@|==)([^@=\s]+)|([<>~!=].*))?$/.exec(text);
  if (match === null) return null;
  const [, name = '', extras, , exact, range] = match;
  if (!isPypiName(name) || (extras !== undefined && !PYPI_EXTRAS.test(extras))) return null;
  if (exact !== undefined) {
    return LOOSE_VERSION.test(exact) ? { name, version: exact, isExact: isPypiVersion(exact) } : null;
  }
  if (range === undefined) return { name, version: null, isExact: false };
  return /^[<>~!=.,*0-9a-z +-]+$/i.test(range) ? { name, version: range, isExact: false } : null;
}

/** `id` or `id@version`. */
export function readNugetSpec(text: string): PackageSpec | null {
  const [name = '', version, ...more] = text.split('@');
  if (!isNugetName(name) || more.length > 0) return null;
  if (version === undefined) return { name, version: null, isExact: false };
  return /^[0-9a-z.*+-]+$/i.test(version) ? { name, version, isExact: isNugetVersion(version) } : null;
}

const GO_MODULE = /^[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+(?:\/[a-z0-9_~-][a-z0-9._~-]*)+$/i;
const GO_VERSION = /^v\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9a-z.-]+)?(?:\+incompatible)?$/i;
const COMMIT = /^[0-9a-f]{40}$/;

/** `example.com/module@version`, or files of this machine, which are pinned by nature; null for everything else. */
export function readGoSpec(text: string): PackageSpec | null {
  if (isOwnPath(text) || text === '.' || text.startsWith('./')) return { name: text, version: null, isExact: true };
  const [name = '', version, ...more] = text.split('@');
  if (name.length > MAX_NAME || !GO_MODULE.test(name) || more.length > 0) return null;
  if (version === undefined) return { name, version: null, isExact: false };
  if (version.length > MAX_VERSION || !/^[\w.+/-]+$/.test(version)) return null;
  return { name, version, isExact: GO_VERSION.test(version) || COMMIT.test(version) };
}

const FLAKE = /^((?:(?:github|gitlab):[\w.-]+\/|flake:)?[a-z][\w.-]*)(?:\/([\w.-]+(?:\/[\w.-]+)?))?$/i;

/** A flake of nixpkgs or of a code host, or a directory of this machine; null for URLs, and for anything with a query. */
export function readFlakeSpec(text: string): PackageSpec | null {
  const [flake = '', output, ...more] = text.split('#');
  if (more.length > 0 || (output !== undefined && !/^[\w.-]+$/.test(output))) return null;
  if (isOwnPath(flake)) return { name: flake, version: null, isExact: true };
  const [, name, version = null] = FLAKE.exec(flake.slice(0, MAX_NAME + MAX_VERSION)) ?? [];
  if (name === undefined || name === 'path') return null;
  return { name, version, isExact: COMMIT.test(version?.split('/').at(-1) ?? '') };
}

/** An absolute path without a credential in it. */
function isOwnPath(text: string): boolean {
  return /^\/[\w./@+~ -]+$/.test(text) && !text.split('/').includes('..') && !hasReference(text);
}
