/** Prints the cost of parsing and writing heads and bodies, in ns of one core. Run: `node bench/http1_head.ts`. */
import { Buffer } from 'node:buffer';
import { stdout } from 'node:process';
import {
  findHeadEnd,
  formatReplyHead,
  formatRequestHead,
  parseReplyHead,
  parseRequestHead,
} from '../shared/net/http/http1_head.ts';
import {
  BodyReader,
  encodeChunk,
  encodeLastChunk,
  replyFraming,
  requestFraming,
} from '../shared/net/http/http1_framing.ts';

const LIMITS = { maxHeaders: 200 };

const REQUEST = Buffer.from(
  [
    'POST /v1/messages?beta=true HTTP/1.1',
    'Host: api.example.com',
    'Accept: application/json',
    'Accept-Encoding: gzip, deflate, br, zstd',
    'Connection: keep-alive',
    'Content-Type: application/json',
    'Content-Length: 412',
    'User-Agent: ExampleSDK/JS 0.61.0',
    'X-Stainless-Lang: js',
    'X-Stainless-Runtime-Version: v24.1.0',
    'anthropic-version: 2023-06-01',
    'x-trace-tag: 8f14e45fceea167a',
    'Authorization: Bearer svc_sentinel_0123456789abcdefghijklmnopqrstuvwxyz',
    '',
    '',
  ].join('\r\n'),
  'latin1',
);

const REPLY = Buffer.from(
  [
    'HTTP/1.1 200 OK',
    'Date: Mon, 02 Jun 2025 10:11:12 GMT',
    'Content-Type: application/json; charset=utf-8',
    'Transfer-Encoding: chunked',
    'Connection: keep-alive',
    'Cache-Control: no-cache, no-store',
    'X-Request-Id: req_011CPmVGsBNGyW7QX2WzXyZq',
    'Strict-Transport-Security: max-age=31536000; includeSubDomains; preload',
    'Via: 1.1 edge',
    'CF-Cache-Status: DYNAMIC',
    'Server: example',
    '',
    '',
  ].join('\r\n'),
  'latin1',
);

/** The minimum of several rounds, so that other programs' work does not count. */
function nsPerCall(calls: number, run: () => void): number {
  let best = Infinity;
  for (let round = 0; round < 12; round += 1) {
    const start = process.hrtime.bigint();
    for (let call = 0; call < calls; call += 1) run();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / calls);
  }
  return best;
}

function report(name: string, calls: number, run: () => void): number {
  const ns = nsPerCall(calls, run);
  stdout.write(`${name.padEnd(64)} ${ns.toFixed(0).padStart(8)} ns\n`);
  return ns;
}

function value<T>(result: { readonly ok: true; readonly value: T } | { readonly ok: false }): T {
  if (!result.ok) throw new Error('the bench input was refused');
  return result.value;
}

const out = Buffer.alloc(64 * 1024);

function requestOnce(): void {
  const head = value(parseRequestHead(REQUEST.toString('latin1', 0, findHeadEnd(REQUEST, 0)), LIMITS));
  value(requestFraming(head));
  out.write(formatRequestHead(head), 0, 'latin1');
}

function replyOnce(): void {
  const head = value(parseReplyHead(REPLY.toString('latin1', 0, findHeadEnd(REPLY, 0)), LIMITS));
  value(replyFraming(head, 'POST'));
  out.write(formatReplyHead(head), 0, 'latin1');
}

function chunkedBody(chunkBytes: number): Buffer {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < 64 * 1024; at += chunkBytes) pieces.push(...encodeChunk([new Uint8Array(chunkBytes)]));
  return Buffer.concat([...pieces, encodeLastChunk('')]);
}

function readBody(body: Uint8Array): void {
  const reader = new BodyReader({ kind: 'chunked' });
  value(reader.feed(body));
  if (!reader.done) throw new Error('the bench body was not read');
}

report('find the end of the request head', 200_000, () => void findHeadEnd(REQUEST, 0));
const requestText = REQUEST.toString('latin1');
const replyText = REPLY.toString('latin1');
report('parse a request of 12 headers', 100_000, () => void parseRequestHead(requestText, LIMITS));
report('parse a reply of 10 headers', 100_000, () => void parseReplyHead(replyText, LIMITS));
const request = report('parse + format, request of 12 headers', 100_000, () => {
  formatRequestHead(value(parseRequestHead(requestText, LIMITS)));
});
const reply = report('parse + format, reply of 10 headers', 100_000, () => {
  formatReplyHead(value(parseReplyHead(replyText, LIMITS)));
});
stdout.write(`${'both (target < 4000 ns)'.padEnd(64)} ${(request + reply).toFixed(0).padStart(8)} ns\n`);
report('bytes -> head -> framing -> bytes, request of 12 headers', 100_000, requestOnce);
report('bytes -> head -> framing -> bytes, reply of 10 headers', 100_000, replyOnce);
for (const chunkBytes of [64, 1024, 8192, 65_536]) {
  const body = chunkedBody(chunkBytes);
  report(`BodyReader, 64 KiB in chunks of ${chunkBytes}`, 2000, () => readBody(body));
}
