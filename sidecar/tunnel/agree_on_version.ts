import { type ClientHello, HTTP_1_1, HTTP_2, readClientHello } from '../../shared/net/client_hello.ts';
import { nameOfHost } from '../../shared/net/host_port.ts';
import { isRefusedIpLiteral } from '../../shared/net/ip_literal.ts';
import { policyAdmitsHost } from '../../shared/resolve/admitted_host.ts';
import type { SocketConnection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';
import type { AgreedUpstream, LiveSession } from '../ports.ts';
import type { ExchangePorts } from '../exchange/exchange_ports.ts';
import { isPublicOnly } from './sealed_reach.ts';
import type { TunnelPorts } from './tunnel_ports.ts';

/**
 * Agrees on the version that a tunnel speaks on both sides: reads what the client offers, before either handshake, and lets
 * the upstream choose (docs/decisions/0070). Nothing is read from the client that its handshake does not read again. A client
 * that offers no HTTP/2 gets HTTP/1.1, and its upstream is dialled by its first request. So is the upstream of a host with a client
 * certificate: there a client that offers both speaks the version of the certificate's record.
 */
export async function agreeOnVersion(
  client: SocketConnection,
  session: LiveSession,
  host: string,
  ports: TunnelPorts,
): Promise<AgreedUpstream> {
  const hello = await peekClientHello(client, ports.exchange.limits.connectTimeoutSeconds);
  return ports.openUpstream({
    session,
    host,
    isPublicOnly: () => isPublicOnly(session, host, ports.exchange),
    // The answer to the self-test is one of HTTP/1.1.
    offered: session.selfTest === true ? [] : offeredVersions(hello, host),
    mayDial: mayDial(host, ports.exchange),
    prefersHttp2: prefersHttp2(host, ports.exchange),
    onGone: (listener) => client.onClosed(listener),
  });
}

/** A client that names another server in its handshake is not offered a version in which that could be any request's. */
function offeredVersions(hello: ClientHello | null, host: string): readonly string[] {
  const offered = (hello?.protocols ?? []).filter((protocol) => SPOKEN.has(protocol));
  const serverName = hello?.serverName ?? null;
  const isSame = serverName === null || serverName.toLowerCase() === nameOfHost(host);
  return isSame || !offered.includes(HTTP_1_1) ? offered : [HTTP_1_1];
}

const SPOKEN: ReadonlySet<string> = new Set(speaksHttp2(process.versions.node) ? [HTTP_1_1, HTTP_2] : [HTTP_1_1]);

/** Only from these versions on does Node keep the order and the duplicates of header fields; older ones speak HTTP/1.1. */
export function speaksHttp2(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 25 || (major === 25 && minor >= 7) || (major === 24 && minor >= 15);
}

/** Whether a request of the tunnel could be forwarded at all; the dial itself checks the addresses. */
function mayDial(host: string, { policy, audit, credentials }: ExchangePorts): boolean {
  const current = policy.current();
  if (!current.ok || audit.exhausted) return false;
  // The handshake with a client certificate follows the decision about a request, and so does every dial of its host.
  if (current.value.certificateFor(host) !== null) return false;
  return !isRefusedIpLiteral(host) || policyAdmitsHost(current.value, (ref) => credentials.isStored(ref), host);
}

/** Of a host that is not asked, because it has a client certificate. */
function prefersHttp2(host: string, { policy }: ExchangePorts): boolean {
  const current = policy.current();
  return current.ok && current.value.certificateFor(host)?.http2 === true;
}

/** Reads the client's hello and puts it back; null if there is none that can be read. A client that ends before is dropped. */
export async function peekClientHello(client: SocketConnection, timeoutSeconds: number): Promise<ClientHello | null> {
  const timer = setTimeout(() => client.destroy(), timeoutSeconds * 1000);
  try {
    const held: Buffer[] = [];
    for (let bytes = 0, needed = 1; ;) {
      const chunk = client.take() ?? (await client.nextChunk());
      if (chunk === null) break;
      held.push(chunk);
      bytes += chunk.length;
      if (bytes < needed) continue;
      const whole = Buffer.concat(held.splice(0));
      const reading = readClientHello(whole);
      if (reading.kind !== 'incomplete') {
        client.putBack(whole);
        return reading.kind === 'hello' ? reading.hello : null;
      }
      held.push(whole);
      needed = reading.needs;
    }
  } catch (error) {
    if (!(error instanceof ConnectionLost)) throw error;
  } finally {
    clearTimeout(timer);
  }
  client.destroy();
  return null;
}
