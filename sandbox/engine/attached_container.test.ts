import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import { attachContainer } from './attached_container.ts';
import type { ContainerState } from './container_runtime.ts';

const STATE: ContainerState = {
  id: 'c1',
  name: 'c1',
  labels: {},
  running: true,
  pid: 4242,
  wasStarted: true,
  exitCode: 0,
  error: '',
};

/** What is said when a signal comes that the engine refuses to pass on to a container in this state. */
async function saidOf(state: ContainerState | null): Promise<readonly string[]> {
  const signals = new EventEmitter();
  const warnings: string[] = [];
  const said = new EventEmitter();
  const client = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  const refusal = err({ reason: 'engine_refused' as const, message: 'not running', fixes: [] });
  const runtime = {
    start: () => client,
    signal: () => Promise.resolve(refusal),
    inspect: async () => {
      setImmediate(() => said.emit('asked'));
      await Promise.resolve();
      return ok(state);
    },
  };
  const warn = (text: string) => warnings.push(text);
  const asked = once(said, 'asked');
  const attached = attachContainer({ runtime, signals, warn }, 'c1', false);
  signals.emit('SIGTERM');
  await asked;
  client.stdin.end();
  await attached.exitCode;
  return warnings;
}

test.each([
  ['has just stopped', { ...STATE, running: false, pid: null }],
  ['is gone', null],
])('a signal for a container that %s is no warning', async (_, state) => {
  expect(await saidOf(state)).toEqual([]);
});

test.each([
  ['runs', STATE],
  ['has not started', { ...STATE, running: false, pid: null, wasStarted: false }],
])('a signal that does not reach a container that %s is reported', async (_, state) => {
  expect(await saidOf(state)).toEqual(['SIGTERM did not reach the container: not running']);
});
