import { CERTIFICATE_REFUSED } from '../../shared/model/audit_event.ts';
import { parseTunnelHost } from '../../shared/net/tunnel_host.ts';
import type { readAuditEvent } from '../../shared/wire/audit_events.ts';
import type { z } from 'zod';

type Told = Pick<z.infer<typeof readAuditEvent>, 'data'>;

/** A session with more such hosts has other problems, such as a client without the CA. */
const MOST_HINTS = 5;

/** One line for each host without a binding at which a client refused the certificate of svc, with the command to tunnel it. */
export function certificateHints(events: readonly Told[]): readonly string[] {
  const hosts = events.flatMap(({ data }) => {
    const host = data['svc.proxy.upstream.host'];
    return data['svc.proxy.reason'] === CERTIFICATE_REFUSED && host !== undefined && parseTunnelHost(host).ok
      ? [host]
      : [];
  });
  return [...new Set(hosts)]
    .toSorted()
    .slice(0, MOST_HINTS)
    .map(
      (host) =>
        // An agent chooses the host: the line must not talk a person into giving up what svc reads there.
        `a client refused the certificate of svc at ${host}. If it accepts only the host's own, and nothing there has to be checked or recorded: svc tunnel add ${host}`,
    );
}
