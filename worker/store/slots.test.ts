import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

/** Work that ends when told to. */
function holdSlot(slots: Slots, begun: string[], name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const done = slots.take(async () => {
    begun.push(name);
    return promise;
  });
  return { done, end: () => resolve(name), fail: () => reject(new Error(name)) };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('callers wait while every slot is taken, and enter in order', async () => {
  const slots = new Slots(2, null);
  const begun: string[] = [];
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => holdSlot(slots, begun, name));
  await settle();
  expect(begun).toEqual(['a', 'b']);
  b!.end();
  expect(await b!.done).toBe('b');
  await settle();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const each of [a, c, d]) each!.end();
  expect(await Promise.all([a, c, d].map((each) => each!.done))).toEqual(['a', 'c', 'd']);
});

test('work that fails frees its slot for the next', async () => {
  const slots = new Slots(1, null);
  const begun: string[] = [];
  const failing = holdSlot(slots, begun, 'failing');
  const next = holdSlot(slots, begun, 'next');
  failing.fail();
  await expect(failing.done).rejects.toThrow('failing');
  next.end();
  expect(await next.done).toBe('next');
});

test('a caller that has waited too long gets an error, and takes no slot', async () => {
  const slots = new Slots(1, 1);
  const begun: string[] = [];
  const first = holdSlot(slots, begun, 'first');
  await expect(holdSlot(slots, begun, 'late').done).rejects.toThrow('no slot became free in time');
  first.end();
  await first.done;
  const after = holdSlot(slots, begun, 'after');
  after.end();
  expect([await after.done, begun]).toEqual(['after', ['first', 'after']]);
});
