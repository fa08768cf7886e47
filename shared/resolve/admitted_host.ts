import { connectorHosts, operationHosts } from '../model/connector.ts';
import type { CredentialRef } from '../model/host_binding.ts';
import { err, ok, type Result } from '../model/result.ts';
import { formatHostPattern, matchesHostPattern, parseHostPattern, type HostPattern } from '../net/host_pattern.ts';
import { HTTPS_PORT, PLAIN_PORT, portOfHost } from '../net/host_port.ts';
import { isRefusedIpLiteral } from '../net/ip_literal.ts';
import type { Policy } from './resolve.ts';

/** The hosts that a session may reach besides bound ones and those of connectors with a credential (decision 0062). */
export interface AllowedHosts {
  readonly patterns: readonly HostPattern[];
}

/** A host or a pattern such as `*.example.com`, in canonical form; messages are predicates for the field's name. */
export function parseAllowedHost(text: string): Result<string, string> {
  const pattern = parseHostPattern(text);
  if (!pattern.ok) return err(`is ${JSON.stringify(text)}, which ${pattern.error.message}`);
  const host = formatHostPattern(pattern.value);
  if (!isRefusedIpLiteral(host)) return ok(host);
  return err(`is ${host}, a private address, which no request without a credential reaches: give a host name`);
}

/** The same for plain HTTP, which goes to one port only. */
export function parsePlainHost(text: string): Result<string, string> {
  const host = parseAllowedHost(text);
  if (!host.ok || portOfHost(host.value) === HTTPS_PORT) return host;
  return err(`is ${JSON.stringify(text)}, which has a port: plain http goes to port ${PLAIN_PORT} only`);
}

/** Compiles stored texts. Named hosts are allowed too; a pattern that is not valid allows nothing. */
export function allowedHosts(patterns: readonly string[], named: readonly string[]): AllowedHosts {
  const parsed = [...patterns, ...named].map(parseHostPattern);
  return { patterns: parsed.flatMap((each) => (each.ok ? [each.value] : [])) };
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
  return policy.bindingsFor(host).length > 0 || isConnectorHost(policy, isStored, host);
}

/**
 * The hosts and patterns that a session with this list may reach now: those of the list, of the bindings, and of connectors whose
 * credential is stored. Sorted, each once.
 */
export function listAdmitted(
  { connectors, installed }: Pick<Policy, 'connectors' | 'installed'>,
  bindings: readonly { readonly host: string }[],
  isStored: (ref: CredentialRef) => boolean,
  listed: readonly string[],
): readonly string[] {
  const stored = installed.filter(({ credential }) => isStored(credential));
  const ofConnectors = stored.flatMap(({ spec }) => connectorHosts(spec)).filter((host) => connectors.hosts.has(host));
  return [...new Set([...listed, ...bindings.map(({ host }) => host), ...ofConnectors])].toSorted();
}

/** Whether a connector whose credential is stored has this host. */
export function isConnectorHost(policy: Policy, isStored: (ref: CredentialRef) => boolean, host: string): boolean {
  if (!policy.connectors.hosts.has(host)) return false;
  return policy.installed.some(
    ({ spec, credential }) =>
      isStored(credential) && spec.operations.some((operation) => operationHosts(spec, operation).includes(host)),
  );
}
