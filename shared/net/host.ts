import { err, ok, type Result } from '../model/result.ts';
import { hostOnPort, PLAIN_PORT } from './host_port.ts';
import { canonicalIpLiteral, isIpLiteral } from './ip_literal.ts';
import { findLookAlike } from './look_alike.ts';
import type { Problem } from '../model/problem.ts';

/** A host and, if written, a port. */
export interface Authority {
  /** Lower-case ASCII (A-labels) without a trailing dot, or the canonical IP literal; IPv6 in brackets. */
  readonly host: string;
  readonly port: number | null;
}

/** Messages are predicates for "the host" or the field's name. */
export type HostProblemReason = 'invalid_host' | 'invalid_port' | 'look_alike_host';

const MAX_HOST_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;
/** Letters, digits and hyphens (RFC 1123), and the underscore that real names have. */
const NAME = /^[a-z0-9._-]+$/;
const BRACKETED = /^\[[0-9a-f:.]+\]$/;

/**
 * Parses `host` or `host:port` from a CONNECT target, a Host header or an absolute-form target (RFC 3986 section 3.2, RFC
 * 9110 section 7.2). Strict: no userinfo, no percent-encoding, only ASCII, a port from 1 to 65535 without leading zeros. One
 * trailing dot of a name is dropped, so that both spellings are one host. An IP literal is returned in canonical form.
 */
export function parseAuthority(text: string): Result<Authority, Problem<HostProblemReason>> {
  const colon = text.startsWith('[') ? text.indexOf(':', text.indexOf(']')) : text.indexOf(':');
  const host = canonicalHost(colon < 0 ? text : text.slice(0, colon));
  if (!host.ok) return host;
  if (colon < 0) return ok({ host: host.value, port: null });
  const port = parsePort(text.slice(colon + 1));
  return port === null ? invalidPort() : ok({ host: host.value, port });
}

/**
 * The canonical form of a host that a person typed: internationalised names become A-labels (IDNA), letters lower case.
 * Look-alike characters are refused by name, because the credential would be bound to a host that only looks like the
 * intended one. An IP literal must be in canonical form.
 */
export function normaliseHost(text: string): Result<string, Problem<HostProblemReason>> {
  const problem = findTypingProblem(text);
  if (problem !== null) return invalidHost(problem);
  const name = text.normalize('NFC');
  const ascii = isAscii(name) ? name.toLowerCase() : urlHost(name);
  const lookAlike = isAscii(name) ? null : findLookAlike(name);
  if (lookAlike !== null) return err({ reason: 'look_alike_host', message: lookAlike + lookAlikeFix(ascii) });
  if (ascii === null) return invalidHost('is no valid internationalised name: write its ASCII form (xn--…)');
  const host = canonicalHost(ascii);
  return host.ok ? parseTypedName(host.value, ascii) : host;
}

/**
 * The canonical form of a host that a person typed, at a port of its own if one is written: see {@link hostOnPort}. `HOST:443`
 * is the host itself. Port 80 is refused, because nothing but plain HTTP is expected there.
 */
export function normaliseHostOnPort(text: string): Result<string, Problem<HostProblemReason>> {
  const parts = /^(\[[^\]]*\]|[^:[\]]*):([^:/@\s]*)$/.exec(text);
  const host = normaliseHost(parts?.[1] ?? text);
  if (!host.ok || parts === null) return host;
  const port = parsePort(parts[2] ?? '');
  if (port === null) return invalidPort();
  if (port !== PLAIN_PORT) return ok(hostOnPort(host.value, port));
  return err({ reason: 'invalid_port', message: 'has port 80, which is for plain http: use --plain-http HOST' });
}

function parsePort(text: string): number | null {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535 ? Number(text) : null;
}

function invalidPort(): Result<never, Problem<HostProblemReason>> {
  return err({ reason: 'invalid_port', message: 'is followed by a port that is not a number from 1 to 65535' });
}

/** Common inputs that are not a bare host. */
function findTypingProblem(text: string): string | null {
  if (text === '') return 'is empty: write a host such as api.example.com';
  if (text.includes('/')) return 'is a URL or has a path: write only the host, such as api.example.com';
  if (/\s/.test(text)) return 'has a space in it: remove it';
  if (text.includes('@')) return 'has a user name ("@") in it: write only the host';
  if (text.includes('*')) return 'has a "*" in it: write one exact host';
  if (text.startsWith('[')) return null;
  if (/:.*:/.test(text)) return 'looks like an IPv6 address without brackets: write it as [2001:db8::1]';
  return text.includes(':') ? 'has a port: write the host alone' : null;
}

function parseTypedName(host: string, ascii: string): Result<string, Problem<HostProblemReason>> {
  if (isIpLiteral(host)) {
    if (host === ascii) return ok(host);
    return invalidHost(`is another spelling of the address ${host}: write it that way`);
  }
  const badEnd = host.split('.').find((label) => label.startsWith('-') || label.endsWith('-'));
  if (badEnd !== undefined) return invalidHost(`has the label "${badEnd}", and no label begins or ends with "-"`);
  if (host.includes('xn--') && urlHost(host) !== host) {
    return invalidHost('has an "xn--" label that encodes no valid name: check its spelling');
  }
  return ok(host);
}

function lookAlikeFix(ascii: string | null): string {
  const fix = ': type the host anew';
  return ascii === null ? fix : `${fix}, or write ${ascii} if that host is really meant`;
}

/** The canonical form of a host that a program wrote: see {@link Authority}. */
export function canonicalHost(text: string): Result<string, Problem<HostProblemReason>> {
  const lower = text.toLowerCase();
  if (lower === '') return invalidHost('is empty');
  if (!NAME.test(lower) && !BRACKETED.test(lower)) {
    return invalidHost('has a character that no host name may have: use letters, digits, "-" and "."');
  }
  if (!isIpLiteral(lower)) return canonicalName(lower.endsWith('.') ? lower.slice(0, -1) : lower);
  const address = canonicalIpLiteral(lower);
  return address === null ? invalidHost('looks like an IP address but is none') : ok(address);
}

function canonicalName(name: string): Result<string, Problem<HostProblemReason>> {
  if (name.length > MAX_HOST_LENGTH) return invalidHost(`is longer than ${MAX_HOST_LENGTH} characters`);
  for (const label of name.split('.')) {
    if (label === '') return invalidHost('has an empty label: remove the extra "."');
    if (label.length > MAX_LABEL_LENGTH) return invalidHost(`has a label longer than ${MAX_LABEL_LENGTH} characters`);
  }
  return ok(name);
}

/** The host as in a URL (IDNA to ASCII); null if invalid. */
function urlHost(name: string): string | null {
  try {
    return new URL(`https://${name}/`).hostname;
  } catch {
    return null;
  }
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0x7f) return false;
  return true;
}

function invalidHost(problem: string): Result<never, Problem<HostProblemReason>> {
  return err({ reason: 'invalid_host', message: problem });
}

/** Whether it is a name of this machine (RFC 6761, section 6.3), or a pattern of such names. */
export function isLocalhost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}
