import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type SecureContext } from 'node:tls';
import { errorCode } from '../../shared/model/error_code.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import {
  connectHead,
  ConnectReply,
  noReplyInTime,
  type ProxyTarget,
  type UpstreamProxy,
} from '../../shared/net/upstream_proxy.ts';

/** A pending connection through an upstream proxy. */
export interface ProxyDialling {
  /** The socket behaves like one to the target itself. The error is a sentence without an address or a credential of the proxy. */
  readonly connected: Promise<Result<Socket, string>>;
  readonly cancel: () => void;
}

interface ProxyDial {
  readonly proxy: UpstreamProxy;
  readonly target: ProxyTarget;
  /** The roots for an https proxy's own certificate. */
  readonly secureContext: SecureContext;
  /** For everything up to the end of the proxy's reply. */
  readonly timeoutMs: number;
}

/** Asks the proxy for a tunnel to the target. A failure of any kind closes the connection to the proxy. */
export function dialThroughProxy({ proxy, target, secureContext, timeoutMs }: ProxyDial): ProxyDialling {
  const socket = connectTo(proxy, secureContext);
  socket.setNoDelay(true);
  const connected = new Promise<Result<Socket, string>>((resolve) => {
    let isConnected = false;
    const timer = setTimeout(() => settle(err(noReplyInTime(isConnected))), timeoutMs);
    const reply = new ConnectReply(proxy);
    let isSettled = false;
    const settle = (result: Result<Socket, string>): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      socket.off('data', onData);
      if (!result.ok) socket.destroy();
      resolve(result);
    };
    const onData = (chunk: Buffer): void => {
      const opened = reply.read(chunk);
      if (opened === null) return;
      if (!opened.ok) return settle(opened);
      socket.pause();
      settle(ok(socket));
      // The bytes after the head are the target's.
      if (opened.value.rest.length > 0) socket.unshift(opened.value.rest);
    };
    // Never removed: an unhandled error event of a socket ends the process.
    socket.on('error', (error) => settle(err(unreachable(error))));
    socket.once('close', () => settle(err('the upstream proxy closed the connection')));
    socket.once('end', () => settle(err('the upstream proxy closed the connection')));
    socket.once(proxy.isSecure ? 'secureConnect' : 'connect', () => {
      isConnected = true;
      socket.write(connectHead(proxy, target), 'latin1');
    });
    socket.on('data', onData);
  });
  return { connected, cancel: () => void socket.destroy() };
}

function connectTo({ isSecure, host, port }: UpstreamProxy, secureContext: SecureContext): Socket {
  const name = host.replace(/^\[(.*)\]$/, '$1');
  if (!isSecure) return connectTcp({ host: name, port, allowHalfOpen: true });
  const connection: ConnectionOptions & { allowHalfOpen: true } = {
    host: name,
    port,
    servername: isIP(name) === 0 ? name : '',
    ALPNProtocols: ['http/1.1'],
    secureContext,
    allowHalfOpen: true,
  };
  return connectTls(connection);
}

function unreachable(error: Error): string {
  const code = errorCode(error);
  return `the upstream proxy cannot be reached${code === '' ? '' : ` (${code})`}`;
}
