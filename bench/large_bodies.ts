/**
 * Memory use for bodies of any size: `node bench/large_bodies.ts [GiB]` sends one of 10 GiB (or the given size) each way
 * through the whole data plane, with a credential and without, and watches the proxy's memory.
 */
import { once } from 'node:events';
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
  { name: 'download, passthrough', host: HOST, move: download },
  { name: 'download, bound: scrubbed', host: BOUND_HOST, move: download },
  { name: 'upload, passthrough', host: HOST, move: upload },
  { name: 'upload, bound: `body: stream`', host: BOUND_HOST, move: upload },
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
  const gibibytes = Number(process.argv[2] ?? 10);
  const { upstream, args } = await startUpstream();
  const rows: string[][] = [];
  for (const { name, host, move } of WAYS) {
    const proxy = await startProcess('./proxy_process.ts', args);
    const through = async (bytes: number): Promise<void> => {
      const socket = await openTls(host, upstream, proxy);
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
