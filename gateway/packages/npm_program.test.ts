import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { npmOnPath } from './npm_program.ts';

test('npm that was stopped before its start is not called missing', async () => {
  const done = await npmOnPath({ PATH: '/usr/bin:/bin' })(['ci'], tmpdir(), AbortSignal.abort());
  expect(done).toEqual({ ok: false, error: 'it took too long, or was stopped' });
});

test('npm that is not there is called so', async () => {
  const never = new AbortController().signal;
  for (const env of [{}, { PATH: '/nonexistent' }]) {
    const done = await npmOnPath(env)(['ci'], tmpdir(), never);
    expect(done).toEqual({ ok: false, error: 'npm is not on the PATH; install Node.js with npm' });
  }
});
