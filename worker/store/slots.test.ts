import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

/** Work that ends when told to. */
function held(slots: Slots, begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const done = slots.take(async () => {
    begun.push(name);
    return promise;
  });
  return { done, end: () => resolve(name), fail: () => reject(new Error(name)) };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('callers wait while every slot is taken, and enter in order', async () => {
  const slots = new Slots(2, null);
  const begun: string[] = [];
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => held(slots, begun, name));
  await settled();
  expect(begun).toEqual(['a', 'b']);
  b!.end();
  expect(await b!.done).toBe('b');
  await settled();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const each of [a, c, d]) each!.end();
  expect(await Promise.all([a, c, d].map((each) => each!.done))).toEqual(['a', 'c', 'd']);
});

test('work that fails frees its slot for the next', async () => {
  const slots = new Slots(1, null);
  const begun: string[] = [];
  const failing = held(slots, begun, 'failing');
  const next = held(slots, begun, 'next');
  failing.fail();
  await expect(failing.done).rejects.toThrow('failing');
  next.end();
  expect(await next.done).toBe('next');
});

test('a caller that has waited too long gets an error, and takes no slot', async () => {
  const slots = new Slots(1, 1);
  const begun: string[] = [];
  const first = held(slots, begun, 'first');
  await expect(held(slots, begun, 'late').done).rejects.toThrow('no slot became free in time');
  first.end();
  await first.done;
  const after = held(slots, begun, 'after');
  after.end();
  expect([await after.done, begun]).toEqual(['after', ['first', 'after']]);
});
