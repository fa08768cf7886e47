import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import type { Caller } from '../../machine/mcp_caller.ts';

const MOST_URIS = 256;

const params = z.looseObject({ notifications: z.looseObject({ resourceSubscriptions: z.array(z.string()) }) });

/**
 * The resources that a `subscriptions/listen` request names. The SDK handles these requests itself and does not expose the
 * names, so they are read here to subscribe with the servers.
 */
export function listUris(message: unknown): readonly string[] {
  if (typeof message !== 'object' || message === null || !('method' in message) || !('params' in message)) return [];
  if (message.method !== 'subscriptions/listen') return [];
  const read = params.safeParse(message.params);
  return read.success ? read.data.notifications.resourceSubscriptions.slice(0, MOST_URIS) : [];
}

/** Subscribes to these resources with their servers; an unknown resource or a refusal does not affect the others. */
export function subscribeAll(
  gateway: Gateway,
  caller: Caller,
  clientKey: string,
  uris: readonly string[],
  signal: AbortSignal,
): void {
  for (const uri of uris) {
    void gateway.resources
      .findServer(uri, caller, signal)
      .then((place) => gateway.subscriptions.add(clientKey, uri, place))
      .catch(() => undefined);
  }
}
