import { err, ok, type Result } from '../model/result.ts';
import { normaliseHostOnPort, type HostProblemReason } from './host.ts';
import { nameOfHost } from './host_port.ts';
import { isIpLiteral } from './ip_literal.ts';
import type { Problem } from '../model/problem.ts';

/**
 * The key of a host binding: one host, or every host below a suffix (any depth, never the suffix itself). Both are at one port,
 * which is part of the text if it is not 443.
 */
export type HostPattern =
  | { readonly kind: 'exact'; readonly host: string }
  /** `suffix` includes its leading dot: `.example.com`, `.example.com:8443`. */
  | { readonly kind: 'suffix'; readonly suffix: string };

/** Messages are predicates for the field's name. */
type PatternProblemReason = HostProblemReason | 'invalid_pattern';

/**
 * Parses a host pattern that a person typed (design section 5, Host binding record): an exact host, or `*.` before a suffix
 * with a dot. Case is ignored, internationalised names become A-labels. An IP address is accepted as an exact host in
 * canonical form, because naming it is an explicit choice. Either may have a port: `api.example.com:8443`.
 */
export function parseHostPattern(text: string): Result<HostPattern, Problem<PatternProblemReason>> {
  if (!text.includes('*')) {
    const host = normaliseHostOnPort(text);
    return host.ok ? ok({ kind: 'exact', host: host.value }) : host;
  }
  if (!text.startsWith('*.') || text.lastIndexOf('*') > 0) return invalidPattern(wildcardProblem(text));
  const suffix = normaliseHostOnPort(text.slice(2));
  if (!suffix.ok) return suffix;
  const name = nameOfHost(suffix.value);
  if (isIpLiteral(name)) return invalidPattern('has a wildcard over an IP address: write the exact address');
  if (name.includes('.')) return ok({ kind: 'suffix', suffix: `.${suffix.value}` });
  return invalidPattern(`covers all of ".${name}": name at least one more label, such as *.example.${suffix.value}`);
}

/** The pattern for storage and display: `host`, or `*.suffix`, with its port if it has one. */
export function formatHostPattern(pattern: HostPattern): string {
  return pattern.kind === 'exact' ? pattern.host : `*${pattern.suffix}`;
}

/** Whether the pattern covers a canonical host, at exactly its port (see `hostOnPort`). */
export function matchesHostPattern(pattern: HostPattern, host: string): boolean {
  if (pattern.kind === 'exact') return host === pattern.host;
  return host.length > pattern.suffix.length && host.endsWith(pattern.suffix);
}

/** Whether a stored pattern is this host, or a wildcard above it. A wildcard also covers every pattern of hosts below it. */
export function covers(pattern: string, host: string): boolean {
  return pattern === host || (pattern.startsWith('*.') && host.endsWith(pattern.slice(1)));
}

function wildcardProblem(text: string): string {
  if (text === '*') return 'covers every host: name the hosts that you mean';
  return 'has a "*" that is not one leading label: write "*." and a suffix, such as *.example.com';
}

function invalidPattern(problem: string): Result<never, Problem<PatternProblemReason>> {
  return err({ reason: 'invalid_pattern', message: problem });
}
