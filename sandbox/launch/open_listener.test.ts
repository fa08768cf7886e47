import { describe, expect, test } from 'vitest';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime, RuntimeFailure } from '../engine/container_runtime.ts';
import { openListenerWhenStarted } from './open_listener.ts';
import { FakeSessions } from './testing/fake_sessions.ts';
import { engineRuntime } from '../engine/docker_runtime.ts';

const target = { sessionId: 'ses_1', containerId: 'c1', relay: false };

/** Shows these one after the other, the last for ever. */
function runtimeShowing(...pids: readonly Result<number | null, RuntimeFailure>[]): ContainerRuntime {
  let at = 0;
  const base = engineRuntime({}, 'unix:///nowhere');
  const pidOf = () => Promise.resolve(pids[Math.min(at++, pids.length - 1)] ?? ok(null));
  return { ...base, pidOf };
}

const pause = () => Promise.resolve();

function open(runtime: ContainerRuntime, hasEnded = false, sessions = new FakeSessions()) {
  return openListenerWhenStarted({ runtime, sessions, pause }, target, () => hasEnded);
}

describe('the listener of a container', () => {
  test('is opened as soon as the engine shows a process, and once', async () => {
    const sessions = new FakeSessions();
    expect(await open(runtimeShowing(ok(null), ok(null), ok(42)), false, sessions)).toBe(true);
    expect(sessions.calls).toEqual(['openListener ses_1 42']);
  });

  test('is not opened for a container that ended before its process started', async () => {
    const sessions = new FakeSessions();
    expect(await open(runtimeShowing(ok(null)), true, sessions)).toBe(false);
    expect(sessions.calls).toEqual([]);
  });

  test('is not awaited longer than a start may take', async () => {
    await expect(open(runtimeShowing(ok(null)))).rejects.toThrow('did not start the container in time');
  });

  test('is given up if the engine is gone', async () => {
    const problem: RuntimeFailure = { reason: 'engine_unreachable', message: 'nobody listens', fixes: ['start it'] };
    await expect(open(runtimeShowing(err(problem)))).rejects.toMatchObject({
      message: 'nobody listens',
      fixes: ['start it'],
    });
  });
});
