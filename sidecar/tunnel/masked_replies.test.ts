import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DataPlane } from '../testing/data_plane.ts';

import { answering, bearerBinding, readUntil, startDataPlane } from '../testing/data_plane.ts';

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

let plane: DataPlane;

beforeEach(async () => {
  plane = await startDataPlane({ maxMaskedReplies: 2 });
  plane.credentials.set({ owner: 'personal', path: 'user/demo' }, SECRET);
  plane.policy.use([bearerBinding(HOST)]);
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** The statuses of three requests, one after the other. */
async function statuses(reply: string): Promise<readonly string[]> {
  await plane.upstream(
    HOST,
    answering(() => reply),
  );
  const told: string[] = [];
  for (let request = 0; request < 4; request += 1) {
    const client = await plane.open(HOST);
    client.write(GET);
    const got = await readUntil(client, (text) => /\r\n\r\n[^]/.test(text));
    told.push(got.slice(9, 12));
    client.destroy();
  }
  return told;
}

const replyOf = (head: string, body: string): string =>
  `HTTP/1.1 200 OK\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`;

test.each([
  ['in the body', replyOf('', SECRET)],
  ['in the head', replyOf(`X-Echo: ${SECRET}\r\n`, 'ok')],
  ['in the body of a long reply', replyOf('', `${'.'.repeat(100_000)}${SECRET}`)],
])(
  'a session whose replies held the credential %s too often gets no more of it, which is recorded',
  async (_where, reply) => {
    expect(await statuses(reply)).toEqual(['200', '200', '200', '403']);
    const types = plane.audit.events.map(({ type }) => type);
    expect(types.filter((type) => type === 'sandbox.proxy.binding_paused')).toHaveLength(1);
    expect(plane.audit.events.at(-1)?.data).toMatchObject({ 'svc.proxy.reason': 'binding_paused' });
  },
);

test('replies without the credential are not counted', async () => {
  expect(await statuses(replyOf('', SECRET.slice(1)))).toEqual(['200', '200', '200', '200']);
});
