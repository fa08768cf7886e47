import { expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import type { RuntimeFailureReason } from './container_runtime.ts';
import { removeContainer } from './remove_container.ts';

/** Removes after this many refusals. */
function engine(refusals: number, reason: RuntimeFailureReason = 'engine_refused') {
  let asked = 0;
  const remove = async () => {
    asked += 1;
    await Promise.resolve();
    return asked <= refusals ? err({ reason, message: `refused ${asked}`, fixes: [] }) : ok(undefined);
  };
  return { remove, asked: () => asked };
}
const noPause = () => Promise.resolve();

test('waits while the container is being removed elsewhere', async () => {
  const busy = engine(3);
  expect(await removeContainer(busy, 'c1', noPause)).toEqual(ok(undefined));
  expect(busy.asked()).toBe(4);
});

test('does not wait forever', async () => {
  const stuck = engine(Number.POSITIVE_INFINITY);
  expect(await removeContainer(stuck, 'c1', noPause)).toMatchObject({ ok: false, error: { message: 'refused 20' } });
});

test('does not retry if the engine is away', async () => {
  const away = engine(5, 'engine_unreachable');
  expect((await removeContainer(away, 'c1', noPause)).ok).toBe(false);
  expect(away.asked()).toBe(1);
});
