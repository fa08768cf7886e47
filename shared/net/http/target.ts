import { err, ok, type Result } from '../../model/result.ts';
import { parseAuthority, type Authority } from '../host.ts';
import type { Problem } from '../../model/problem.ts';

interface SplitTarget {
  readonly path: string;
  /** Without the `?`; null if there is none. */
  readonly query: string | null;
}

/** A request target (RFC 9112 section 3.2) of a decrypted request. */
export interface ParsedTarget extends SplitTarget {
  /** The authority of an absolute-form target; else null. */
  readonly authority: Authority | null;
}

/** Only these characters can make a path differ from its canonical form. */
const MAY_CHANGE = /[%;\\#]|\/\/|\/\.{1,2}(?:\/|$)/;
const UNRESERVED = /[A-Za-z0-9._~-]/;

/** Splits an origin-form target at its first `?`; the bytes stay unchanged. */
export function splitTarget(target: string): SplitTarget {
  const mark = target.indexOf('?');
  return mark < 0 ? { path: target, query: null } : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

/** Reads the target of a decrypted request: origin-form, absolute-form with https, or `*` of OPTIONS. */
export function parseTarget(target: string, method: string): Result<ParsedTarget, Problem<'invalid_target'>> {
  if (target.startsWith('/')) return ok({ authority: null, ...splitTarget(target) });
  if (target === '*' && method === 'OPTIONS') return ok({ authority: null, path: '*', query: null });
  return parseAbsolute(target);
}

function parseAbsolute(target: string): Result<ParsedTarget, Problem<'invalid_target'>> {
  const parts = /^https:\/\/([^/?#]*)([^]*)$/i.exec(target);
  if (parts === null) return invalid('must be a path such as /v1/items, or "*" for OPTIONS');
  const authority = parseAuthority(parts[1] ?? '');
  if (!authority.ok) return invalid(`names a host that is not valid: ${authority.error.message}`);
  const rest = parts[2] ?? '';
  const origin = rest.startsWith('/') ? rest : `/${rest}`;
  return ok({ authority: authority.value, ...splitTarget(origin) });
}

function invalid(problem: string): Result<never, Problem<'invalid_target'>> {
  return err({ reason: 'invalid_target', message: `the request target ${problem}` });
}

/**
 * The path as a server may understand it (design section 5, invariant 8): unreserved characters percent-decoded, `;`
 * parameters dropped, slashes merged, dot segments applied (also if `%2f`, `%5c` or a backslash separates them), a fragment
 * cut off. Other escapes stay, with upper-case digits. Idempotent.
 */
export function canonicalPath(path: string): string {
  if (!path.startsWith('/') || !MAY_CHANGE.test(path)) return path;
  const plain = decodeUnreserved(path.replace(/#[^]*$/, '')).replaceAll('\\', '/');
  const kept: string[] = [];
  let last = '';
  for (const segment of plain.slice(1).split('/').flatMap(serverSegments)) {
    last = segment;
    if (segment === '..') kept.pop();
    else if (!isDirectory(segment)) kept.push(segment);
  }
  const joined = `/${kept.join('/')}`;
  return isDirectory(last) && kept.length > 0 ? `${joined}/` : joined;
}

/** In one pass: a `%` without a valid escape counts as `%25`, so that decoding never creates a new escape. */
function decodeUnreserved(path: string): string {
  return path.replace(/%([0-9a-f]{2})?/gi, (escape: string, digits: string | undefined) => {
    if (digits === undefined) return '%25';
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    return UNRESERVED.test(character) ? character : escape.toUpperCase();
  });
}

/** A segment without its parameters; split at encoded slashes if that reveals a dot segment. */
function serverSegments(segment: string): string[] {
  const name = segment.replace(/(?:;|%3B)[^]*$/, '');
  const parts = name.split(/%2F|%5C/);
  return parts.some((part) => part === '.' || part === '..') ? parts : [name];
}

function isDirectory(segment: string): boolean {
  return segment === '' || segment === '.' || segment === '..';
}

const ENCODED_SLASH = /%2f|%5c/i;
const PARAMETER = /;|%3b/i;
const DOT_SEGMENT = /(?:\/|%2f|%5c)(?:\.|%2e){1,2}(?:$|\/|;|%2f|%3b|%5c)/i;

/**
 * True for a path that servers read in more ways than {@link canonicalPath} covers: with an illegal character (a backslash,
 * a `#`), or if the result depends on the order of decoding slashes, removing parameters, merging slashes and applying dot
 * segments.
 */
export function isUndecidablePath(path: string): boolean {
  if (path.includes('\\') || path.includes('#')) return true;
  const hasSlash = ENCODED_SLASH.test(path);
  const hasParameter = PARAMETER.test(path);
  if (hasSlash && hasParameter) return true;
  return (hasSlash || hasParameter || path.includes('//')) && DOT_SEGMENT.test(path);
}
