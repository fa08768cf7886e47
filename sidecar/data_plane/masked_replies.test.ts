import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DataPlane } from '../testing/data_plane.ts';

import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { createAnswering, onlyInHttp1, readUntil, startDataPlane } from '../testing/data_plane.ts';

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
async function statuses(reply: string, request = GET): Promise<readonly string[]> {
  await plane.upstream(
    HOST,
    createAnswering(() => reply),
  );
  const told: string[] = [];
  for (let count = 0; count < 4; count += 1) {
    const client = await plane.open(HOST);
    client.write(request);
    const got = await readUntil(client, (text) => /HTTP\/1.1 (?:101[^]*\r\n\r\n|[2-5][^]*\r\n\r\n[^])/.test(text));
    told.push(/HTTP\/1.1 (101|[2-5]..)/.exec(got)?.[1] ?? '');
    client.destroy();
  }
  return told;
}

const UPGRADE = 'Upgrade: websocket\r\nConnection: Upgrade\r\n';

test.for(onlyInHttp1([null]))('counts the head of a 101 reply', async () => {
  const request = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n${UPGRADE}Sec-WebSocket-Version: 13\r\n\r\n`;
  const reply = `HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}X-Echo: ${SECRET}\r\n\r\n`;
  expect(await statuses(reply, request)).toEqual(['101', '101', '101', '403']);
});

const replyOf = (head: string, body: string): string =>
  `HTTP/1.1 200 OK\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`;

test.each([
  ['in the body', replyOf('', SECRET)],
  ['in the head', replyOf(`X-Echo: ${SECRET}\r\n`, 'ok')],
  ['in the head of an interim reply', `HTTP/1.1 103 Early Hints\r\nLink: <${SECRET}>\r\n\r\n${replyOf('', 'ok')}`],
  ['in the body of a long reply', replyOf('', `${'.'.repeat(100_000)}${SECRET}`)],
])(
  'a session whose replies contained the credential %s too often no longer gets it, and that is recorded',
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
