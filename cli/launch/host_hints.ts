import type { z } from 'zod';
import { CERTIFICATE_REFUSED } from '../../shared/model/audit_event.ts';
import type { RefusalReason } from '../../shared/model/refusal.ts';
import { parseTunnelHost } from '../../shared/net/tunnel_host.ts';
import { parsePlainHost } from '../../shared/resolve/admitted_host.ts';
import type { readAuditEvent } from '../../shared/wire/audit_events.ts';

type Told = Pick<z.infer<typeof readAuditEvent>, 'data'>;

/** A session with more such hosts has other problems, such as a client without the CA. */
const MOST_HINTS = 5;

/**
 * One line for each host without a binding at which a client refused the certificate of svc, with the command to tunnel it. An
 * agent chooses the host: the line must not talk a person into giving up what svc reads there.
 */
export function certificateHints(events: readonly Told[]): readonly string[] {
  return hostsWith(events, CERTIFICATE_REFUSED)
    .filter((host) => parseTunnelHost(host).ok)
    .slice(0, MOST_HINTS)
    .map(
      (host) =>
        `a client refused the certificate of svc at ${host}. If it accepts only the host's own, and nothing there has to be checked or recorded: svc tunnel add ${host}`,
    );
}

/** One line for each host to which plain HTTP was refused, with the command to allow it. Programs such as apt show only a 403. */
export function plainHttpHints(events: readonly Told[]): readonly string[] {
  const refused: RefusalReason = 'non_connect_proxy_request';
  return hostsWith(events, refused)
    .filter((host) => parsePlainHost(host).ok)
    .slice(0, MOST_HINTS)
    .map(
      (host) =>
        `plain http to ${host} was refused. If it has no https, and what everyone on the way can read and change may pass: svc allow --plain-http ${host}`,
    );
}

/** Each host of the events with this reason, once, by name. */
function hostsWith(events: readonly Told[], reason: string): readonly string[] {
  const hosts = events.flatMap(({ data }) => {
    const host = data['svc.proxy.upstream.host'];
    return data['svc.proxy.reason'] === reason && host !== undefined ? [host] : [];
  });
  return [...new Set(hosts)].toSorted();
}
