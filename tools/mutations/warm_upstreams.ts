import type { Mutation } from '../mutation.ts';

const ROW = 'Kept upstream connections';
const TEST = 'sidecar/data_plane/warm_upstreams.test.ts';
const KEPT = 'sidecar/upstream/warm_upstreams.ts';

/** What holds for upstream connections that wait for a session's next tunnel (decision 0114). */
export const WARM_UPSTREAM_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'a kept connection goes to no other lane',
    file: KEPT,
    text: 'one.lane === other.lane && ',
    replacement: '',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a kept connection is used with one released value',
    file: KEPT,
    text: 'one.credential === other.credential && ',
    replacement: '',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a kept connection goes to no other host',
    file: KEPT,
    text: 'one.host === host && protocolOf(one.upstream)',
    replacement: 'protocolOf(one.upstream)',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'what arrives while nobody waits for a reply ends a kept connection',
    file: KEPT,
    text: 'upstream.onArrival(() => this.#drop(owner, kept));',
    replacement: 'upstream.onArrival(null);',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'nothing that was dialled under another policy is kept',
    file: KEPT,
    text: 'this.#keepMs > 0 && epoch === this.#epoch && ',
    replacement: 'this.#keepMs > 0 && ',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'kept connections end with their session',
    file: KEPT,
    text: '      hasEnded = true;\n      this.#dropOwner(owner);',
    replacement: '      hasEnded = true;',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a connection that was used without a credential is not kept',
    file: 'sidecar/upstream/lanes.ts',
    text: 'open === undefined || open.credential === null || this.#warm === null',
    replacement: 'open === undefined || this.#warm === null',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a connection to which an upstream may have tied its authority is not kept',
    file: 'sidecar/upstream/lanes.ts',
    text: 'if (!this.#ownLanes.has(lane)) this.#leave(lane, connection);',
    replacement: 'this.#leave(lane, connection);',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a request that may not be sent twice never gets a kept connection',
    file: 'sidecar/upstream/lanes.ts',
    text: 'isRepeatable && credential !== null ?',
    replacement: 'credential !== null ?',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a session with a broken-off reply is not kept',
    file: 'sidecar/upstream/upstream_session.ts',
    text: 'this.#openStreams === 0 && this.#isClean && ',
    replacement: 'this.#openStreams === 0 && ',
    tests: [TEST],
  },
];
