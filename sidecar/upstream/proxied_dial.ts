import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { dialThroughProxy } from '../../machine/connection/dial_through_proxy.ts';
import { refusal, type Refusal } from '../../shared/model/refusal.ts';
import { err, type Result } from '../../shared/model/result.ts';
import type { ProxyTarget, UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import type { Dialling } from './dialling.ts';

interface ProxiedDial {
  readonly proxy: UpstreamProxy;
  /** Whose address the target may be. */
  readonly host: string;
  readonly target: ProxyTarget;
  readonly secureContext: SecureContext;
  /** For everything, the TLS handshake with the target included. */
  readonly timeoutSeconds: number;
}

/** Dials through the proxy, and then lets `finish` use the socket within the time that is left. Refuses with `upstream_proxy_failed`. */
export function dialProxied<Connected>(
  { proxy, host, target, secureContext, timeoutSeconds }: ProxiedDial,
  finish: (socket: Socket, timeoutSeconds: number) => Dialling<Connected>,
): Dialling<Connected> {
  const began = performance.now();
  const first = dialThroughProxy({ proxy, target, secureContext, timeoutMs: timeoutSeconds * 1000 });
  let second: Dialling<Connected> | null = null;
  const connected = first.connected.then(async (dialled): Promise<Result<Connected, Refusal>> => {
    if (!dialled.ok) return err(refusal('upstream_proxy_failed', `${host} was not reached: ${dialled.error}`));
    second = finish(dialled.value, Math.max(0, timeoutSeconds - (performance.now() - began) / 1000));
    return second.connected;
  });
  return { connected, cancel: () => (second ?? first).cancel() };
}
