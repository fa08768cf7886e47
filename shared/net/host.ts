import { err, ok, type Result } from '../model/result.ts';
import { canonicalIpLiteral, isIpLiteral } from './ip_literal.ts';
import { findLookAlike } from './look_alike.ts';

/** A host and, when one was written, a port. */
export interface Authority {
  /** Lower-case ASCII (A-labels) without a trailing dot, or the canonical IP literal; IPv6 in brackets. */
  readonly host: string;
  readonly port: number | null;
}

export interface HostError {
  readonly reason: 'invalid_host' | 'invalid_port' | 'look_alike_host';
  /** Names the problem and the fix. */
  readonly message: string;
}

export const MAX_HOST_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;
const LABEL = /^[a-z0-9_-]+$/;

/**
 * Reads `host` or `host:port` as it stands in a CONNECT target, a Host header or an absolute-form target (RFC 3986
 * section 3.2, RFC 9110 section 7.2). Strict: no userinfo, no percent-encoding, nothing outside ASCII, a port of 1 to
 * 65535 without leading zeros. One trailing dot of a name is dropped, so that both spellings are one host.
 */
export function parseAuthority(text: string): Result<Authority, HostError> {
  const parts = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/s.exec(text);
  if (parts === null) return invalidHost(`must be a host name or host:port, with an IPv6 address in brackets`);
  const host = asciiHost(parts[1] ?? '');
  if (!host.ok) return host;
  if (parts[2] === undefined) return ok({ host: host.value, port: null });
  const port = parsePort(parts[2]);
  return port.ok ? ok({ host: host.value, port: port.value }) : port;
}

/**
 * The canonical form of a host that a person typed: internationalised names become A-labels (IDNA), letters lower case.
 * Characters that look like others are refused by name, because a credential would be bound to a host that only looks
 * like the one meant.
 */
export function normaliseHost(text: string): Result<string, HostError> {
  const odd = typedHostProblem(text);
  if (odd !== null) return err(odd);
  const name = text.normalize('NFC');
  // oxlint-disable-next-line no-control-regex
  if (!/[^\0-\x7f]/.test(name)) return typedAsciiHost(name);
  const ascii = toAscii(name);
  if (ascii === null) return invalidHost('has a character that no host name may have; write the ASCII name');
  const lookAlike = findLookAlike(name);
  if (lookAlike === null) return typedAsciiHost(ascii);
  return err({
    reason: 'look_alike_host',
    message: `${lookAlike}; type the host anew, or write ${ascii} if it is really meant`,
  });
}

function typedHostProblem(text: string): HostError | null {
  return text === '' ? { reason: 'invalid_host', message: 'is empty' } : null;
}

function typedAsciiHost(text: string): Result<string, HostError> {
  return asciiHost(text);
}

function toAscii(name: string): string | null {
  try {
    return new URL(`https://${name}/`).hostname;
  } catch {
    return null;
  }
}

function asciiHost(text: string): Result<string, HostError> {
  const lower = text.toLowerCase();
  if (isIpLiteral(lower)) return ok(canonicalIpLiteral(lower) ?? lower);
  return ok(lower.endsWith('.') ? lower.slice(0, -1) : lower);
}

function parsePort(text: string): Result<number, HostError> {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65535) return ok(port);
  return err({ reason: 'invalid_port', message: 'the port must be a number from 1 to 65535' });
}

function invalidHost(problem: string): Result<never, HostError> {
  return err({ reason: 'invalid_host', message: `the host ${problem}` });
}
void LABEL;
void MAX_LABEL_LENGTH;
