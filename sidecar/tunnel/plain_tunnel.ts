import type { Refusal } from '../../shared/model/refusal.ts';
import { ok, type Result } from '../../shared/model/result.ts';
import type { Admission } from '../../shared/net/connection_gate.ts';
import { parseRequestHead, skipEmptyLine } from '../../shared/net/http/http1_head.ts';
import { PLAIN_PORT } from '../../shared/net/host_port.ts';
import { parsePlainTarget } from '../../shared/net/plain_target.ts';
import type { SocketConnection } from '../../machine/connection/connection.ts';
import type { LiveSession } from '../ports.ts';
import { authenticate } from './authenticate.ts';
import { enterTunnel } from './enter_tunnel.ts';
import { isPlainPublicOnly } from './sealed_reach.ts';
import { serve } from './serve.ts';
import type { TunnelPorts } from './tunnel_ports.ts';

/** The session and the host of a plain request that is allowed. */
interface PlainTunnel {
  readonly session: LiveSession;
  readonly host: string;
  readonly admission: Admission;
}

/**
 * Serves plain requests, of which the first was put back: each is an exchange like one in a tunnel, never with a credential.
 * A client may send the next request for another host, or by another session, over the same connection: then it is put back
 * too, and the value is true, so that it is authenticated and checked as a first one is. Refuses with `too_many_tunnels`.
 */
export async function servePlainHttp(
  client: SocketConnection,
  { session, host, admission }: PlainTunnel,
  ports: TunnelPorts,
): Promise<Result<boolean, Refusal>> {
  const leave = enterTunnel(session, [client]);
  if (!leave.ok) return leave;
  let isFirst = true;
  const lanes = ports.openPlainLanes(host, () => isPlainPublicOnly(session, host));
  const served = {
    sessionId: session.id,
    host,
    sni: null,
    plain: true,
    // No request may name another host, and no upgrade but a WebSocket's is asked for: after it, hosts could be named unread.
    limited: true,
    login: session.login ?? null,
    choice: session.choice ?? null,
    credentialsId: session.credentialsId ?? session.id,
    lanes,
    onRequest: () => admission.markServed(),
    // The first one was checked before: were it put back again, this would never end.
    isAnothers: (head: Buffer) => {
      const isChecked = isFirst;
      isFirst = false;
      return !isChecked && !isFor(head, session, host, ports);
    },
  };
  try {
    return ok(await serve(client, served, ports));
  } finally {
    lanes.close();
    leave.value();
  }
}

/** False for a request that has to be checked anew. One that cannot be read is refused as this host's. */
function isFor(bytes: Buffer, session: LiveSession, host: string, { sessions, exchange }: TunnelPorts): boolean {
  const head = parseRequestHead(bytes.toString('latin1', skipEmptyLine(bytes, 0)), exchange.limits);
  if (!head.ok) return true;
  const target = parsePlainTarget(head.value.target, head.value.method);
  if (target?.ok !== true || target.value.host !== host || target.value.port !== PLAIN_PORT) return false;
  const user = authenticate(head.value.fields, sessions);
  return user.ok && user.value === session;
}
