import type { Result } from '../model/result.ts';
import { ok } from '../model/result.ts';
import type { HostError } from './host.ts';

/** What a host binding is keyed on: one host, or every host below a suffix (any depth, never the suffix itself). */
export type HostPattern =
  | { readonly kind: 'exact'; readonly host: string }
  | { readonly kind: 'suffix'; readonly suffix: string };

export interface HostPatternError {
  readonly reason: HostError['reason'] | 'invalid_pattern';
  readonly message: string;
}

export function parseHostPattern(text: string): Result<HostPattern, HostPatternError> {
  return ok({ kind: 'exact', host: text });
}

/** The pattern as it is stored and shown: `host`, or `*.suffix`. */
export function formatHostPattern(pattern: HostPattern): string {
  return pattern.kind === 'exact' ? pattern.host : `*${pattern.suffix}`;
}

/** Whether a canonical host (see `Authority.host`) is one the pattern names. */
export function matchesHostPattern(pattern: HostPattern, host: string): boolean {
  if (pattern.kind === 'exact') return host === pattern.host;
  return host.length > pattern.suffix.length && host.endsWith(pattern.suffix);
}
