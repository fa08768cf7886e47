import type { Mutation } from '../mutation.ts';

const ROW = 'Ends of values';
const CACHE = 'sidecar/control/credentials.ts';
const ENDS = 'sidecar/control/ends.test.ts';
const SNAPSHOT = 'sidecar/control/snapshot.ts';
const SNAPSHOT_TEST = 'sidecar/control/snapshot.test.ts';
const BORROWED = 'sidecar/borrow/borrowed_credentials.ts';
const BORROWED_TEST = 'sidecar/borrow/ends.test.ts';
const WORKER_TEST = 'worker/ends.test.ts';

/** Checks that no value outlives its end, and nothing is given once a revocation is known. */
export const END_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'an end counts from before the call to the control plane',
    file: 'sidecar/control/reply_verifier.ts',
    text: 'Math.min(sentAt, now)',
    replacement: 'now',
    tests: [ENDS],
  },
  {
    row: ROW,
    holds: 'a reply that the policy has overtaken is not used',
    file: CACHE,
    text: 'const isRefused = answered.ok && (!isCurrent || isDropped);',
    replacement: 'const isRefused = false;',
    tests: [ENDS],
  },
  {
    row: ROW,
    holds: 'a value that a request holds ends by each of two clocks',
    file: CACHE,
    text: 'leftUntil(end, this.#options) <= 0;',
    replacement: 'this.#options.clock.now() >= end.wall;',
    tests: [ENDS],
  },
  {
    row: ROW,
    holds: 'a reply that was on its way does not end a revocation',
    file: 'sidecar/control/link.ts',
    text: 'if (known !== this.#revocations) return;',
    replacement: '',
    tests: [ENDS],
  },
  {
    row: ROW,
    holds: 'a value that ends while its request waits is not sent',
    file: 'sidecar/exchange/in_force.ts',
    text: "(hasEnded() ? refusal('credential_unavailable', message) : null)",
    replacement: 'null',
    tests: ['sidecar/data_plane/revocation.test.ts'],
  },
  {
    row: ROW,
    holds: 'what is left until a moment is what the nearer of two clocks says',
    file: 'shared/model/clock.ts',
    text: 'Math.min(end.wall - clocks.clock.now(), end.monotonic - monotonicNow(clocks))',
    replacement: 'end.wall - clocks.clock.now()',
    tests: ['shared/model/clock.test.ts'],
  },
  {
    row: ROW,
    holds: 'a server gets no new call with a value that has ended',
    file: 'gateway/servers/supervised_server.ts',
    text: 'const mayWait = !ends.hasEnded && this',
    replacement: 'const mayWait = this',
    tests: ['gateway/servers/supervised_server.test.ts'],
  },
  {
    row: ROW,
    holds: 'a remote server is sent nothing with a value that has ended',
    file: 'gateway/servers/remote_launch.ts',
    text: 'if (hasEnded()) throw',
    replacement: 'if (false && hasEnded()) throw',
    tests: ['gateway/servers/launcher.test.ts'],
  },
  {
    row: ROW,
    holds: 'the control plane sends a remote server nothing with a minted value that has ended',
    file: 'worker/services/mcp/served/open_server.ts',
    text: 'ends.push(current.value.expiresAt);',
    replacement: '',
    tests: ['worker/remote_mcp.test.ts'],
  },
  {
    row: ROW,
    holds: 'the sidecar says when the values of a server end',
    file: 'sidecar/local_api/mcp_release.ts',
    text: 'end = Math.min(end, value.value.expiresAt ?? Number.POSITIVE_INFINITY);',
    replacement: '',
    tests: ['sidecar/local_api/mcp_routes.test.ts'],
  },
  {
    row: ROW,
    holds: 'a policy ends by each of two clocks',
    file: SNAPSHOT,
    text: 'return leftUntil(goodUntil, this.#options) > 0;',
    replacement: 'return this.#options.clock.now() < goodUntil.wall;',
    tests: [SNAPSHOT_TEST],
  },
  {
    row: ROW,
    holds: 'a stored policy from the future is not used',
    file: SNAPSHOT,
    text: 'this.#ageOfStored(stored.confirmedAt)',
    replacement: 'stored.confirmedAt',
    tests: [SNAPSHOT_TEST],
  },
  {
    row: ROW,
    holds: 'the end of a borrowed value is corrected by what the clock is known to be behind',
    file: BORROWED,
    text: 'read.value.expiresAtMs - behindMs()',
    replacement: 'read.value.expiresAtMs + 0 * behindMs()',
    tests: [BORROWED_TEST],
  },
  {
    row: ROW,
    holds: 'a borrowed value that ended while its program ran is not used',
    file: BORROWED,
    text: 'if (leftUntil(until, this.#options) <= 0) ',
    replacement: 'if (Number.isNaN(until.wall)) ',
    tests: [BORROWED_TEST],
  },
  {
    row: ROW,
    holds: 'the access token of a remote MCP server is not sent past its end',
    file: 'gateway/servers/bearer_provider.ts',
    text: 'held.leftMs() > 0',
    replacement: 'held.leftMs() > -Infinity',
    tests: ['gateway/servers/bearer_provider.test.ts'],
  },
  {
    row: ROW,
    holds: 'the end of an OAuth token counts from before the request',
    file: 'worker/services/oauth/oauth_tokens.ts',
    text: 'momentAt(stored.asked.wall + expiresIn * 1000, stored.asked)',
    replacement:
      'momentAt(context.clock.now() + expiresIn * 1000, { wall: context.clock.now(), monotonic: context.clock.now() })',
    tests: [WORKER_TEST],
  },
  {
    row: ROW,
    holds: 'what a failed renewal leaves is looked at again',
    file: 'worker/services/sources/minted_value.ts',
    text: 'const usable = await usableValue(context, read);\n    return',
    replacement:
      "const now = () => Date.parse(read.source.mintedAt ?? '');\n    const usable = await usableValue({ ...context, clock: { now }, seenEnds: { leftOf: () => 1e9 } }, read);\n    return",
    tests: [WORKER_TEST],
  },
  {
    row: ROW,
    holds: 'a value that was stored later than it is now is not released',
    file: 'worker/kernel/leased_renewal.ts',
    text: 'return clock.now() < Date.parse(span.storedAt) - mostAheadMs(span);',
    replacement: 'return clock.now() < 0;',
    tests: [WORKER_TEST],
  },
  {
    row: ROW,
    holds: 'a value ends in the control plane by the clock that nobody sets too',
    file: 'worker/kernel/seen_ends.ts',
    text: 'return leftUntil(seen.end, this.#clocks);',
    replacement: 'return seen.end.wall - this.#clocks.clock.now();',
    tests: [WORKER_TEST],
  },
  {
    row: ROW,
    holds: 'the values of a server end by each of two clocks',
    file: 'gateway/servers/value_ends.ts',
    text: 'return leftUntil(this.#end, this.#options) <= 0;',
    replacement: 'return this.#options.clock.now() >= this.#end.wall;',
    tests: ['gateway/servers/value_ends.test.ts'],
  },
  {
    row: ROW,
    holds: 'the calls of one mint together take less time than its lease',
    file: 'worker/kernel/outbound_within.ts',
    text: 'Math.min(limits.timeoutMs, leftUntil(end, clocks))',
    replacement: 'limits.timeoutMs',
    tests: ['worker/vault_leases.test.ts'],
  },
];
