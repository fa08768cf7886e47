import { describe, expect, test, vi } from 'vitest';
import { endOfWait, ProgramLifetime, requestLifetime } from './lifetime.ts';

describe('a program', () => {
  test('waits for deferred work, and for work that it defers, before it ends', async () => {
    const done: string[] = [];
    const lifetime = new ProgramLifetime(() => undefined);
    const gate = Promise.withResolvers<void>();
    lifetime.defer('first', async () => {
      await gate.promise;
      lifetime.defer('second', async () => {
        await Promise.resolve();
        done.push('second');
      });
      done.push('first');
    });
    const drained = lifetime.drain();
    expect(done).toEqual([]);
    gate.resolve();
    await drained;
    expect(done).toEqual(['first', 'second']);
  });

  test('reports which deferred work failed, and still drains the rest', async () => {
    const onFailure = vi.fn<(what: string, error: unknown) => void>();
    const lifetime = new ProgramLifetime(onFailure);
    const error = new Error('no');
    lifetime.defer('a mail', () => Promise.reject(error));
    lifetime.defer('a throw', () => {
      throw error;
    });
    await lifetime.drain();
    expect(new Map(onFailure.mock.calls)).toEqual(
      new Map([
        ['a mail', error],
        ['a throw', error],
      ]),
    );
  });

  test('cancels waiting calls when it stops', () => {
    const lifetime = new ProgramLifetime(() => undefined);
    const end = endOfWait(new Request('http://127.0.0.1/'), lifetime);
    expect(end.aborted).toBe(false);
    lifetime.beginStop();
    expect(end.aborted).toBe(true);
  });
});

test('a request keeps the platform until its deferred work is done, also when that fails', async () => {
  const kept: Promise<void>[] = [];
  const onFailure = vi.fn<(what: string, error: unknown) => void>();
  const lifetime = requestLifetime((work) => kept.push(work), onFailure);
  const done: string[] = [];
  lifetime.defer('good', async () => done.push('good'));
  lifetime.defer('bad', () => Promise.reject(new Error('no')));
  await Promise.all(kept);
  expect([kept.length, done, onFailure.mock.calls.length]).toEqual([2, ['good'], 1]);
  expect(lifetime.stopping.aborted).toBe(false);
});
