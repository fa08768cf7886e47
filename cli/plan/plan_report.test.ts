import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { printerFor } from '../terminal/output.ts';
import { TestHome } from '../testing/run_cli.ts';
import { storedEvent } from '../testing/stored_event.ts';
import { fetchReachedHosts } from './plan_report.ts';

const EVENT = storedEvent({
  'svc.step.id': 'fetch',
  'svc.proxy.upstream.host': 'a.test',
  'svc.proxy.reason': 'denied',
});
const STEP = { id: 'fetch', effect: 'read', timeout_seconds: 60 } as const;

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

function callWith(events: readonly object[]): Call {
  const output = Object.assign(new PassThrough(), { isTTY: false });
  const context: CliContext = {
    env: {},
    stdin: new PassThrough(),
    interactive: false,
    stdout: output,
    stderr: output,
    userHome: home.path,
    workingDirectory: home.path,
    root: home.path,
    version: '4.0.0',
    compileCache: home.path,
    isInForeground: () => true,
    fetch: () => Promise.resolve(Response.json({ items: events, next_cursor: null })),
    npm: () => Promise.resolve({ ok: false, error: 'no npm in this test' }),
    now: () => 0,
    pause: () => Promise.resolve(),
    stop: new AbortController().signal,
    renewStop: () => {},
  };
  return { context, args: [], options: { home: home.path }, print: printerFor(context, {}) };
}

test('the hosts that a step reached are known, also beside events and keys of a later version', async () => {
  const later = { ...EVENT, type: 'sandbox.later.kind', data: { 'svc.later.key': 1 } };
  const known = { ...EVENT, data: { ...EVENT.data, 'svc.later.key': true } };
  const steps = [{ ...STEP, command: ['x'], hosts: ['a.test'], mounts: [], collect: [] }];
  const reached = await fetchReachedHosts(callWith([later, known]), { steps }, 'ses_1');
  expect(reached?.get('fetch')).toEqual([{ host: 'a.test', refused: 'denied', requests: 1 }]);
});
