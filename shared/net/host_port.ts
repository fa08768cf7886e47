/** The port of `https://` URLs. */
export const HTTPS_PORT = 443;
/** The port of `http://` URLs, the only one that plain requests are forwarded to. */
export const PLAIN_PORT = 80;

/**
 * Wherever svc says host, it means a name or address at one port, as one text: the canonical name alone for port 443, else
 * `NAME:PORT`. So two ports of one name are two hosts to every comparison, map and pattern (decision 0077).
 */
export function hostOnPort(name: string, port: number): string {
  return port === HTTPS_PORT ? name : `${name}:${port}`;
}

/** The name or address of a host, as its certificate has it; IPv6 in brackets. Also of a pattern. */
export function nameOfHost(host: string): string {
  return host.slice(0, host.length - portSuffix(host).length);
}

/** The port that a host is reached at. Also of a pattern. */
export function portOfHost(host: string): number {
  const suffix = portSuffix(host);
  return suffix === '' ? HTTPS_PORT : Number(suffix.slice(1));
}

/** Empty for a name, an address and an IPv6 address, with or without brackets. */
function portSuffix(host: string): string {
  return /^(?:\[[^\]]*\]|[^:[\]]*)(:[1-9]\d{0,4})$/.exec(host)?.[1] ?? '';
}
