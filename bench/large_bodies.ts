/**
 * Memory use for bodies of any size: `node bench/large_bodies.ts [GiB] [name]` sends one of 10 GiB (or the given size) each way
 * through the whole data plane, with a credential and without, and watches the proxy's memory.
 */
import { once } from 'node:events';
import type { ClientHttp2Session } from 'node:http2';
import { connect } from 'node:http2';
import type { TLSSocket } from 'node:tls';

import type { Started } from './data_plane/processes.ts';
import { BOUND_HOST, HOST, openTls, startProcess, startUpstream, usage } from './data_plane/processes.ts';
import { figure, table } from './table.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const LOOK_EVERY_MS = 250;
/** Sent before the measurement, so that the compilers and buffers of a busy connection do not count as growth. */
const WARM_UP_BYTES = GIB / 2;
const PIECE = Buffer.alloc(64 * 1024, '{"id":1234,"name":"a value of some length","ok":true},');

const WAYS = [
  { name: 'download, passthrough', host: HOST, move: download, offered: [] },
  { name: 'download, bound: scrubbed', host: BOUND_HOST, move: download, offered: [] },
  { name: 'upload, passthrough', host: HOST, move: upload, offered: [] },
  { name: 'upload, bound: `body: stream`', host: BOUND_HOST, move: upload, offered: [] },
  { name: 'HTTP/2 download, passthrough', host: HOST, move: downloadOnStream, offered: ['h2'] },
  { name: 'HTTP/2 download, bound: scrubbed', host: BOUND_HOST, move: downloadOnStream, offered: ['h2'] },
  { name: 'HTTP/2 upload, passthrough', host: HOST, move: uploadOnStream, offered: ['h2'] },
  { name: 'HTTP/2 upload, bound: `body: stream`', host: BOUND_HOST, move: uploadOnStream, offered: ['h2'] },
];

async function download(socket: TLSSocket, host: string, bytes: number): Promise<void> {
  socket.write(`GET /${bytes} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  let got = -1;
  for await (const data of socket as AsyncIterable<Buffer>) {
    got = got === -1 ? data.length - data.indexOf('\r\n\r\n') - 4 : got + data.length;
    if (got >= bytes) break;
  }
  if (got !== bytes) throw new Error(`${got} bytes arrived instead of ${bytes}`);
}

async function upload(socket: TLSSocket, host: string, bytes: number): Promise<void> {
  const answered = once(socket, 'data');
  socket.write(`PUT /upload HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${bytes}\r\n\r\n`);
  for (let left = bytes; left > 0; left -= PIECE.length) {
    if (!socket.write(left < PIECE.length ? PIECE.subarray(0, left) : PIECE)) await once(socket, 'drain');
  }
  const [reply]: Buffer[] = await answered;
  if (reply?.toString('latin1').startsWith('HTTP/1.1 204') !== true) throw new Error('the upload was not accepted');
}

function openSession(socket: TLSSocket, host: string): ClientHttp2Session {
  socket.allowHalfOpen = false;
  return connect(`https://${host}`, { createConnection: () => socket, settings: { initialWindowSize: 1024 ** 2 } });
}

async function downloadOnStream(socket: TLSSocket, host: string, bytes: number): Promise<void> {
  const session = openSession(socket, host);
  let got = 0;
  for await (const data of session.request({ ':path': `/${bytes}` }) as AsyncIterable<Buffer>) got += data.length;
  session.destroy();
  if (got !== bytes) throw new Error(`${got} bytes arrived instead of ${bytes}`);
}

async function uploadOnStream(socket: TLSSocket, host: string, bytes: number): Promise<void> {
  const session = openSession(socket, host);
  const stream = session.request({ ':method': 'PUT', ':path': '/0' });
  const answered = once(stream, 'response');
  for (let left = bytes; left > 0; left -= PIECE.length) {
    if (!stream.write(left < PIECE.length ? PIECE.subarray(0, left) : PIECE)) await once(stream, 'drain');
  }
  stream.end();
  const [headers]: { ':status'?: number }[] = await answered;
  session.destroy();
  if (headers?.[':status'] !== 200) throw new Error('the upload was not accepted');
}

function soon(): Promise<string> {
  return new Promise((resolve) => void setTimeout(resolve, LOOK_EVERY_MS, 'soon'));
}

/** Resident memory of the proxy during `moving`: at the start, and the maximum. */
async function watchMemory(proxy: Started, moving: () => Promise<void>): Promise<{ begin: number; most: number }> {
  const begin = (await usage(proxy)).rss;
  let most = begin;
  const moved = moving().then(() => 'moved');
  while ((await Promise.race([moved, soon()])) === 'soon') most = Math.max(most, (await usage(proxy)).rss);
  return { begin, most: Math.max(most, (await usage(proxy)).rss) };
}

async function main(): Promise<void> {
  const [size = '10', only = ''] = process.argv.slice(2);
  const gibibytes = Number(size);
  const { upstream, args } = await startUpstream();
  const rows: string[][] = [];
  for (const { name, host, move, offered } of WAYS.filter((way) => way.name.includes(only))) {
    const proxy = await startProcess('./proxy_process.ts', args);
    const through = async (bytes: number): Promise<void> => {
      const socket = await openTls(host, upstream, proxy, offered);
      await move(socket, host, bytes);
      socket.destroy();
    };
    await through(WARM_UP_BYTES);
    const start = performance.now();
    const { begin, most } = await watchMemory(proxy, () => through(gibibytes * GIB));
    const seconds = (performance.now() - start) / 1000;
    const rate = (gibibytes * 1024) / seconds;
    rows.push([
      name,
      figure(seconds),
      figure(rate),
      figure(begin / MIB),
      figure(most / MIB),
      figure((most - begin) / MIB),
    ]);
    proxy.child.disconnect();
  }
  upstream.child.disconnect();
  const columns = [`${gibibytes} GiB`, 'seconds', 'MiB/s', 'RSS at start, MiB', 'maximum RSS, MiB', 'growth, MiB'];
  process.stdout.write(`${table(columns, rows)}\n`);
}

await main();
