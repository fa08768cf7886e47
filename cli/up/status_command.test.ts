import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PROXY_URL, runCli, TestHome, type Answer } from '../testing/run_cli.ts';

const CONTROL = { status: 'ok', version: '4.0.0', time: '2026-01-01T12:00:00.000Z', mode: 'local' };
const SIDECAR = {
  status: 'ok',
  version: '4.0.0',
  snapshot: { version: 3, age_seconds: 1, usable: true },
  spool: { bytes: 0, events: 0, accepting: true },
  channel: { state: 'up', last_error: null },
  audit_log: { remembers: true, mismatches: [] },
  upstream_proxy: null,
  sessions: 0,
};

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const status = (sidecar: unknown, flags: readonly string[] = []) => {
  const answer: Answer = ({ url }) => ({ status: 200, body: url.origin === PROXY_URL ? sidecar : CONTROL });
  return runCli(home, ['status', ...flags], { answer });
};

describe('svc status', () => {
  test('prints no field that it does not know, such as one of a newer sidecar', async () => {
    const { snapshot, spool, channel, audit_log } = SIDECAR;
    const more = { more: '\u001b[2J' };
    const run = await status(
      {
        ...SIDECAR,
        ...more,
        snapshot: { ...snapshot, ...more },
        spool: { ...spool, ...more },
        channel: { ...channel, ...more },
        audit_log: { ...audit_log, ...more },
      },
      ['--json'],
    );
    expect(run.code).toBe(0);
    expect(JSON.parse(run.stdout)).toMatchObject({ control: CONTROL });
    expect(JSON.parse(run.stdout).sidecar).toStrictEqual(SIDECAR);
  });

  test.each([undefined, null, 'text', [], { reason: 7, message: 'x' }])(
    'shows no last error in another form: %j',
    async (lastError) => {
      const run = await status({ ...SIDECAR, channel: { state: 'down', last_error: lastError } }, ['--json']);
      expect(JSON.parse(run.stdout).sidecar.channel).toEqual({ state: 'down', last_error: null });
    },
  );

  test.each([
    [{ ...SIDECAR, spool: { bytes: 0 } }, 'spool.events: missing'],
    [{ ...SIDECAR, snapshot: { version: '3', age_seconds: 1 } }, 'snapshot.version: not as expected'],
    [{ ...SIDECAR, snapshot: undefined }, 'snapshot: missing'],
    [{ ...SIDECAR, sessions: null }, 'sessions: not as expected'],
    [{ ...SIDECAR, status: 'constructor' }, 'status: not as expected'],
    [[SIDECAR], 'body: not as expected'],
  ])('names what is wrong with a reply: %j', async (reply, problem) => {
    const run = await status(reply);
    expect([run.code, run.stdout]).toEqual([3, expect.stringContaining(`(${problem})`)]);
  });
});
