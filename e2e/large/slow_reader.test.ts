import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { countOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { connectThroughProxy } from '../support/raw_client.ts';
import type { Session } from '../support/svc.ts';
import { reply } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';
import { patternChecksum, readLarge, writePattern } from './pattern.ts';
import { watchMemory } from './process_stats.ts';

// A client that does not read delays only its own upstream, and its unread bytes take no memory.

const MIB = 1024 * 1024;
const BODY_BYTES = countOf(128, 64) * MIB;
const UPLOAD_BYTES = 64 * MIB;
const QUICK = countOf(100, 20);
const PLAIN = 'plain.example.test';
const BOUND = 'bound.example.test';
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([PLAIN, BOUND]);
  await world.svc.secret('user/key', plantSecret());
  await world.svc.binding({ host: BOUND, scheme: 'bearer', credential_ref: 'vault://user/key' });
  session = await world.svc.session();
});
afterAll(() => world.stop());
beforeEach(() => world.upstream.reset());

describe.each([
  { kind: 'without a credential', host: PLAIN },
  { kind: 'with one', host: BOUND },
])('a client $kind that stops reading', ({ host }) => {
  it('delays no other client, costs no memory, and gets its whole reply when it finally reads', async () => {
    let written = 0;
    world.upstream.onRequest(async (exchange) => {
      if (exchange.request.target !== '/large') return exchange.write(reply(200));
      exchange.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
      const counting = setInterval(() => (written = exchange.socket.bytesWritten), 20);
      await writePattern(exchange.socket, BODY_BYTES).finally(() => clearInterval(counting));
    });
    const memory = watchMemory(world.svc.runFile.sidecar_pid);
    const slow = await connectThroughProxy(session, host);
    slow.send(`GET /large HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    slow.socket.pause();

    for (const other of [PLAIN, BOUND]) {
      const quick = await connectThroughProxy(session, other);
      for (let count = 0; count < QUICK; count += 1) {
        const seen = await quick.exchange(`GET /${count} HTTP/1.1\r\nHost: ${other}\r\n\r\n`);
        expect(seen.body.data.toString()).toBe('ok');
      }
      quick.close();
    }
    expect(written).toBeLessThan(BODY_BYTES / 2);
    expect(memory.stop()).toBeLessThan(32 * MIB);

    const { body } = await readLarge(slow.socket, BODY_BYTES);
    expect(body).toMatchObject({ bytes: BODY_BYTES, sum: patternChecksum(BODY_BYTES) });
    slow.close();
  });
});

describe('an upstream that does not read', () => {
  it('delays only its own client', async () => {
    const later = Promise.withResolvers<void>();
    world.upstream.onRequest(async (exchange) => {
      if (exchange.request.target !== '/large') return exchange.write(reply(200));
      await later.promise;
      let read = 0;
      while (read < UPLOAD_BYTES) read += (await exchange.reader.some())?.length ?? UPLOAD_BYTES;
      exchange.write(reply(200, String(read)));
    });
    const memory = watchMemory(world.svc.runFile.sidecar_pid);
    const client = await connectThroughProxy(session, PLAIN);
    client.send(`PUT /large HTTP/1.1\r\nHost: ${PLAIN}\r\nContent-Length: ${UPLOAD_BYTES}\r\n\r\n`);
    const sent = writePattern(client.socket, UPLOAD_BYTES);
    const quick = await connectThroughProxy(session, BOUND);
    for (let count = 0; count < QUICK; count += 1) {
      expect((await quick.exchange(`GET /${count} HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`)).status).toBe(200);
    }
    quick.close();
    expect(client.socket.writableNeedDrain).toBe(true);
    expect(memory.stop()).toBeLessThan(32 * MIB);
    later.resolve();
    await sent;
    expect((await client.reply('PUT'))?.body.data.toString()).toBe(String(UPLOAD_BYTES));
    client.close();
  });
});
