import { PLACEHOLDER_UNBOUND } from '../../shared/model/audit_event.ts';
import type { readAuditEvent } from '../../shared/wire/audit_events.ts';
import type { z } from 'zod';

type Told = Pick<z.infer<typeof readAuditEvent>, 'data'>;

/** A session with more unbound hosts than this has other problems. */
const MOST_HINTS = 5;

/**
 * One line for each unbound host to which a session carried a placeholder. `expected` hosts need no word: the agent is known
 * to send its key there too, where it is of no use.
 */
export function placeholderHints(events: readonly Told[], expected: readonly string[] = []): readonly string[] {
  const hosts = new Map<string, string>();
  for (const { data } of events) {
    const host = data['svc.proxy.upstream.host'];
    if (data['svc.proxy.reason'] !== PLACEHOLDER_UNBOUND || host === undefined || expected.includes(host)) continue;
    hosts.set(host, data['svc.proxy.binding.host'] ?? 'another host');
  }
  return [...hosts].slice(0, MOST_HINTS).map(
    ([host, bound]) =>
      // An agent chooses the host: the line must not talk a person into sending a credential to it.
      `bind ${host}? The placeholder of ${bound} was sent there. Only if it belongs to the same service: svc binding add ${host} --credential PATH --scheme SCHEME`,
  );
}
