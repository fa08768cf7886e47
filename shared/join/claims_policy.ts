import type { FieldProblem } from '../model/problem.ts';
import { err, ok, type Result } from '../model/result.ts';
import { type ClaimPattern, type ClaimRules, readClaimPattern } from './claim_pattern.ts';
import { strangerProblem } from './shared_issuers.ts';

/** Claims that the policy checks by itself. */
const CHECKED_OTHERWISE = new Set(['iss', 'aud', 'exp', 'nbf', 'iat', 'jti']);

/**
 * What is wrong with rules; null if nothing is. Refuses rules that jobs of strangers could match: none, an empty prefix, a
 * wildcard in the middle, and at an issuer that others use too, rules that do not say whose the job is.
 */
export function claimRulesProblem(issuer: string, rules: ClaimRules): FieldProblem | null {
  const entries = Object.entries(rules);
  if (entries.length === 0) return { field: 'claims', message: 'has no rule: name at least one claim, such as "sub"' };
  for (const [claim, value] of entries) {
    const message = ruleProblem(claim, value);
    if (message !== null) return { field: `claims.${claim}`, message };
  }
  const message = strangerProblem(issuer, rules);
  return message === null ? null : { field: 'claims', message };
}

function ruleProblem(claim: string, value: string): string | null {
  if (CHECKED_OTHERWISE.has(claim)) return 'is checked for every token: name a claim that says which job it is';
  const { fixed } = readClaimPattern(value);
  if (fixed === '') return 'matches every value: write the value, or the beginning of it followed by *';
  return fixed.includes('*') ? 'has a * that is not its last character: only the end of a value may vary' : null;
}

/** The claims of a verified token. */
export type Claims = Readonly<Record<string, unknown>>;

/** Whether the claims satisfy every rule; refuses with the names of those that differ, never with a value. */
export function matchClaims(rules: ClaimRules, claims: Claims): Result<void, readonly string[]> {
  const differing = Object.entries(rules)
    .filter(([claim, value]) => !matches(readClaimPattern(value), findClaim(claims, claim)))
    .map(([claim]) => claim);
  return differing.length === 0 ? ok(undefined) : err(differing);
}

function matches({ fixed, isPrefix }: ClaimPattern, claim: unknown): boolean {
  const text = typeof claim === 'number' || typeof claim === 'boolean' ? String(claim) : claim;
  if (typeof text !== 'string') return false;
  return isPrefix ? text.startsWith(fixed) : text === fixed;
}

/** A claim by its name, or by its path through nested objects. A name may contain slashes itself, so the longest comes first. */
export function findClaim(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  const slash = path.indexOf('/');
  const name = path.slice(0, slash);
  if (slash < 0 || !Object.hasOwn(claims, name)) return undefined;
  const inner = claims[name];
  return isObject(inner) ? findClaim(inner, path.slice(slash + 1)) : undefined;
}

function isObject(value: unknown): value is Claims {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
