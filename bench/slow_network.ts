/** `node bench/slow_network.ts [ROUNDS]`: a fresh `curl` to a bound host with 50 ms to it, through svc and directly. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../e2e/support/program.ts';
import { CleanUp } from './clean_up.ts';
import { startDelayingRelay } from './load/delaying_relay.ts';
import { CREDENTIALED_HOST, HTTP2_HOST, startNginx, type Upstream } from './load/nginx.ts';
import { type SvcProxy, startSvc } from './peers/svc.ts';
import { figure, table } from './table.ts';

const ONE_WAY_MS = 25;
const DEFAULT_ROUNDS = 15;
const TARGET_RATIO = 0.5;

/** One request, by a program that starts for it and then ends. */
interface Way {
  readonly name: string;
  readonly config: Readonly<Record<string, string>>;
}

interface Compared {
  readonly name: string;
  readonly direct: Way;
  readonly svc: Way;
}

function compared(
  name: string,
  host: string,
  port: number,
  upstream: Upstream,
  svc: SvcProxy,
  post: boolean,
): Compared {
  const of: Record<string, string> = {
    url: `https://${host}/small`,
    output: '/dev/null',
    'write-out': '%{http_code} %{time_total}',
    ...(post ? { data: 'x' } : {}),
  };
  const direct = {
    ...of,
    cacert: upstream.caFile,
    header: `Authorization: Bearer ${upstream.bearer}`,
    'connect-to': `${host}:443:127.0.0.1:${port}`,
    noproxy: '*',
  };
  const proxied = {
    ...of,
    cacert: svc.caFile,
    proxy: `http://127.0.0.1:${svc.port}`,
    'proxy-user': `${svc.user}:${svc.password}`,
    noproxy: '',
  };
  return { name, direct: { name: 'direct', config: direct }, svc: { name: 'svc', config: proxied } };
}

/** Milliseconds of the request, as curl counts them: without its own start. */
async function requestMs({ name, config }: Way): Promise<number> {
  const input = Object.entries(config)
    .map(([key, value]) => `${key} = "${value}"\n`)
    .join('');
  const done = await run('curl', ['--silent', '--show-error', '--max-time', '30', '--config', '-'], { input });
  const [status = '', seconds = ''] = done.stdout.split(' ');
  if (status !== '200') throw new Error(`${name}: status ${status || 'none'}: ${done.stderr}`);
  return Number(seconds) * 1000;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function compare({ name, direct, svc }: Compared, rounds: number): Promise<readonly string[]> {
  const first = await requestMs(svc);
  const taken: { readonly direct: number; readonly svc: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    taken.push({ direct: await requestMs(direct), svc: await requestMs(svc) });
    process.stderr.write('.');
  }
  const ratios = taken.map((one) => one.svc / one.direct);
  return [
    name,
    figure(median(taken.map((one) => one.direct))),
    figure(first),
    figure(median(taken.map((one) => one.svc))),
    figure(median(ratios)),
    `${figure(Math.min(...ratios))} to ${figure(Math.max(...ratios))}`,
  ];
}

async function main(): Promise<void> {
  const rounds = Number(process.argv[2] ?? DEFAULT_ROUNDS);
  const directory = mkdtempSync(join(tmpdir(), 'svc-slow-network-'));
  const cleanUp = new CleanUp();
  cleanUp.do(() => rmSync(directory, { recursive: true, force: true }));
  cleanUp.onSignal();
  try {
    const upstream = cleanUp.add(await startNginx(directory));
    const http1 = cleanUp.add(await startDelayingRelay(upstream.port, ONE_WAY_MS));
    const http2 = cleanUp.add(await startDelayingRelay(upstream.http2Port, ONE_WAY_MS));
    const slow = { ...upstream, port: http1.port, http2Port: http2.port };
    const svc = cleanUp.add(await startSvc({ directory, upstream: slow }));
    const cases = [
      compared('GET, HTTP/2', HTTP2_HOST, slow.http2Port, upstream, svc, false),
      compared('GET, HTTP/1.1', CREDENTIALED_HOST, slow.port, upstream, svc, false),
      compared('POST, HTTP/2', HTTP2_HOST, slow.http2Port, upstream, svc, true),
    ];
    const rows: (readonly string[])[] = [];
    for (const one of cases) rows.push(await compare(one, rounds));
    const header = ['Request', 'direct, ms', 'svc, first', 'svc, later', 'ratio', 'spread'];
    process.stdout.write(
      `\n${table(header, rows)}\n\ntarget for GET: at most ${TARGET_RATIO}; ${rounds} rounds in turns\n`,
    );
  } finally {
    await cleanUp.run();
  }
}

await main();
