import { operationHosts } from '../model/connector.ts';
import type { CredentialRef } from '../model/host_binding.ts';
import { matchesHostPattern, parseHostPattern, type HostPattern } from '../net/host_pattern.ts';
import type { Policy } from './resolve.ts';

/** The hosts that a session may reach besides bound ones and those of connectors with a credential (decision 0062). */
export interface AllowedHosts {
  readonly patterns: readonly HostPattern[];
  /** Exact hosts that the person who started the session typed. Only these may lead to private addresses. */
  readonly named: ReadonlySet<string>;
}

/** Compiles stored texts. Named hosts are allowed too; a pattern that is not valid allows nothing. */
export function allowedHosts(patterns: readonly string[], named: readonly string[]): AllowedHosts {
  const parsed = [...patterns, ...named].map(parseHostPattern);
  return { patterns: parsed.flatMap((each) => (each.ok ? [each.value] : [])), named: new Set(named) };
}

/** Whether the list itself has a canonical host, whatever the policy says. */
export function allowsHost({ patterns }: AllowedHosts, host: string): boolean {
  return patterns.some((pattern) => matchesHostPattern(pattern, host));
}

/**
 * Whether the policy lets a canonical host be reached: a binding covers it, or a connector whose credential is stored has it.
 * A connector whose credential is not stored opens nothing.
 */
export function policyAdmitsHost(policy: Policy, isStored: (ref: CredentialRef) => boolean, host: string): boolean {
  if (policy.bindingsFor(host).length > 0) return true;
  if (!policy.connectors.hosts.has(host)) return false;
  return policy.installed.some(
    ({ spec, credential }) =>
      isStored(credential) && spec.operations.some((operation) => operationHosts(spec, operation).includes(host)),
  );
}
