import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';

import { SAMPLE_SEARCH_KEY } from '../../shared/inject/testing/sample_requests.ts';
import { DEFAULT_LIMITS } from '../../shared/model/limits.ts';
import { formatReplyHead } from '../../shared/net/http/http1_head.ts';
import { parseReplyFields } from '../../shared/net/http/http2_head.ts';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { searchDifference } from '../../tools/indistinguishable.ts';
import { Connection } from '../../machine/connection/connection.ts';
import type { Replied } from '../exchange/outcome.ts';
import { readReply } from '../testing/read_reply.ts';
import { ScriptedHttp2Stream, ScriptedStream, turns } from '../testing/scripted_stream.ts';
import { isHttp2, onlyInHttp1 } from '../testing/data_plane.ts';
import { ClientStream } from '../tunnel/client_stream.ts';
import { UnsentAllowance } from '../tunnel/discard_unsent.ts';
import { relay } from '../tunnel/relay.ts';
import { relayStream } from '../tunnel/relay_stream.ts';

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
  ...(isHttp2() ? {} : { chunks: (body: Buffer) => ['Transfer-Encoding: chunked\r\n', chunkBody(body)] as const }),
  'the end of the connection': (body) => ['', body],
};

function chunkBody(body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
}

/** What a client receives, write by write, if the sender's bytes arrive in pieces of 5,000. */
async function writesOf(reply: Buffer, secret: string): Promise<readonly Buffer[]> {
  const stream = new ScriptedStream();
  const upstream = new Connection(stream);
  const scrub = compileScrubPatterns([secret], SAMPLE_SEARCH_KEY);
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
    scrub,
  };
  const clientStream = isHttp2() ? await relayOverHttp2(outcome) : await relayOverHttp1(outcome);
  await sending;
  await turns(20);
  return clientStream.got;
}

async function relayOverHttp1(outcome: Replied): Promise<ScriptedStream> {
  const stream = new ScriptedStream();
  const lanes = {
    take: fail,
    dial: fail,
    give: () => undefined,
    keepToTunnel: () => undefined,
    onWebSockets: () => undefined,
  };
  await relay(new Connection(stream), outcome, lanes, () => 'counted');
  return stream;
}

/** The same reply as HTTP/2 has it: its body ends with its stream. */
async function relayOverHttp2({ reply, ...outcome }: Replied): Promise<ScriptedHttp2Stream> {
  const fields = reply.head.fields.flatMap(({ name, value }) => [name, value]);
  const head = parseReplyFields([':status', String(reply.head.status), ...fields], [], DEFAULT_LIMITS);
  if (!head.ok) throw new Error(head.error.message);
  const raw = Buffer.from(formatReplyHead(head.value), 'latin1');
  const stream = new ScriptedHttp2Stream();
  const asHttp2 = { ...outcome, version: '2', reply: { ...reply, head: head.value, raw, framing: TO_END } } as const;
  await relayStream(new ClientStream(stream.asHttp2, new UnsentAllowance()), asHttp2, () => 'counted');
  return stream;
}

const TO_END = { kind: 'until-close' } as const;

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

  test('nor where a reply is cut off', async () => {
    const document = guessing(RIGHT.slice(0, 39), 'identity', 'Content-Length').subarray(0, -9);
    const [right, wrong] = [await writesOf(document, RIGHT), await writesOf(document, WRONG)];
    expect(right.length).toBeGreaterThan(1);
    expect(right.map(String)).toEqual(wrong.map(String));
  });

  // It is of the scrubbers, which both versions share.
  test.for(onlyInHttp1([null]))('no reply of the search distinguishes two credentials that it does not contain', () => {
    expect(searchDifference(1500, 20_261_122).found).toBeNull();
  });
});
