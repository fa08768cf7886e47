import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { ok } from '../../shared/model/result.ts';
import type { AgreedUpstream, WantedUpstream } from '../ports.ts';
import type { Dialer } from './dialer.ts';
import { HTTP_1_1, HTTP_2 } from '../../shared/net/client_hello.ts';
import { TunnelLanes } from './lanes.ts';
import { SessionLanes } from './session_lanes.ts';
import { UpstreamSession } from './upstream_session.ts';

/** How long a client that also speaks HTTP/1.1 waits for its upstream's choice: its handshake has a time limit too. */
const CHOICE_WITHIN_MS = 5000;

/**
 * The upstream connections of a new tunnel. For a client that offers HTTP/2 the upstream is dialled at once, because it chooses
 * the version. If that fails, the first request is answered with the reason. An upstream that does not choose in time, and
 * every other one, is dialled by the first request.
 */
export async function openUpstream(dialer: Dialer, wanted: WantedUpstream): Promise<AgreedUpstream> {
  const { offered, host, isPublicOnly, mayDial } = wanted;
  if (!mayDial || !offered.includes(HTTP_2)) return { ...lanesOf(dialer, wanted, null), isDialled: false };
  const dialling = dialer.dialOffering(offered, host, isPublicOnly());
  const stopWatching = wanted.onGone(dialling.cancel);
  const isPatient = !offered.includes(HTTP_1_1);
  const dialled = await (isPatient ? dialling.connected : inTime(dialling.connected));
  stopWatching();
  if (dialled === null) dialling.cancel();
  if (dialled?.ok !== true) return { ...lanesOf(dialer, wanted, dialled), isDialled: true };
  const { value } = dialled;
  return value instanceof UpstreamSession
    ? { protocol: HTTP_2, isDialled: true, lanes: new SessionLanes(dialer, host, isPublicOnly, ok(value)) }
    : { protocol: HTTP_1_1, isDialled: true, lanes: new TunnelLanes(dialer, host, isPublicOnly, ok(value)) };
}

/** Lanes that dial with the first request, for the version that most upstreams speak and the client offers. */
function lanesOf(
  dialer: Dialer,
  { offered, host, isPublicOnly }: WantedUpstream,
  failed: Result<never, Refusal> | null,
): Omit<AgreedUpstream, 'isDialled'> {
  return offered.includes(HTTP_2) && !offered.includes(HTTP_1_1)
    ? { protocol: HTTP_2, lanes: new SessionLanes(dialer, host, isPublicOnly, failed) }
    : { protocol: HTTP_1_1, lanes: new TunnelLanes(dialer, host, isPublicOnly, failed) };
}

/** Null if it takes too long. */
async function inTime<Value>(waited: Promise<Value>): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), CHOICE_WITHIN_MS);
  });
  try {
    return await Promise.race([waited, late]);
  } finally {
    clearTimeout(timer);
  }
}
