import { describe, expect, test } from 'vitest';
import {
  type Admission,
  ConnectionGate,
  type DropReason,
  dropTeller,
  type GatedConnection,
  type GateLimits,
  type GateOptions,
  maxConnectionsFor,
  peerAt,
} from './connection_gate.ts';

const LIMITS: GateLimits = { maxWaiting: 6, maxWaitingPerPeer: 4, maxOpen: 10 };

/** A gate, the connections it dropped and why, and connections by name: `a1` is the first one of peer a. */
function gateWith(
  limits: Partial<GateLimits> = {},
  usersOf: GateOptions['usersOf'] = async (all) => all.map(() => null),
) {
  const dropped: string[] = [];
  const reasons: DropReason[] = [];
  const gate = new ConnectionGate({
    limits: { ...LIMITS, ...limits },
    usersOf,
    onDropped: (reason) => reasons.push(reason),
  });
  const admissions = new Map<string, Admission>();
  const admit = (name: string, isShared = false): Admission | null => {
    const connection: GatedConnection = {
      ends: { remoteAddress: name, remotePort: 1, localAddress: '', localPort: 1 },
      peer: { key: name.slice(0, 1), isShared },
      drop: () => {
        dropped.push(name);
        admissions.get(name)?.markClosed();
      },
    };
    const admission = gate.admit(connection);
    if (admission !== null) admissions.set(name, admission);
    return admission;
  };
  const serve = (name: string, isShared = false) => {
    const admission = admit(name, isShared);
    admission?.markAuthenticated(name.slice(0, 1));
    admission?.markServed();
    return admission;
  };
  return { gate, dropped, reasons, admit, serve };
}

describe('waiting connections', () => {
  test('of one peer: the oldest makes room for the newest', () => {
    const { gate, dropped, reasons, admit } = gateWith();
    for (const number of [1, 2, 3, 4, 5, 6]) admit(`a${number}`);
    expect([dropped, reasons]).toEqual([
      ['a1', 'a2'],
      ['waiting_of_peer', 'waiting_of_peer'],
    ]);
    expect(gate.counts).toEqual({ open: 4, waiting: 4 });
  });

  test('in total: the peer with the most loses its oldest, and no other does', () => {
    const { dropped, admit } = gateWith();
    for (const name of ['b1', 'a1', 'a2', 'a3', 'a4', 'c1', 'd1', 'e1']) admit(name);
    expect(dropped).toEqual(['a1', 'a2']);
  });

  test('cannot keep another peer from being served, at any number', () => {
    const { dropped, admit, serve } = gateWith();
    for (let number = 0; number < 1_000; number += 1) admit(`a${number}`);
    expect(serve('b1')).not.toBeNull();
    for (let number = 1_000; number < 2_000; number += 1) admit(`a${number}`);
    expect(dropped.filter((name) => name.startsWith('b'))).toEqual([]);
  });

  test('count again while they wait for another request', () => {
    const { gate, dropped, admit, serve } = gateWith();
    serve('a0')?.markWaiting();
    expect(gate.counts).toEqual({ open: 1, waiting: 1 });
    for (const number of [1, 2, 3, 4]) admit(`a${number}`);
    expect(dropped).toEqual(['a0']);
  });

  test('free their place when they close', () => {
    const { gate, dropped, admit } = gateWith();
    for (let number = 0; number < 50; number += 1) admit(`a${number}`)?.markClosed();
    expect([gate.counts, dropped]).toEqual([{ open: 0, waiting: 0 }, []]);
  });
});

describe('serving connections', () => {
  test('are never dropped because of other connections', () => {
    const { dropped, admit, serve } = gateWith();
    for (const name of ['a1', 'b1', 'c1']) serve(name);
    for (let number = 0; number < 1_000; number += 1) admit(`d${number}`);
    expect(dropped.filter((name) => !name.startsWith('d'))).toEqual([]);
  });

  test('take the place of waiting ones, oldest first', () => {
    const { dropped, reasons, admit, serve } = gateWith({ maxOpen: 4 });
    for (const name of ['a1', 'a2', 'b1', 'c1']) admit(name);
    for (const name of ['d1', 'e1']) serve(name);
    expect(dropped).toEqual(['a1', 'a2']);
    expect(reasons).toEqual(['descriptors', 'descriptors']);
  });

  test('take the place of tunnels without a request, of the peer with the most', () => {
    const { dropped, admit, serve } = gateWith({ maxOpen: 5 });
    for (const name of ['a1', 'a2', 'b1']) admit(name)?.markAuthenticated(name.slice(0, 1));
    for (const name of ['c1', 'd1', 'e1']) serve(name);
    expect(dropped).toEqual(['a1']);
  });

  test('are never dropped: if all serve, the new one is dropped', () => {
    const { dropped, reasons, serve } = gateWith({ maxOpen: 4 });
    for (const name of ['a1', 'b1', 'c1', 'd1', 'e1']) serve(name);
    expect([dropped, reasons]).toEqual([['e1'], ['descriptors']]);
  });

  test('are at most half of all for one container, so that the others are served', () => {
    const { dropped, reasons, serve } = gateWith({ maxOpen: 8 });
    for (let number = 0; number < 20; number += 1) serve(`a${number}`);
    expect(new Set(reasons)).toEqual(new Set(['share']));
    expect(dropped).toHaveLength(16);
    expect(serve('b1')).not.toBeNull();
  });

  test('are admitted if the same container’s waiting ones fill its half', () => {
    const { dropped, admit, serve } = gateWith({ maxOpen: 8 });
    for (const number of [1, 2, 3, 4]) admit(`a${number}`);
    expect(serve('a5')).not.toBeNull();
    expect(dropped).toEqual(['a1']);
  });
});

const usersOf = (looked: { count: number }) => async (all: readonly GatedConnection[]) => {
  looked.count += 1;
  return all.map(({ ends }) => (ends.remoteAddress.includes('evil') ? 'evil' : 'owner'));
};

describe('users of one machine, who share an address', () => {
  test('are told apart under pressure: the one with the most loses its oldest', async () => {
    const looked = { count: 0 };
    const { dropped, admit } = gateWith({ maxWaiting: 6, maxWaitingPerPeer: 4 }, usersOf(looked));
    admit('l-owner', true);
    for (const number of [1, 2, 3]) admit(`l-evil${number}`, true);
    await Promise.resolve();
    await Promise.resolve();
    for (let number = 4; number < 400; number += 1) {
      admit(`l-evil${number}`, true);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
    expect(dropped.filter((name) => !name.includes('evil'))).toEqual([]);
    expect(looked.count).toBeLessThan(450);
  });

  test('are remembered: a connection that waits again counts for its user', async () => {
    const looked = { count: 0 };
    const { dropped, admit } = gateWith({ maxWaiting: 20, maxWaitingPerPeer: 4 }, usersOf(looked));
    const owner = admit('l-owner', true);
    admit('l-evil1', true);
    await Promise.resolve();
    await Promise.resolve();
    owner?.markServed();
    for (let number = 2; number < 50; number += 1) {
      admit(`l-evil${number}`, true);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
    owner?.markWaiting();
    for (const number of [50, 51, 52, 53, 54]) admit(`l-evil${number}`, true);
    expect(dropped).not.toContain('l-owner');
  });

  test('are not looked up without pressure', () => {
    const looked = { count: 0 };
    const { admit } = gateWith({}, usersOf(looked));
    for (let number = 0; number < 100; number += 1) admit(`l${number}`, true)?.markClosed();
    expect(looked.count).toBe(0);
  });

  test('may hold more than half of all together', () => {
    const { dropped, serve } = gateWith({ maxOpen: 8 });
    for (let number = 0; number < 8; number += 1) serve(`l${number}`, true);
    expect(dropped).toEqual([]);
  });
});

test.each([
  ['unlimited', null],
  [20_000, 9_744],
  [1_024, 384],
  [1_048_576, 524_032],
  [2, 1],
])('of %s descriptors %s may be connections, so that each can dial another one', (soft, most) => {
  expect(
    maxConnectionsFor({ userLimits: { data_seg_size_kbytes: { soft: 7 }, open_files: { soft, hard: 1_048_576 } } }),
  ).toBe(most);
});

test.each([
  ['127.0.0.1', 'loopback'],
  ['127.5.6.7', 'loopback'],
  ['::1', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001::1:2:3:4:5:6', '2001:0:1:2::/64'],
  ['', ''],
])('a connection from %j counts for %j', (address, key) => {
  expect(peerAt(address)).toEqual({ key, isShared: key === 'loopback' });
});

test('drops are reported once a minute, with their number', () => {
  let now = 0;
  const told: [DropReason, number][] = [];
  const tell = dropTeller(
    () => now,
    (...args) => told.push(args),
  );
  for (let count = 0; count < 1_000; count += 1) tell('waiting');
  now = 60_000;
  tell('descriptors');
  expect(told).toEqual([
    ['waiting', 1],
    ['descriptors', 1_000],
  ]);
});
