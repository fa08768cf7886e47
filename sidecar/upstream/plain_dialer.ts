import { connect, isIP, type Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Connection } from '../../machine/connection/connection.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { PLAIN_PORT } from '../../shared/net/host_port.ts';
import {
  bracketed,
  createDeniedAddresses,
  createMachineAddresses,
  DeniedAddress,
  type DeniedAddresses,
  type Dialer,
  type DialerOptions,
  lookupWithout,
  proxyFor,
  verifyPeer,
} from './dialer.ts';
import type { Dialling } from './dialling.ts';
import { dialProxied } from './proxied_dial.ts';

/** What a connection without TLS of ours is for. */
interface PlainUse {
  readonly port: number;
  /** The key of the address that stands for a host. */
  readonly pinnedAs: (host: string) => string;
  /** What does not lead to this machine. */
  readonly sent: string;
  /** The option that names a host in a sealed session. */
  readonly namedBy: string;
}

const HTTP: PlainUse = {
  port: PLAIN_PORT,
  pinnedAs: (host) => `http://${host}`,
  sent: 'goes over plain http',
  namedBy: '--plain-http',
};
/** The client does its own TLS handshake with the host (decision 0074). */
export const CARRIED: PlainUse = { port: 443, pinnedAs: (host) => host, sent: 'is carried unread', namedBy: '--allow' };

/**
 * Opens connections without TLS to a host, by the rules for addresses that connections with TLS have; to port 80 unless it is
 * for another use. A company's proxy is asked with CONNECT, as for any other host: so its reply is never taken for the host's,
 * and its password is never beside what an agent sends.
 */
export function createPlainDialer(options: DialerOptions, use: PlainUse = HTTP): Pick<Dialer, 'dial'> {
  // Only for a proxy that is itself reached over TLS.
  let context: SecureContext | null = null;
  return {
    dial(host, publicOnly = false) {
      const pinned = options.pinned.get(use.pinnedAs(host));
      const checked = createDeniedAddresses(options.denyPrivate, publicOnly && pinned === undefined);
      const denied = checked ?? (pinned === undefined ? notThisMachine(use) : null);
      const address = pinned?.address ?? host.replace(/^\[(.*)\]$/, '$1');
      const port = pinned?.port ?? use.port;
      const refuse = (why: Refusal): Result<never, Refusal> => err(publicOnly ? notNamed(why, host, use) : why);
      if (denied !== null && isIP(address) !== 0 && denied.has(address)) return failed(refuse(denied.refusalOf(host)));
      const proxy = proxyFor(options, host, port, address);
      if (proxy === null) {
        const socket = connect({
          host: address,
          port,
          allowHalfOpen: true,
          noDelay: true,
          ...(denied === null ? {} : { lookup: lookupWithout(denied) }),
        });
        const connected = verifyPeer(socket, options.timeoutSeconds, 'connect').then((error) => {
          if (error === null) return ok(new Connection(socket));
          if (denied !== null && error instanceof DeniedAddress) return refuse(denied.refusalOf(host));
          const code = error.code ?? 'unknown';
          return err(refusal('upstream_unreachable', `${host} could not be reached (${code})`));
        });
        return { connected, cancel: () => void socket.destroy() };
      }
      if (checked !== null && isIP(address) === 0 && !proxy.isPublicOnly) {
        return failed(refuse(checked.uncheckedRefusalOf(host)));
      }
      const { timeoutSeconds } = options;
      const target = { host: bracketed(address), port };
      const secureContext = (context ??= createSecureContext({ ca: [...options.roots], minVersion: 'TLSv1.2' }));
      return dialProxied({ proxy, host, target, secureContext, timeoutSeconds }, opened);
    },
  };
}

function failed(why: Result<never, Refusal>): Dialling {
  return { connected: Promise.resolve(why), cancel: () => undefined };
}

/** The connection that the proxy has opened. */
function opened(socket: Socket): Dialling {
  const connection = new Connection(socket);
  socket.resume();
  return { connected: Promise.resolve(ok(connection)), cancel: () => void socket.destroy() };
}

function notThisMachine({ sent, pinnedAs }: PlainUse): Pick<DeniedAddresses, 'has' | 'refusalOf'> {
  const refusalOf = (host: string): Refusal => {
    const message = `${host} leads to this machine or its link, where nothing ${sent}; if that is meant, start svc with --resolve ${pinnedAs(host)}:ADDRESS`;
    return refusal('egress_address_not_allowed', message);
  };
  return { ...createMachineAddresses(), refusalOf };
}

/** The ways to name a host that the messages of other connections tell do not count here. */
function notNamed(why: Refusal, host: string, { namedBy }: PlainUse): Refusal {
  if (why.reason !== 'egress_address_not_allowed') return why;
  const [what] = why.message.split(';');
  return { ...why, message: `${what}; start the session with ${namedBy} ${host}` };
}
