import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  connectHead,
  ConnectReply,
  noReplyInTime,
  type ProxyTarget,
  type UpstreamProxy,
} from '../../shared/net/upstream_proxy.ts';

/** No connection through the upstream proxy. The message is a sentence without an address or a credential of the proxy. */
export class ProxyFailed extends Error {
  override readonly name = 'ProxyFailed';
}

/**
 * A socket to the target through the proxy. Throws {@link ProxyFailed}; also when the signal, which every call has, is aborted.
 * `roots` replace the default ones for an https proxy.
 */
export function dialProxy(
  proxy: UpstreamProxy,
  target: ProxyTarget,
  { signal, roots }: { readonly signal: AbortSignal; readonly roots: readonly string[] | undefined },
): Promise<Socket> {
  const socket = connectTo(proxy, roots);
  const reply = new ConnectReply(proxy);
  return new Promise((resolve, reject) => {
    let isConnected = false;
    let isOpen = false;
    const fail = (message: string): void => {
      if (isOpen) return;
      socket.destroy();
      reject(new ProxyFailed(message));
    };
    const late = (): void => fail(noReplyInTime(isConnected));
    const onData = (chunk: Buffer): void => {
      const opened = reply.read(chunk);
      if (opened === null) return;
      if (!opened.ok) return fail(opened.error);
      isOpen = true;
      signal.removeEventListener('abort', late);
      socket.off('data', onData);
      socket.pause();
      if (opened.value.rest.length > 0) socket.unshift(opened.value.rest);
      resolve(socket);
    };
    signal.addEventListener('abort', late, { once: true });
    if (signal.aborted) late();
    // Never removed: an error event without a listener would end the process.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      fail(`the upstream proxy cannot be reached (${error.code ?? 'unknown'})`);
    });
    for (const name of ['end', 'close']) socket.once(name, () => fail('the upstream proxy closed the connection'));
    socket.once(proxy.isSecure ? 'secureConnect' : 'connect', () => {
      isConnected = true;
      socket.write(connectHead(proxy, target), 'latin1');
    });
    socket.on('data', onData);
  });
}

function connectTo({ isSecure, host, port }: UpstreamProxy, roots: readonly string[] | undefined): Socket {
  const name = host.replace(/^\[(.*)\]$/, '$1');
  if (!isSecure) return connectTcp({ host: name, port });
  const servername = isIP(name) === 0 ? name : '';
  const trust = roots === undefined ? {} : { ca: [...roots] };
  return connectTls({ host: name, port, servername, ALPNProtocols: ['http/1.1'], minVersion: 'TLSv1.2', ...trust });
}
