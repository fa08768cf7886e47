import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import type { Caller } from '../../machine/mcp_caller.ts';

const MOST_URIS = 256;

const params = z.looseObject({ notifications: z.looseObject({ resourceSubscriptions: z.array(z.string()) }) });

/**
 * The resources that a `subscriptions/listen` request names. The SDK serves these requests by itself and tells nobody what
 * they name, so it is read here, for the servers have to be subscribed to as well.
 */
export function listenedUris(message: unknown): readonly string[] {
  if (typeof message !== 'object' || message === null || !('method' in message) || !('params' in message)) return [];
  if (message.method !== 'subscriptions/listen') return [];
  const read = params.safeParse(message.params);
  return read.success ? read.data.notifications.resourceSubscriptions.slice(0, MOST_URIS) : [];
}

/** Subscribes to the servers of these resources; one that there is not, or that refuses, changes nothing for the others. */
export function subscribeAll(
  gateway: Gateway,
  caller: Caller,
  clientKey: string,
  uris: readonly string[],
  signal: AbortSignal,
): void {
  for (const uri of uris) {
    void gateway.resources
      .place(uri, caller, signal)
      .then((place) => gateway.subscriptions.add(clientKey, uri, place))
      .catch(() => undefined);
  }
}
