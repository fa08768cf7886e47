import { ok } from '../../shared/model/result.ts';
import type { AgreedUpstream, WantedUpstream } from '../ports.ts';
import type { Dialer } from './dialer.ts';
import { HTTP_1_1, HTTP_2 } from '../../shared/net/client_hello.ts';
import { type LanesOptions, TunnelLanes } from './lanes.ts';
import { SessionLanes } from './session_lanes.ts';
import { UpstreamSession } from './upstream_session.ts';
import type { WarmUpstreams } from './warm_upstreams.ts';

/** How long a client that also speaks HTTP/1.1 waits for its upstream's choice: its handshake has a time limit too. */
const CHOICE_WITHIN_MS = 5000;

/**
 * The upstream connections of a new tunnel. If an earlier tunnel of its session left one to the host, the version is that one's.
 * Otherwise, for a client that offers HTTP/2, the upstream is dialled at once, because it chooses the version. If that fails, the
 * first request is answered with the reason. An upstream that does not choose in time, and every other one, is dialled by the
 * first request.
 */
export async function openUpstream(
  dialer: Dialer,
  kept: WarmUpstreams,
  wanted: WantedUpstream,
): Promise<AgreedUpstream> {
  const { offered, host, isPublicOnly, mayDial, prefersHttp2 = false } = wanted;
  const warm = kept.of(wanted.session, host);
  const options = { dialer, host, isPublicOnly, warm };
  const left = warm.protocol();
  if (left !== null && offered.includes(left)) return { ...lanesFor(left, options), isDialled: false };
  const isHttp2 = offered.includes(HTTP_2) && (prefersHttp2 || !offered.includes(HTTP_1_1));
  const unasked = isHttp2 ? HTTP_2 : HTTP_1_1;
  if (!mayDial || !offered.includes(HTTP_2)) return { ...lanesFor(unasked, options), isDialled: false };
  const asked = { publicOnly: isPublicOnly(), epoch: warm.epoch() };
  const dialling = dialer.dialOffering(offered, host, asked.publicOnly);
  const stopWatching = wanted.onGone(dialling.cancel);
  const isPatient = !offered.includes(HTTP_1_1);
  const dialled = await (isPatient ? dialling.connected : inTime(dialling.connected));
  stopWatching();
  if (dialled === null) dialling.cancel();
  if (dialled?.ok !== true) {
    const early = dialled === null ? null : { ...asked, dialled };
    return { ...lanesFor(unasked, { ...options, early }), isDialled: true };
  }
  const { value } = dialled;
  return value instanceof UpstreamSession
    ? {
        protocol: HTTP_2,
        isDialled: true,
        lanes: new SessionLanes({ ...options, early: { ...asked, dialled: ok(value) } }),
      }
    : {
        protocol: HTTP_1_1,
        isDialled: true,
        lanes: new TunnelLanes({ ...options, early: { ...asked, dialled: ok(value) } }),
      };
}

/** The lanes of a version, with the failure of a dial that was made for them. */
function lanesFor(protocol: string, options: LanesOptions<Dialer, never>): Omit<AgreedUpstream, 'isDialled'> {
  return protocol === HTTP_2
    ? { protocol, lanes: new SessionLanes(options) }
    : { protocol, lanes: new TunnelLanes(options) };
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
