import { describe, expect, test } from 'vitest';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { z } from 'zod';
import type { Downstream } from '../fronts/downstream.ts';
import { DEFAULT_GATEWAY_LIMITS } from '../gateway_limits.ts';
import type { GatewayEvent, GatewayServer } from '../gateway_ports.ts';
import { SecretMask } from './secret_mask.ts';
import { StartSlots } from './start_slots.ts';
import { SupervisedServer } from './supervised_server.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';

const EXITED: Failure<ServerFailureReason> = { reason: 'exited', message: 'it ended (exit code 1)' };

const UNREACHABLE: Failure<ServerFailureReason> = { reason: 'unreachable', message: 'it cannot be reached' };

const noteOf = () => null;
/** Of values that do not end. */
const NEVER: Downstream['ends'] = { hasEnded: false, isRenewalDue: false, renew: () => Promise.resolve('same') };

function world(known: Partial<GatewayServer> = {}) {
  const clock = { time: 0, now: () => clock.time };
  const events: GatewayEvent[] = [];
  const pauses: number[] = [];
  const connections: boolean[] = [];
  const launches: { readonly isLegacy: boolean }[] = [];
  const outcomes: Result<Downstream, Failure<ServerFailureReason>>[] = [];
  const state = { accepting: true, busy: false, keptLegacy: false, keptGuess: false, held: Promise.resolve() };
  const server: GatewayServer = { server: localServer(), consent: 'given', missing: [], ...known };
  const supervised = new SupervisedServer(server, {
    noteOf,
    ports: { isAccepting: () => state.accepting, record: (event) => void events.push(event), clock },
    launcher: {
      launch: async ({ isLegacy }) => {
        launches.push({ isLegacy });
        await state.held;
        return outcomes.shift() ?? err(EXITED);
      },
    },
    limits: DEFAULT_GATEWAY_LIMITS,
    slots: { local: new StartSlots(2), remote: new StartSlots(2) },
    revisions: {
      isLegacy: () => state.keptLegacy,
      keepLegacy: (_server, isGuess) => {
        state.keptLegacy = true;
        state.keptGuess = isGuess;
        return Promise.resolve();
      },
    },
    eventsOf: () => z.custom<ReturnType<ConstructorParameters<typeof SupervisedServer>[1]['eventsOf']>>().parse({}),
    onHealth: () => undefined,
    isBusy: () => state.busy,
    onConnection: () => void connections.push(supervised.current !== null),
    pause: (ms) => {
      pauses.push(ms);
      return Promise.resolve();
    },
  });
  return { supervised, clock, events, pauses, connections, launches, outcomes, state, server };
}

function connection(ends: Downstream['ends'] = NEVER, closing: Promise<void> = Promise.resolve()) {
  const closed = Promise.withResolvers<Failure<ServerFailureReason>>();
  const facts = { isClosed: false };
  const downstream: Downstream = {
    client: z.custom<Downstream['client']>().parse({ getProtocolEra: () => 'legacy' }),
    mask: new SecretMask([]),
    ends,
    closed: closed.promise,
    close: () => {
      facts.isClosed = true;
      return closing;
    },
  };
  return { downstream, facts, end: (problem: Failure<ServerFailureReason>) => closed.resolve(problem) };
}

/** Lets pending work run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('starts on the first request, and once for concurrent requests', async () => {
  const { supervised, launches, outcomes, events } = world();
  const { downstream } = connection();
  outcomes.push(ok(downstream));
  expect(supervised.health().state).toBe('stopped');
  const [first, second] = await Promise.all([supervised.connect(), supervised.connect()]);
  expect([first, second, launches.length]).toEqual([ok(downstream), ok(downstream), 1]);
  expect(supervised.health().state).toBe('running');
  expect(events.map(({ type }) => type)).toEqual(['mcp.server.started']);
});

test('retries with growing delays, gives up, and retries on a later request', async () => {
  const { supervised, launches, pauses, clock, events, outcomes } = world();
  await supervised.connect();
  for (let turn = 0; turn < 20; turn += 1) await settle();
  expect([launches.length, pauses]).toEqual([5, [500, 1_000, 2_000, 4_000]]);
  expect(supervised.health()).toMatchObject({ state: 'failed', lastError: EXITED.message });
  expect(await supervised.connect()).toEqual(err(EXITED));
  expect(launches).toHaveLength(5);
  clock.time += DEFAULT_GATEWAY_LIMITS.giveUpMs;
  outcomes.push(ok(connection().downstream));
  expect((await supervised.connect()).ok).toBe(true);
  expect(events.filter(({ type }) => type === 'mcp.server.failed')).toHaveLength(5);
});

test('restarts a server that ended, without asking for its revision', async () => {
  const { supervised, launches, outcomes } = world();
  const [first, second] = [connection(), connection()];
  outcomes.push(ok(first.downstream), ok(second.downstream));
  await supervised.connect();
  first.end(EXITED);
  for (let turn = 0; turn < 10; turn += 1) await settle();
  expect(supervised.current).toBe(second.downstream);
  expect(launches.map(({ isLegacy }) => isLegacy)).toEqual([false, true]);
});

test('a server that spoke an earlier revision in the last run is not asked, unless it fails', async () => {
  const { supervised, launches, outcomes, state } = world();
  outcomes.push(ok(connection().downstream));
  await supervised.connect();
  expect([launches, state.keptLegacy]).toEqual([[{ isLegacy: false }], true]);
  const next = world();
  next.state.keptLegacy = true;
  next.outcomes.push(err(EXITED), ok(connection().downstream));
  await next.supervised.connect();
  for (let turn = 0; turn < 10; turn += 1) await settle();
  expect(next.launches).toEqual([{ isLegacy: true }, { isLegacy: false }]);
});

test('a revision that is only assumed, after a slow start, is kept as such, and the server is asked after its end', async () => {
  const { supervised, launches, outcomes, state } = world();
  const slow = connection();
  outcomes.push(ok({ ...slow.downstream, isEraGuessed: true }), ok(connection().downstream));
  await supervised.connect();
  expect([state.keptLegacy, state.keptGuess]).toEqual([true, true]);
  slow.end(EXITED);
  for (let turn = 0; turn < 10; turn += 1) await settle();
  expect(launches).toEqual([{ isLegacy: false }, { isLegacy: false }]);
  expect([state.keptLegacy, state.keptGuess]).toEqual([true, false]);
});

test('nothing is started, and no client told, before the process of the last start has ended', async () => {
  const { supervised, launches, outcomes, connections, server } = world();
  const closing = Promise.withResolvers<void>();
  const first = connection(NEVER, closing.promise);
  outcomes.push(ok(first.downstream), ok(connection().downstream));
  await supervised.connect();
  const updating = supervised.update({ ...server, server: { ...server.server, command: ['other'] } });
  const connecting = supervised.connect();
  for (let turn = 0; turn < 5; turn += 1) await settle();
  expect([first.facts.isClosed, launches.length, connections]).toEqual([true, 1, [true]]);
  closing.resolve();
  await updating;
  expect((await connecting).ok).toBe(true);
  expect(launches).toHaveLength(2);
});

test('a server that cannot be reached any more is reported, and connected to again', async () => {
  const { supervised, launches, outcomes, state, pauses } = world();
  const [first, second] = [connection(), connection()];
  outcomes.push(ok(first.downstream), err(UNREACHABLE), ok(second.downstream));
  await supervised.connect();
  state.busy = true;
  await supervised.lose(first.downstream, UNREACHABLE);
  expect(supervised.health()).toMatchObject({ state: 'running', lastError: null });
  state.busy = false;
  await supervised.lose(first.downstream, UNREACHABLE);
  expect(first.facts.isClosed).toBe(true);
  expect(supervised.health()).toMatchObject({ state: 'starting', lastError: UNREACHABLE.message });
  for (let turn = 0; turn < 10; turn += 1) await settle();
  expect([supervised.current, launches.length, pauses]).toEqual([second.downstream, 3, [500, 1_000]]);
  await supervised.lose(first.downstream, UNREACHABLE);
  expect(supervised.health()).toMatchObject({ state: 'running', lastError: null });
});

test('reports at once why a server cannot start, and launches nothing', async () => {
  const needed = world({ consent: 'needed' });
  expect(await needed.supervised.connect()).toMatchObject({ error: { reason: 'consent_needed' } });
  expect(needed.supervised.health().state).toBe('needs_consent');
  const missing = world({ missing: ['mcp-servers/x/TOKEN'] });
  expect(await missing.supervised.connect()).toMatchObject({ error: { reason: 'credential_missing' } });
  expect(missing.supervised.health().state).toBe('needs_credentials');
  const full = world();
  full.state.accepting = false;
  expect(await full.supervised.connect()).toMatchObject({ error: { reason: 'audit_unavailable' } });
  expect([needed, missing, full].flatMap(({ launches }) => launches)).toEqual([]);
});

test('restarts for a new command but not for a new policy', async () => {
  const { supervised, launches, outcomes, server, events } = world();
  const first = connection();
  outcomes.push(ok(first.downstream), ok(connection().downstream));
  await supervised.connect();
  const policy = { ...server.server, tools: { allow: [], deny: [], approval: [] }, revision: 2 };
  await supervised.update({ ...server, server: policy });
  expect([launches.length, supervised.server.revision]).toEqual([1, 2]);
  await supervised.update({ ...server, server: { ...policy, command: ['other'], revision: 3 } });
  await settle();
  expect([launches.length, first.facts.isClosed]).toEqual([2, true]);
  expect(events.map(({ type }) => type)).toEqual(['mcp.server.started', 'mcp.server.stopped', 'mcp.server.started']);
});

test('a start that finishes after the server was stopped leaves nothing behind', async () => {
  const { supervised, outcomes, state } = world();
  const late = connection();
  outcomes.push(ok(late.downstream));
  const held = Promise.withResolvers<void>();
  state.held = held.promise;
  const starting = supervised.connect();
  await settle();
  const stopping = supervised.stop();
  held.resolve();
  await stopping;
  expect((await starting).ok).toBe(false);
  expect([late.facts.isClosed, supervised.current]).toEqual([true, null]);
});

test('a call waits for a slow start', async () => {
  const { supervised, clock, outcomes, launches } = world();
  const slow = connection();
  outcomes.push(ok(slow.downstream));
  const starting = supervised.connect();
  expect(supervised.isStarting).toBe(true);
  clock.time += DEFAULT_GATEWAY_LIMITS.listWaitMs + 1;
  expect(await supervised.connect()).toMatchObject({ ok: false, error: { reason: 'start_timeout' } });
  expect(await supervised.connectPatiently()).toEqual(ok(slow.downstream));
  await starting;
  expect([supervised.isStarting, launches.length]).toEqual([false, 1]);
});

test('a call does not wait for a server that failed repeatedly', async () => {
  const { supervised, pauses } = world();
  await supervised.connect();
  while (pauses.length < 2) await settle();
  expect(await supervised.connectPatiently()).toEqual(err(EXITED));
});

/** Of values whose end is near, or has come. */
function endingValues(hasEnded: boolean, renewal: 'same' | 'changed' | 'unknown') {
  return {
    hasEnded,
    asked: 0,
    isRenewalDue: true,
    renew() {
      this.asked += 1;
      return Promise.resolve(renewal);
    },
  };
}

describe('values that end', () => {
  test('a server whose values have changed is started again with the new ones, once for concurrent requests', async () => {
    const { supervised, outcomes, launches, events } = world();
    const first = connection(endingValues(false, 'changed'));
    const second = connection();
    outcomes.push(ok(first.downstream), ok(second.downstream));
    await supervised.connect();
    const again = await Promise.all([supervised.connect(), supervised.connectPatiently()]);
    expect(again).toEqual([ok(second.downstream), ok(second.downstream)]);
    expect([launches.length, first.facts.isClosed]).toEqual([2, true]);
    expect(events.map(({ type }) => type)).toEqual(['mcp.server.started', 'mcp.server.stopped', 'mcp.server.started']);
  });

  test.each(['same', 'unknown'] as const)(
    'one whose next values are %s keeps running until the end',
    async (renewal) => {
      const { supervised, outcomes, launches } = world();
      const { downstream } = connection(endingValues(false, renewal));
      outcomes.push(ok(downstream));
      await supervised.connect();
      expect(await supervised.connect()).toEqual(ok(downstream));
      expect(launches).toHaveLength(1);
    },
  );

  test('ahead of the end, running calls are waited for; at the end, it is not used any more', async () => {
    const { supervised, outcomes, launches, state } = world();
    const values = endingValues(false, 'changed');
    const { downstream, facts } = connection(values);
    const next = connection();
    outcomes.push(ok(downstream), ok(next.downstream));
    await supervised.connect();
    state.busy = true;
    expect(await supervised.connect()).toEqual(ok(downstream));
    expect([values.asked, launches.length]).toEqual([0, 1]);
    values.hasEnded = true;
    expect(await supervised.connect()).toEqual(ok(next.downstream));
    expect(facts.isClosed).toBe(true);
  });

  test('without new values at the end, it is stopped, and the reason is that of the start', async () => {
    const { supervised, outcomes } = world();
    const { downstream, facts } = connection(endingValues(true, 'unknown'));
    const reason = { reason: 'credential_unavailable', message: 'its provider does not answer' } as const;
    outcomes.push(ok(downstream), err(reason));
    await supervised.connect();
    expect(await supervised.connect()).toEqual(err(reason));
    expect(facts.isClosed).toBe(true);
  });
});
