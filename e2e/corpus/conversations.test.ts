import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Session } from '../support/svc.ts';
import { awaitUpstream, expectedArrivals, play } from './conversation.ts';
import { conversations, PLAIN } from './corpus_file.ts';
import { type CorpusWorld, openDirect, openProxied, startCorpusWorld } from './corpus_world.ts';

// Design section 5, invariant 5: passthrough is exact. Every unusual but legal conversation of conversations.json is played twice
// between the same raw client and the same raw upstream, directly and through the proxy, and every byte that arrives is compared.
// A header that neither of them sent (Date, Via, Keep-Alive ...) counts as a difference.

let world: CorpusWorld;
let session: Session;

beforeAll(async () => {
  world = await startCorpusWorld([PLAIN]);
  session = await world.svc.session();
});
afterAll(() => world.stop());

describe('passes byte for byte, as on a direct connection:', () => {
  it.each(conversations())('$name', async (conversation) => {
    const straight = awaitUpstream(world);
    const direct = await openDirect(world, PLAIN);
    const bare = await play(conversation, direct, straight.upstream, 'direct', straight.countConnections);
    expect(bare).toEqual({ ...expectedArrivals(conversation, 'direct'), connections: 1 });

    const behind = awaitUpstream(world);
    const client = await openProxied(session, PLAIN);
    const mediated = await play(conversation, client, behind.upstream, 'proxied', behind.countConnections);
    expect(mediated).toEqual({ ...expectedArrivals(conversation, 'proxied'), connections: 1 });
  });
});
