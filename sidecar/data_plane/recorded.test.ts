import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { createAnswering, readUntil, startDataPlane } from '../testing/data_plane.ts';
import { turns } from '../testing/scripted_stream.ts';

/** What is recorded of a request, and when; over_http2.test.ts runs these over HTTP/2 too. */

const HOST = 'api.example.test';
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
const DONE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone';

let plane: DataPlane;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, 'planted-secret-0123456789');
});

afterEach(async () => {
  vi.restoreAllMocks();
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

test.each([
  ['a reply', (): void => plane.policy.use([]), 'done'],
  ['a refusal', (): void => plane.policy.refuse('snapshot_expired'), 'snapshot_expired'],
])('sends nothing of %s before its event is in the spool', async (_what, arrange, expected) => {
  await plane.upstream(
    HOST,
    createAnswering(() => DONE),
  );
  arrange();
  const written = Promise.withResolvers<void>();
  const recording = Promise.withResolvers<void>();
  vi.spyOn(plane.audit, 'recordInTurn').mockImplementation(() => {
    recording.resolve();
    return written.promise;
  });
  const client = await plane.open(HOST);
  let got = '';
  client.on('data', (data: Buffer) => (got += data.toString('latin1')));
  client.write(GET);
  await recording.promise;
  await turns(50);
  expect(got).toBe('');
  const answered = readUntil(client, (text) => text.includes(expected));
  written.resolve();
  expect(await answered).toContain(expected);
  client.destroy();
});

test('records a request that fails through a bug, and ends the tunnel without an answer', async () => {
  plane.policy.use([bearerBinding(HOST)]);
  vi.spyOn(plane.credentials, 'resolve').mockImplementation(() => {
    throw new TypeError('a bug');
  });
  await plane.upstream(
    HOST,
    createAnswering(() => DONE),
  );
  const client = await plane.open(HOST);
  client.write(GET);
  expect(await readUntil(client, () => false)).not.toContain('HTTP/1.1 200');
  await expect.poll(() => plane.openTunnels()).toBe(0);
  expect(plane.audit.events.map((event) => event.data['svc.proxy.reason'])).toEqual(['internal_error']);
  expect(plane.errors.splice(0)).toEqual([expect.stringContaining('TypeError')]);
});
