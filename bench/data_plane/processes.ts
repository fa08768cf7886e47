import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { connect as connectTls } from 'node:tls';

/** The host of the upstream; the binding is for `bound.` before it. */
export const HOST = 'bench.example.test';
export const BOUND_HOST = `bound.${HOST}`;

/** A process of the bench, and what it reported when it was ready. */
export interface Started {
  readonly child: ChildProcess;
  readonly told: Record<string, string | number>;
}

interface Usage {
  readonly cpu: NodeJS.CpuUsage;
  readonly rss: number;
}

export async function startProcess(file: string, args: readonly string[]): Promise<Started> {
  const child = fork(new URL(file, import.meta.url), args, {
    execArgv: process.env['BENCH_NODE_FLAGS']?.split(' ') ?? [],
  });
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${file} ended before it was ready`)));
  const [told] = await Promise.race([once(child, 'message'), ended]);
  return { child, told };
}

export async function usage({ child }: Started): Promise<Usage> {
  child.send('usage');
  const [told] = await once(child, 'message');
  return told;
}

/** Opens TLS to the upstream, through the proxy if there is one. `offered`: the versions of HTTP that the client offers. */
export async function openTls(
  host: string,
  upstream: Started,
  proxy: Started | null,
  offered: readonly string[] = [],
): Promise<TLSSocket> {
  const socket = connectTcp({ port: Number((proxy ?? upstream).told['port']), host: '127.0.0.1', noDelay: true });
  if (proxy !== null) {
    const basic = Buffer.from(`${proxy.told['sessionId']}:${proxy.told['token']}`).toString('base64');
    socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\nProxy-Authorization: Basic ${basic}\r\n\r\n`);
    await once(socket, 'data');
  }
  const ca = String((proxy ?? upstream).told['caPem']);
  const tls = connectTls({
    socket,
    servername: host,
    ca,
    ...(offered.length === 0 ? {} : { ALPNProtocols: [...offered] }),
  });
  await once(tls, 'secureConnect');
  return tls;
}

/** The upstream, and the settings to start the proxies before it. */
export async function startUpstream(): Promise<{ readonly upstream: Started; readonly args: readonly string[] }> {
  const upstream = await startProcess('./upstream_process.ts', [HOST]);
  const ca = Buffer.from(String(upstream.told['caPem'])).toString('base64');
  return { upstream, args: [HOST, String(upstream.told['port']), ca] };
}
