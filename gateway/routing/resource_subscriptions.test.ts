import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { localServer, SERVER_ID } from '../../shared/mcp/testing/servers.ts';
import type { ResourceAtServer } from './resource_router.ts';
import { ResourceSubscriptions } from './resource_subscriptions.ts';
import { SecretMask } from '../servers/secret_mask.ts';

const TIMES = { clock: { now: () => 0 }, pause: () => Promise.resolve() };
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Subscriptions to a server that behaves like `subscribe`; records the notifications. */
function world(subscribe: () => Promise<unknown> = () => Promise.resolve({})) {
  const told: string[] = [];
  const left: string[] = [];
  const client = {
    getServerCapabilities: () => ({ resources: { subscribe: true } }),
    getProtocolEra: () => 'legacy',
    subscribeResource: subscribe,
    unsubscribeResource: ({ uri }: { readonly uri: string }) => Promise.resolve(void left.push(uri)),
  };
  const supervised = { server: localServer(), current: { client, mask: new SecretMask(['S3CR3T-t0ken']) } };
  const resourceAt = (uri: string) => z.custom<ResourceAtServer>().parse({ supervised, uri });
  type Options = ConstructorParameters<typeof ResourceSubscriptions>;
  const fleet = z.custom<Options[0]>().parse({ find: () => supervised });
  const subscriptions = new ResourceSubscriptions(fleet, TIMES, (key, uri) => void told.push(`${key} ${uri}`));
  const add = (key: string, uri: string) => subscriptions.add(key, uri, resourceAt(uri));
  return { subscriptions, add, told, left };
}

/** Subscriptions to a server of the later generation; each `listen` has the next of the outcomes, or opens a stream. */
function modernWorld() {
  const outcomes: Promise<unknown>[] = [];
  const facts = { listened: 0, closed: 0 };
  const streamOf = () => {
    const end = Promise.withResolvers<string>();
    return { closed: end.promise, close: () => Promise.resolve(void (end.resolve('local'), (facts.closed += 1))) };
  };
  const client = {
    getServerCapabilities: () => ({ resources: { subscribe: true } }),
    getProtocolEra: () => 'modern',
    listen: () => {
      facts.listened += 1;
      return outcomes.shift() ?? Promise.resolve(streamOf());
    },
    unsubscribeResource: () => Promise.reject(new Error('not in this generation')),
  };
  const current = { client, mask: new SecretMask([]), closed: new Promise(() => undefined) };
  const supervised = { server: localServer(), current };
  type Options = ConstructorParameters<typeof ResourceSubscriptions>;
  const fleet = z.custom<Options[0]>().parse({ find: () => supervised });
  const subscriptions = new ResourceSubscriptions(fleet, TIMES, () => undefined);
  const add = (key: string, uri: string) =>
    subscriptions.add(key, uri, z.custom<ResourceAtServer>().parse({ supervised, uri }));
  return { subscriptions, add, outcomes, facts, streamOf };
}

test('a stream that the server refuses after it has reconnected is asked for again', async () => {
  const { subscriptions, add, outcomes, facts } = modernWorld();
  await add('a', 'x://1');
  outcomes.push(Promise.reject(new Error('not yet')));
  await subscriptions.renew(SERVER_ID);
  await settle();
  expect(facts).toEqual({ listened: 3, closed: 0 });
  await subscriptions.remove('a', 'x://1');
  expect(facts).toEqual({ listened: 3, closed: 1 });
});

test('a client that leaves while the stream is opened again leaves nothing behind', async () => {
  const { subscriptions, add, outcomes, facts, streamOf } = modernWorld();
  await add('a', 'x://1');
  const opening = Promise.withResolvers<unknown>();
  outcomes.push(opening.promise);
  const renewing = subscriptions.renew(SERVER_ID);
  await settle();
  await subscriptions.remove('a', 'x://1');
  expect(facts).toEqual({ listened: 2, closed: 1 });
  opening.resolve(streamOf());
  await renewing;
  await settle();
  expect(facts).toEqual({ listened: 2, closed: 2 });
});

test("masks secrets in a server's refusal", async () => {
  const { add } = world(() => Promise.reject(new Error('no: S3CR3T-t0ken')));
  await expect(add('a', 'x://1')).rejects.toThrow(/no: \*+/);
});

test('a client over its limit loses only its own oldest subscriptions', async () => {
  const { add, left } = world();
  await add('modest', 'x://modest');
  for (let number = 0; number < 300; number += 1) await add('greedy', `x://${number}`);
  expect(left).toHaveLength(300 - 256);
  expect(left[0]).toBe('x://0');
});

test('many greedy clients cannot displace a modest one', async () => {
  const { subscriptions, add, told } = world();
  for (let client = 0; client < 16; client += 1) {
    for (let number = 0; number < 256; number += 1) await add(`greedy ${client}`, `x://${client}/${number}`);
  }
  await add('modest', 'x://modest');
  vi.useFakeTimers();
  try {
    subscriptions.notifyUpdated(SERVER_ID, 'x://modest');
    vi.runAllTimers();
  } finally {
    vi.useRealTimers();
  }
  expect(told).toEqual(['modest x://modest']);
});

test('a subscriber who comes while the first request runs gets its outcome too', async () => {
  const asked = Promise.withResolvers<object>();
  const { add, subscriptions, told } = world(() => asked.promise);
  const both = Promise.allSettled([add('a', 'x://1'), add('b', 'x://1')]);
  await settle();
  asked.reject(new Error('not this one'));
  expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  subscriptions.notifyUpdated(SERVER_ID, 'x://1');
  await settle();
  expect(told).toEqual([]);
});

test('a client that leaves while the request runs leaves nothing behind', async () => {
  const asked = Promise.withResolvers<object>();
  const { add, subscriptions, left } = world(() => asked.promise);
  const adding = add('a', 'x://1');
  await settle();
  await subscriptions.remove('a', 'x://1');
  left.length = 0;
  asked.resolve({});
  await adding;
  expect(left).toEqual(['x://1']);
});
