import { err, ok, type Result } from '../model/result.ts';
import { listHiddenCharacters } from '../model/shown_text.ts';
import { covers, formatHostPattern, parseHostPattern } from './host_pattern.ts';

/** Where a server comes from: `npm:@acme/files`, `oci:ghcr.io/acme/files`, `host:mcp.acme.com`, `registry:com.acme/files`. */
const SOURCE_KINDS = ['registry', 'npm', 'pypi', 'nuget', 'oci', 'host'] as const;
type SourceKind = (typeof SOURCE_KINDS)[number];

const MAX_SOURCE = 300;
const SOURCE_FIX =
  'write registry:, npm:, pypi:, nuget:, oci: or host: and a name, with "*" at the end for every name that begins so, such as npm:@acme/* (a host: host:*.acme.com)';

/** Reads a pattern of sources in the form in which it is compared. The problem is a predicate for the pattern. */
export function parseSourcePattern(text: string): Result<string, string> {
  const colon = text.indexOf(':');
  const kind = SOURCE_KINDS.find((one) => one === text.slice(0, Math.max(0, colon)));
  const name = text.slice(colon + 1);
  if (kind === undefined || name === '') return err(`is no source of servers: ${SOURCE_FIX}`);
  if (text.length > MAX_SOURCE) return err(`has more than ${MAX_SOURCE} characters`);
  if (/\s/.test(name) || listHiddenCharacters(name, false).length > 0) return err(`has a space: ${SOURCE_FIX}`);
  if (name === '*') return ok(text);
  if (kind === 'host') {
    const host = parseHostPattern(name);
    return host.ok ? ok(`host:${formatHostPattern(host.value)}`) : err(host.error.message);
  }
  const star = name.indexOf('*');
  if (star >= 0 && star !== name.length - 1) return err(`has a "*" that is not at its end: ${SOURCE_FIX}`);
  return ok(`${kind}:${canonicalName(kind, name)}`);
}

/** Whether a pattern in its canonical form covers a source. */
export function coversSource(pattern: string, source: string): boolean {
  if (pattern === 'host:*') return source.startsWith(pattern.slice(0, -1));
  if (pattern.startsWith('host:')) return source.startsWith('host:') && covers(pattern.slice(5), source.slice(5));
  return pattern.endsWith('*') ? source.startsWith(pattern.slice(0, -1)) : source === pattern;
}

/** Names that a package registry takes for one are written in one way; a `*` at the end stays. */
export function canonicalName(kind: SourceKind, name: string): string {
  if (kind === 'pypi') return name.toLowerCase().replaceAll(/[-_.]+/g, '-');
  if (kind === 'nuget') return name.toLowerCase();
  return kind === 'oci' ? canonicalRepository(name) : name;
}

/** Docker's own registry is what a name without one means. */
function canonicalRepository(name: string): string {
  const [first = '', ...rest] = name.split('/');
  if (rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')) {
    return first === 'index.docker.io' ? ['docker.io', ...rest].join('/') : name;
  }
  return rest.length === 0 && !name.endsWith('*') ? `docker.io/library/${name}` : `docker.io/${name}`;
}
