import { isLocalhost } from './host.ts';
import { isIpLiteral } from './ip_literal.ts';
import { covers, formatHostPattern, parseHostPattern } from './host_pattern.ts';
import { HTTPS_PORT, portOfHost } from './host_port.ts';
import { err, ok, type Result } from '../model/result.ts';

/**
 * A host, or a pattern such as `*.example.com`, that is not to be intercepted, in canonical form. An address is refused: a
 * TLS client names no address, and a tunnel needs the name. So is this machine, which programs reach without the proxy.
 * Messages are predicates for the field's name.
 */
export function parseTunnelHost(text: string): Result<string, string> {
  const pattern = parseHostPattern(text);
  if (!pattern.ok) return err(`is ${JSON.stringify(text)}, which ${pattern.error.message}`);
  const host = formatHostPattern(pattern.value);
  if (portOfHost(host) !== HTTPS_PORT)
    return err(`is ${JSON.stringify(text)}, which has a port: other ports than 443 are always intercepted`);
  if (isLocalhost(host)) return err(`is ${host}, this machine: requests to it do not use the proxy, so leave it out`);
  if (!isIpLiteral(host)) return ok(host);
  return err(
    `is ${host}, an IP address: give a host name, because the proxy compares it with the name in the TLS handshake`,
  );
}

/**
 * The pattern of a binding that keeps every host of a pattern intercepted. Null if there is none: of a wildcard, single hosts
 * with a binding are intercepted nevertheless.
 */
export function findInterceptor(pattern: string, bound: readonly string[]): string | null {
  return bound.find((each) => covers(each, pattern)) ?? null;
}
