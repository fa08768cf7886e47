import { Agent } from 'node:http';
import { afterEach, expect, it, vi } from 'vitest';
import { LocalApi } from './local_api.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

it('closes the connection of a single call also if the call cannot be sent', async () => {
  const closed = vi.spyOn(Agent.prototype, 'destroy');
  const api = new LocalApi(() => ({ origin: new URL('http://127.0.0.1:1'), hostToken: 'not\na header' }));
  await expect(api.send('GET', '/', { isOnce: true })).rejects.toThrow('authorization');
  expect(closed).toHaveBeenCalledOnce();
});
