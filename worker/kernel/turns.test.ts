import { describe, expect, test } from 'vitest';
import { NO_TURNS, QueuedTurns } from './turns.ts';

/** Work that reports when it begins, and ends when told to. */
function work(name: string, began: string[]) {
  const { promise, resolve } = Promise.withResolvers<string>();
  const run = () => {
    began.push(name);
    return promise;
  };
  return { run, end: () => resolve(name) };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));
const PATIENT = { sleep: () => new Promise<void>(() => undefined) };

describe('turns', () => {
  test('are taken in order, and each returns the result of its work', async () => {
    const turns = new QueuedTurns(PATIENT);
    const began: string[] = [];
    const all = ['a', 'b', 'c'].map((name) => work(name, began));
    const results = Promise.all(all.map(({ run }) => turns.take('x', run)));
    for (const [index, each] of all.entries()) {
      await settle();
      expect(began).toHaveLength(index + 1);
      each.end();
    }
    expect(await results).toEqual(['a', 'b', 'c']);
    expect(began).toEqual(['a', 'b', 'c']);
  });

  test('continue after work that failed', async () => {
    const turns = new QueuedTurns(PATIENT);
    const failed = turns.take('x', () => Promise.reject(new Error('no')));
    const next = turns.take('x', async () => 'done');
    await expect(failed).rejects.toThrow('no');
    expect(await next).toBe('done');
  });

  test('of different keys do not wait for each other, and with NO_TURNS none do', async () => {
    const began: string[] = [];
    const turns = new QueuedTurns(PATIENT);
    void turns.take('x', work('a', began).run);
    void turns.take('y', work('b', began).run);
    void NO_TURNS.take('x', work('c', began).run);
    void NO_TURNS.take('x', work('d', began).run);
    await settle();
    expect(began).toEqual(['a', 'b', 'c', 'd']);
  });

  test('do not wait forever', async () => {
    const began: string[] = [];
    const turns = new QueuedTurns({ sleep: () => Promise.resolve() });
    void turns.take('x', work('stuck', began).run);
    void turns.take('x', work('next', began).run);
    await settle();
    expect(began).toEqual(['stuck', 'next']);
  });
});
