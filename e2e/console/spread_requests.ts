import { EVENTS_TYP, eventsPayload } from '../../shared/wire/channel.ts';
import { newId } from '../../shared/wire/ids.ts';
import type { TestSidecar } from '../runtimes/sidecar_client.ts';

const HALF_HOUR_MS = 30 * 60_000;
/** How many requests there were in each half hour of a day of work, up to now. */
const LOADS = [
  0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 1, 3, 4, 6, 9, 12, 14, 11, 13, 16, 15, 9, 6, 8, 12, 17, 19, 16, 14, 15, 18, 13,
  11, 9, 7, 4, 3, 5, 6, 2, 1, 3, 2, 4, 5,
];

type Kind = 'binding_injected' | 'passthrough' | 'trust_denied' | 'connector';
const REQUESTS: readonly (readonly [kind: Kind, host: string, path: string])[] = [
  ['binding_injected', 'api.github.com', '/repos/acme/app/pulls'],
  ['binding_injected', 'api.github.com', '/user/repos'],
  ['passthrough', 'docs.example.com', '/guide'],
  ['binding_injected', 'maps.googleapis.com', '/maps/api/geocode/json'],
  ['connector', 'items.example.com', '/items'],
  ['passthrough', 'files.packages.example.com', '/index.json'],
  ['binding_injected', 'api.github.com', '/repos/acme/app/issues'],
  ['connector', 'items.example.com', '/items/7'],
  ['passthrough', 'docs.example.com', '/reference'],
];
const DENIED = ['trust_denied', 'api.github.com', '/repos/acme/app/merges'] as const;

/** The requests of a day of work, as the sidecar tells of them after it; the newest is a few minutes old. */
export async function spreadRequests(sidecar: TestSidecar, nowMs: number): Promise<void> {
  const events = LOADS.flatMap((load, half) =>
    Array.from({ length: load }, (_, n) => {
      const ms = nowMs - (LOADS.length - half) * HALF_HOUR_MS + ((n + 1) * HALF_HOUR_MS) / (load + 1);
      return event(requestOf(half * 7 + n), new Date(ms).toISOString(), sidecar.enrolled.sidecar_id);
    }),
  );
  for (let start = 0; start < events.length; start += 100) {
    const reply = await sidecar.call('POST', '/v1/sidecar/events', {
      body: { events: events.slice(start, start + 100) },
    });
    const { rejected } = await sidecar.verify(await reply.text(), EVENTS_TYP, eventsPayload);
    if (rejected.length > 0) throw new Error(`events were rejected: ${JSON.stringify(rejected)}`);
  }
}

/** Every eleventh is refused. */
function requestOf(n: number) {
  return n % 11 === 5 ? DENIED : (REQUESTS[n % REQUESTS.length] ?? DENIED);
}

function event([kind, host, path]: readonly [Kind, string, string], time: string, sidecarId: string) {
  const isRefused = kind === 'trust_denied';
  const request = {
    'svc.proxy.method': isRefused ? 'POST' : 'GET',
    'svc.proxy.upstream.host': host,
    'svc.proxy.upstream.path': path,
    ...(isRefused ? { 'svc.proxy.reason': 'effect_not_allowed' } : { 'svc.proxy.upstream.status': 200 }),
  };
  const how = {
    binding_injected: { 'svc.proxy.mediation': 'binding', 'svc.proxy.binding.host': host, 'svc.proxy.emit': 'inject' },
    passthrough: { 'svc.proxy.mediation': 'passthrough' },
    trust_denied: { 'svc.proxy.mediation': 'refused', 'svc.proxy.binding.host': host },
    connector: {
      'svc.proxy.mediation': 'connector',
      'svc.connector.fqn': 'acme/items',
      'svc.connector.operation': 'get-item',
    },
  }[kind];
  return {
    id: newId('evt', crypto.getRandomValues(new Uint8Array(16))),
    type: kind === 'connector' ? 'connector.proxy.proxied' : `sandbox.proxy.${kind}`,
    time,
    sidecar_id: sidecarId,
    session_id: 'ses_demo',
    actor: 'session',
    data: { ...request, ...how },
  };
}
