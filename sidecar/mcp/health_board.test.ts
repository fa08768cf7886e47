import { beforeEach, describe, expect, test } from 'vitest';
import { localServer, remoteServer, SERVER_ID } from '../../shared/mcp/testing/servers.ts';
import type { McpHealthState } from '../../shared/model/mcp_server.ts';
import type { ReportedServer } from '../../shared/wire/mcp/mcp_gateway.ts';
import { FakeClock } from '../testing/fakes.ts';
import { HealthBoard, healthReport } from './health_board.ts';
import { RefusedHosts } from './refused_hosts.ts';
import type { KnownServer } from './server_directory.ts';

let clock: FakeClock;
let board: HealthBoard;

beforeEach(() => {
  clock = new FakeClock();
  board = new HealthBoard(clock);
});

/** A startable server; a test changes one field. */
const knownServer = (more: Partial<KnownServer> = {}): KnownServer => ({
  server: localServer(),
  authorization: null,
  consent: 'given',
  consentHash: 'a'.repeat(64),
  consentText: '{}',
  lastConsent: null,
  missing: [],
  credentials: '',
  reviewed: null,
  reviewedKinds: ['tool'],
  allowedHosts: null,
  image: null,
  ...more,
});

const reported = (state: McpHealthState): ReportedServer => ({
  id: SERVER_ID,
  state,
  last_error: null,
  checked_at: '2026-01-02T03:04:05.678Z',
  restarts: 0,
  tools: null,
  log: null,
});

function say(gatewayId: string, state: McpHealthState, more: Partial<ReportedServer> = {}): void {
  const servers = [{ ...reported(state), ...more }];
  board.take({ gateway: { id: gatewayId, kind: 'stdio', pid: 7 }, ended: false, servers });
}

describe('the state of a server', () => {
  test('is what its gateway reports', () => {
    say('one', 'failed', { last_error: 'it ended', restarts: 3 });
    expect(board.stateOf(knownServer())).toMatchObject({
      state: 'failed',
      lastError: 'it ended',
      restarts: 3,
      gateways: 0,
    });
  });

  test('is the best that any gateway reports', () => {
    say('one', 'failed');
    say('two', 'running', { tools: 4 });
    say('three', 'running');
    expect(board.stateOf(knownServer())).toMatchObject({ state: 'running', tools: 4, gateways: 2 });
  });

  test("has the time of its gateway's latest report, even if the state is older", () => {
    say('one', 'running');
    clock.advance(60_000);
    say('one', 'running');
    expect(board.stateOf(knownServer()).checkedAt).toBe(clock.now());
  });

  test('is stopped if no gateway runs it', () => {
    expect(board.stateOf(knownServer())).toMatchObject({ state: 'stopped', restarts: null });
  });

  test.each([
    ['disabled', { server: localServer({ enabled: false }) }],
    ['needs_consent', { consent: 'needed' }],
    ['needs_credentials', { missing: [`mcp-servers/${SERVER_ID}/TOKEN`] }],
    ['needs_authorisation', { server: remoteServer(), authorization: 'authorisation_required' }],
  ] as const)('is %s, even if a gateway has not heard of it yet', (state, more) => {
    say('one', 'running');
    expect(board.stateOf(knownServer(more))).toMatchObject({ state, gateways: 0 });
  });

  test('ignores a gateway that has ended or has long been silent', () => {
    say('one', 'running');
    board.end('one');
    expect(board.stateOf(knownServer()).state).toBe('stopped');
    say('two', 'running');
    clock.advance(150_000);
    expect(board.stateOf(knownServer()).state).toBe('running');
    clock.advance(1);
    expect(board.stateOf(knownServer()).state).toBe('stopped');
  });

  test.each(['failed', 'starting'] as const)('keeps why it was %s when its gateway has ended', (state) => {
    say('one', state, { last_error: 'it ended (exit code 1)', restarts: 2 });
    const stopped = [{ ...reported('stopped'), log: ['the last words'] }];
    board.take({ gateway: { id: 'one', kind: 'stdio', pid: 7 }, ended: true, servers: stopped });
    board.end('one');
    const known = { state: 'stopped', lastError: 'it ended (exit code 1)', restarts: 2, gateways: 0 };
    expect(board.stateOf(knownServer())).toMatchObject(known);
    expect(board.logsOf(SERVER_ID)).toMatchObject([{ lines: ['the last words'] }]);
    clock.advance(1);
    say('two', 'running');
    board.end('two');
    expect(board.stateOf(knownServer())).toMatchObject({ state: 'stopped', lastError: null, restarts: null });
  });

  test('is listed for every server, also those without a gateway', () => {
    say('one', 'running');
    const other = knownServer({ server: localServer({ id: `mcp_${'0'.repeat(25)}2` }), consent: 'needed' });
    expect(healthReport([knownServer(), other], board, new RefusedHosts()).servers.map(({ state }) => state)).toEqual([
      'running',
      'needs_consent',
    ]);
  });
});

test('the report has the hosts that a server was refused and that nobody allowed since', () => {
  const refused = new RefusedHosts();
  for (const host of ['a.test', 'b.test', 'c.test']) refused.note(SERVER_ID, host);
  const hostsOf = (allowedHosts: readonly string[] | null) =>
    healthReport([knownServer({ allowedHosts })], board, refused).servers[0];
  expect(hostsOf(['b.test'])).toMatchObject({ refused_hosts: ['c.test', 'a.test'] });
  expect(hostsOf(['a.test', 'b.test', 'c.test'])).not.toHaveProperty('refused_hosts');
  expect(hostsOf(null)).not.toHaveProperty('refused_hosts');
});

describe('the stderr output of servers', () => {
  test('is kept until the gateway reports again, and after it has ended', () => {
    say('one', 'running', { log: ['a'] });
    say('one', 'running', { log: null });
    board.end('one');
    expect(board.logsOf(SERVER_ID)).toMatchObject([{ gateway: { id: 'one' }, lines: ['a'] }]);
    say('two', 'running', { log: ['b'] });
    expect(board.logsOf(SERVER_ID).map(({ lines }) => lines)).toEqual([['b'], ['a']]);
  });

  test('is kept for the last few ended gateways only', () => {
    for (let n = 0; n < 10; n += 1) {
      say(`gateway ${n}`, 'running', { log: [String(n)] });
      board.end(`gateway ${n}`);
    }
    expect(board.logsOf(SERVER_ID).map(({ lines }) => lines[0])).toEqual(['6', '7', '8', '9']);
  });
});
