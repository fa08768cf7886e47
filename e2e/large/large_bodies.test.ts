import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { connectThroughProxy } from '../support/raw_client.ts';
import type { Session } from '../support/svc.ts';
import { startWorld, type World } from '../support/world.ts';
import { BodySum, patternChecksum, readLarge, writePattern } from './pattern.ts';
import { watchMemory } from './process_stats.ts';

// Bodies of any size pass in constant memory, in both directions, with and without a credential.

const MIB = 1024 * 1024;
/** A body that shows growth by its size, and one that shows only that it arrives. */
const LARGE = countOf(512, 192);
const SMALL = countOf(64, 8);
const PLAIN = 'plain.example.test';
const STREAMED = 'streamed.example.test';
const SECRET = plantSecret();
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([PLAIN, STREAMED]);
  await world.svc.secret('user/key', SECRET);
  await world.svc.binding({ host: STREAMED, scheme: 'bearer', credential_ref: 'vault://user/key', body: 'stream' });
  session = await world.svc.session();
});
afterAll(() => world.stop());

interface Size {
  readonly bytes: number;
  readonly chunked: boolean;
}

/** Uploads a body and downloads one of the same size. Returns what arrived on both sides. */
async function thereAndBack(host: string, { bytes, chunked }: Size): Promise<{ up: BodySum; down: BodySum }> {
  const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${bytes}`;
  const length = chunked ? null : bytes;
  const up = new BodySum(length);
  world.upstream.onRequest(async (exchange) => {
    while (!up.done) up.take((await exchange.reader.some()) ?? Buffer.alloc(0));
    exchange.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
    await writePattern(exchange.socket, bytes, { chunked });
  });
  const client = await connectThroughProxy(session, host);
  const got = readLarge(client.socket, length);
  client.send(`PUT /large HTTP/1.1\r\nHost: ${host}\r\n${framing}\r\n\r\n`);
  await writePattern(client.socket, bytes, { chunked });
  const { head, body } = await got;
  client.close();
  expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  return { up, down: body };
}

describe.each([
  { kind: 'on passthrough, with a length', host: PLAIN, chunked: false, mebibytes: LARGE },
  { kind: 'on passthrough, in chunks', host: PLAIN, chunked: true, mebibytes: SMALL },
  { kind: 'with a credential, with a length', host: STREAMED, chunked: false, mebibytes: SMALL },
  { kind: 'with a credential, in chunks', host: STREAMED, chunked: true, mebibytes: LARGE },
])('$kind', ({ host, chunked, mebibytes }) => {
  it(`${mebibytes} MiB each way arrive whole, and the sidecar grows by less than 96 MiB`, async () => {
    await thereAndBack(host, { bytes: 16 * MIB, chunked });
    const memory = watchMemory(world.svc.runFile.sidecar_pid);
    const bytes = mebibytes * MIB;
    const { up, down } = await thereAndBack(host, { bytes, chunked });
    const grown = memory.stop();
    const whole = { bytes, sum: patternChecksum(bytes) };
    expect([up, down]).toMatchObject([whole, whole]);
    // 64 MiB on a machine with nothing else to do, where garbage is collected sooner.
    expect(grown).toBeLessThan(96 * MIB);
    expect(world.upstream.last().headers('authorization')).toEqual(host === PLAIN ? [] : [`Bearer ${SECRET}`]);
  });
});
