import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';

import { SAMPLE_SEARCH_KEY } from '../../shared/inject/testing/sample_requests.ts';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { searchDifference } from '../../tools/indistinguishable.ts';
import { Connection } from '../../machine/connection/connection.ts';
import type { Replied } from '../exchange/outcome.ts';
import { readReply } from '../testing/read_reply.ts';
import { ScriptedStream, turns } from '../testing/scripted_stream.ts';
import { relay } from './relay.ts';

const RIGHT = 'ghp_16C7e42F292c6912E7710c838347Ae178B4a';
const WRONG = 'ghp_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ';

type Coding = (body: Buffer) => Buffer;
const CODINGS: Readonly<Record<string, Coding>> = {
  identity: (body) => body,
  gzip: gzipSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
  deflate: deflateSync,
};

type Framing = (body: Buffer) => readonly [header: string, body: Buffer];
const FRAMINGS: Readonly<Record<string, Framing>> = {
  'Content-Length': (body) => [`Content-Length: ${body.length}\r\n`, body],
  chunks: (body) => ['Transfer-Encoding: chunked\r\n', chunkBody(body)],
  'the end of the connection': (body) => ['', body],
};

function chunkBody(body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
}

/** What a client receives, write by write, if the sender's bytes arrive in pieces of 5,000. */
async function writesOf(reply: Buffer, secret: string): Promise<readonly Buffer[]> {
  const [stream, clientStream] = [new ScriptedStream(), new ScriptedStream()];
  const [upstream, client] = [new Connection(stream), new Connection(clientStream)];
  const sending = (async () => {
    for (let at = 0; at < reply.length; at += 5000) {
      stream.send(reply.subarray(at, at + 5000));
      await turns(20);
    }
    stream.send(null);
  })();
  const outcome: Replied = {
    kind: 'replied',
    facts: { host: 'api.example.test', method: 'GET', path: '/', binding: null },
    mediation: 'binding',
    reply: await readReply(upstream),
    version: '1.1',
    staysOpen: true,
    scrub: compileScrubPatterns([secret], SAMPLE_SEARCH_KEY),
  };
  const lanes = { take: fail, dial: fail, give: () => undefined };
  await relay(client, outcome, lanes, () => 'counted');
  await sending;
  await turns(20);
  return clientStream.got;
}

function fail(): never {
  throw new Error('nothing is dialled');
}

/** A reply whose body has a guess right before each 16 KiB boundary, where decoders split their output. */
function guessing(guess: string, coding: string, framing: string): Buffer {
  const block = Buffer.alloc(16 * 1024, '.');
  block.write(guess, block.length - guess.length, 'latin1');
  const plain = Buffer.concat([block, block, block, Buffer.from('the end')]);
  const coded = CODINGS[coding]?.(plain) ?? plain;
  const [header, body] = FRAMINGS[framing]?.(coded) ?? ['', coded];
  const encoding = coding === 'identity' ? '' : `Content-Encoding: ${coding}\r\n`;
  return Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${encoding}${header}\r\n`), body]);
}

describe('invariant 9, indistinguishability', () => {
  const cases = Object.keys(CODINGS).flatMap((coding) => Object.keys(FRAMINGS).map((framing) => ({ coding, framing })));
  test.each(cases)(
    'the reply does not reveal whether a guess is right, in a document in $coding, up to $framing',
    async (reply) => {
      for (const known of [1, 8, 30, 39]) {
        const document = guessing(RIGHT.slice(0, known), reply.coding, reply.framing);
        const [right, wrong] = [await writesOf(document, RIGHT), await writesOf(document, WRONG)];
        expect(right.map(({ length }) => length)).toEqual(wrong.map(({ length }) => length));
        expect(Buffer.concat(right).equals(Buffer.concat(wrong))).toBe(true);
      }
    },
  );

  test('no reply of the search distinguishes two credentials that it does not contain', () => {
    expect(searchDifference(1500, 20_261_122).found).toBeNull();
  }, 120_000);
});
