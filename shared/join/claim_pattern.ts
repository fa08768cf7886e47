/**
 * What the token of a job must say, by claim. A value is exact; with `*` as its last character it is a prefix. A nested
 * claim is named by its path: `kubernetes.io/namespace`.
 */
export type ClaimRules = Readonly<Record<string, string>>;

/** A rule's fixed text, and whether more may follow it. */
export interface ClaimPattern {
  readonly fixed: string;
  readonly isPrefix: boolean;
}

/** The pattern of a rule's value. Only its last character may be `*`, because a wildcard in the middle matches what others choose. */
export function readClaimPattern(value: string): ClaimPattern {
  return value.endsWith('*') ? { fixed: value.slice(0, -1), isPrefix: true } : { fixed: value, isPrefix: false };
}
