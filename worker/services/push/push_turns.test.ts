import { expect, test, vi } from 'vitest';
import { inTurn } from './push_turns.ts';

const of = (userId: string, count: number) =>
  Array.from({ length: count }, (_, at) => ({ userId, name: `${userId}${at}` }));
const never = () => false;

test('users take turns', async () => {
  const told: string[] = [];
  await inTurn([...of('a', 3), ...of('b', 2)], {
    isStopped: never,
    run: async ({ name }) => void told.push(name),
  });
  expect(told).toEqual(['a0', 'b0', 'a1', 'b1', 'a2']);
});

test('the addresses of one user that do not answer hold up nobody else', async () => {
  const told: string[] = [];
  const waiting: (() => void)[] = [];
  let most = 0;
  const run = async ({ userId, name }: { readonly userId: string; readonly name: string }) => {
    told.push(name);
    if (userId !== 'slow') return;
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      most = Math.max(most, waiting.length);
    });
  };
  const others = Array.from({ length: 20 }, (_, at) => `other${at}`);
  const done = inTurn([...of('slow', 10), ...others.flatMap((userId) => of(userId, 1))], { run, isStopped: never });
  await vi.waitFor(() => expect(told).toHaveLength(22), { timeout: 60_000 });
  for (let left = 10; left > 0; left -= 1) {
    await vi.waitFor(() => expect(waiting).not.toEqual([]), { timeout: 60_000 });
    waiting.shift()?.();
  }
  await done;
  expect([told.length, most]).toEqual([30, 2]);
});

test('a failure is thrown once everybody else is told', async () => {
  const told: string[] = [];
  const run = async ({ name }: { readonly name: string }) => {
    told.push(name);
    if (name === 'a0') throw new Error('planted');
  };
  await expect(inTurn([...of('a', 3), ...of('b', 1)], { run, isStopped: never })).rejects.toThrow('planted');
  expect(told).toHaveLength(4);
});

test('nothing is begun once the program stops', async () => {
  const told: string[] = [];
  await inTurn(of('a', 3), { run: async ({ name }) => void told.push(name), isStopped: () => true });
  expect(told).toEqual([]);
});
