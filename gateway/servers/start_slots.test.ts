import { expect, test } from 'vitest';
import { StartSlots } from './start_slots.ts';

const failing = () => Promise.reject(new Error('for the test'));
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('starts wait in order, and one that fetches something first holds up no other', async () => {
  const slots = new StartSlots(1);
  const steps: string[] = [];
  const [fetched, started] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = slots.run(async (slot) => {
    steps.push('first takes');
    await slot.leave(() => fetched.promise);
    steps.push('first starts');
  });
  const second = slots.run(() => {
    steps.push('second starts');
    return started.promise;
  });
  await settle();
  fetched.resolve();
  await settle();
  expect(steps).toEqual(['first takes', 'second starts']);
  started.resolve();
  await Promise.all([first, second]);
  expect(steps.at(-1)).toBe('first starts');
});

test('a failure inside and outside of the slot frees it', async () => {
  const slots = new StartSlots(1);
  await expect(slots.run(failing)).rejects.toThrow('for the test');
  await expect(slots.run((slot) => slot.leave(failing))).rejects.toThrow('for the test');
  expect(await slots.run(() => Promise.resolve('free'))).toBe('free');
});
