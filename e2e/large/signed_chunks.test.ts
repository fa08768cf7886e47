import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { countOf } from '../support/full_counts.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { connectThroughProxy } from '../support/raw_client.ts';
import { chunkSeed, ChunkVerifier } from '../support/sigv4_chunk_verifier.ts';
import type { Session } from '../support/svc.ts';
import { type Exchange, reply } from '../support/tls_upstream.ts';
import { startWorld, type World } from '../support/world.ts';
import { watchMemory } from './process_stats.ts';

// An upload whose chunks are signed (STREAMING-AWS4-HMAC-SHA256-PAYLOAD) is re-signed as it passes, in constant memory.

const MIB = 1024 * 1024;
const STORE = 'store.example.test';
const SECRET = plantSecret();
const DATA = randomBytes(64 * 1024);
const MEBIBYTES = countOf(256, 128);
const CHUNKS = (MEBIBYTES * MIB) / DATA.length;
/** Enough for the heap to reach the size that an upload of any length needs. */
const WARM_UP_CHUNKS = countOf(1024, 512);
const HEAD_OF_CHUNK = `${DATA.length.toString(16)};chunk-signature=`;
const ZEROS = '0'.repeat(64);
let world: World;
let session: Session;

beforeAll(async () => {
  world = await startWorld([STORE]);
  await world.svc.secret('user/key', SECRET);
  await world.svc.binding({
    host: STORE,
    scheme: 'sigv4-resign',
    credential_ref: 'vault://user/key',
    access_key_id: 'AKIAE2EEXAMPLE000004',
    region: 'us-east-1',
    service: 's3',
  });
  session = await world.svc.session();
});
afterAll(() => world.stop());

/** Reads the chunks and replies how many have the expected signature, including the last one. */
async function verify(exchange: Exchange): Promise<void> {
  const { request, reader } = exchange;
  const seed = chunkSeed(SECRET, request.header('authorization') ?? '', request.header('x-amz-date') ?? '');
  const verifier = new ChunkVerifier(seed);
  let signed = 0;
  for (let size = -1; size !== 0;) {
    const [, length = '', signature = ''] =
      /^([0-9a-f]+);chunk-signature=([0-9a-f]{64})\r\n$/.exec((await reader.until('\r\n'))?.toString() ?? '') ?? [];
    size = Number.parseInt(length, 16) || 0;
    const data = await reader.exactly(size);
    await reader.exactly(2);
    if (verifier.chunk(data, signature) && (size === 0 || data.equals(DATA))) signed += 1;
  }
  exchange.write(reply(200, String(signed)));
}

async function upload(chunks: number): Promise<string> {
  const lineBytes = HEAD_OF_CHUNK.length + ZEROS.length + 4;
  const bytes = chunks * (lineBytes + DATA.length) + `0;chunk-signature=${ZEROS}`.length + 4;
  const client = await connectThroughProxy(session, STORE);
  const head = [
    `PUT /bucket/large HTTP/1.1`,
    `Host: ${STORE}`,
    'X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    'Content-Encoding: aws-chunked',
    `X-Amz-Decoded-Content-Length: ${chunks * DATA.length}`,
    `Content-Length: ${bytes}`,
  ];
  client.send(`${head.join('\r\n')}\r\n\r\n`);
  for (let sent = 0; sent < chunks; sent += 1) {
    client.send(`${HEAD_OF_CHUNK}${ZEROS}\r\n`);
    client.send(DATA);
    client.send('\r\n');
    if (client.socket.writableNeedDrain) await once(client.socket, 'drain');
  }
  client.send(`0;chunk-signature=${ZEROS}\r\n\r\n`);
  const answer = await client.reply('PUT');
  client.close();
  return answer?.body.data.toString() ?? 'no answer';
}

it(`${MEBIBYTES} MiB of signed chunks arrive re-signed, and the sidecar grows by less than 64 MiB`, async () => {
  world.upstream.onRequest(verify);
  expect(await upload(WARM_UP_CHUNKS)).toBe(String(WARM_UP_CHUNKS + 1));
  const memory = watchMemory(world.svc.runFile.sidecar_pid);
  expect(await upload(CHUNKS)).toBe(String(CHUNKS + 1));
  expect(memory.stop()).toBeLessThan(64 * MIB);
});
