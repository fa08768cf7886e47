import type { CleanUp } from './clean_up.ts';
import type { Case, LoadCase, StreamsCase, TransferCase } from './cases.ts';
import { runH2load } from './load/h2load.ts';
import { BULK_BYTES, CREDENTIALED_HOST, HTTP2_HOST, PASSTHROUGH_HOST, type Upstream } from './load/nginx.ts';
import { cpuMicroseconds, forgetPeak, peakResidentMib, processTree, residentMib } from './load/process_stats.ts';
import type { Listening } from './load/programs.ts';
import { type ForwarderSettings, startForwarder } from './load/start_forwarder.ts';
import { runTransfer } from './load/transfer.ts';
import { runWrk } from './load/wrk.ts';
import { forwarderSettingsOf, type Proxy } from './peers/proxy.ts';
import type { Sample } from './sample.ts';

/** A way for the load; `direct` uses the same forwarder without a proxy behind it. */
export interface Subject {
  readonly proxy: Proxy | null;
  /** Leads to the credentialed host; null if the proxy has no tunnels. */
  readonly forwarder: Listening | null;
  /** Leads to the credentialed host of HTTP/2; null if the proxy carries none. */
  readonly streams: Listening | null;
}

export async function subjectOf(proxy: Proxy | null, upstream: Upstream, cleanUp: CleanUp): Promise<Subject> {
  const start = async (settings: ForwarderSettings): Promise<Listening> => cleanUp.add(await startForwarder(settings));
  if (proxy === null) {
    return { proxy, forwarder: await start({ port: upstream.port, connect: null }), streams: null };
  }
  if (proxy.kind === 'front') {
    return { proxy, forwarder: null, streams: await start({ port: proxy.port, connect: null }) };
  }
  const forwarder = await start(forwarderSettingsOf(proxy, CREDENTIALED_HOST));
  const streams = proxy.kind === 'tunnel' ? null : await start(forwarderSettingsOf(proxy, HTTP2_HOST));
  return { proxy, forwarder, streams };
}

const NOT_MEASURED = { cpuMicroseconds: null, companionMicroseconds: null, residentMib: null, extraMib: null };

function cpuOf(proxy: Proxy): readonly [number, number] {
  return [cpuMicroseconds(proxy.pid), proxy.companion === null ? 0 : cpuMicroseconds(proxy.companion.pid)];
}

/** Runs the load and returns the proxy's CPU time per unit. */
async function withCpu<T extends { readonly units: number }>(proxy: Proxy, run: () => Promise<T>) {
  const [own, companion] = cpuOf(proxy);
  const done = await run();
  const [ownAfter, companionAfter] = cpuOf(proxy);
  return {
    ...done,
    cpuMicroseconds: (ownAfter - own) / done.units,
    companionMicroseconds: proxy.companion === null ? null : (companionAfter - companion) / done.units,
    residentMib: residentMib(proxy.pid),
  };
}

/** The authority as an https client writes it: without the default port. */
function formatAuthority(authority: string): string {
  return authority.replace(/:443$/, '');
}

type Measured = Omit<Sample, 'round' | 'caseId' | 'subject'>;

async function measureLoad(
  of: LoadCase,
  { proxy, port }: { readonly proxy: Proxy | null; readonly port: number },
  upstream: Upstream,
  seconds: number,
): Promise<Measured> {
  const own =
    proxy === null
      ? [`Host: ${CREDENTIALED_HOST}`, `Authorization: Bearer ${upstream.bearer}`]
      : [`Host: ${formatAuthority(proxy.authority(CREDENTIALED_HOST))}`];
  const headers = of.newTunnel ? [...own, 'Connection: close'] : own;
  const run = async () => {
    const { path, connections } = of;
    const report = await runWrk({ port, path, headers, connections, seconds });
    // wrk's clock starts after the handshake, so it says nothing about new tunnels.
    const latency = of.newTunnel
      ? { p50Ms: null, p99Ms: null }
      : { p50Ms: report.p50 / 1000, p99Ms: report.p99 / 1000 };
    return { units: report.requests, seconds: report.duration / 1e6, ...latency, failed: report.failed };
  };
  if (proxy === null) return { ...NOT_MEASURED, ...(await run()) };
  return { ...(await withCpu(proxy, run)), extraMib: null };
}

async function measureStreams(of: StreamsCase, proxy: Proxy, port: number, seconds: number): Promise<Measured> {
  const run = async () => {
    const { requests, failed } = await runH2load({
      port,
      host: HTTP2_HOST,
      path: of.path,
      streams: of.streams,
      seconds,
    });
    return { units: requests, seconds, failed };
  };
  return { ...(await withCpu(proxy, run)), p50Ms: null, p99Ms: null, extraMib: null };
}

const TRANSFER_ATTEMPTS = 5;
/** A share of the file that is representative of the whole. */
const LEAST_SHARE = 1 / 8;

/**
 * A transfer that the proxy cuts off counts for the share that it moved: squid 5 ends most fast uploads early (it believes
 * that the client has finished). svc has to move everything.
 */
async function measureTransfer(of: TransferCase, proxy: Proxy, upstream: Upstream): Promise<Measured> {
  for (let attempt = 1; attempt <= TRANSFER_ATTEMPTS; attempt += 1) {
    const found = await transferOnce(of, proxy, upstream);
    if (found.failed === 0 || (proxy.name !== 'svc' && found.units >= LEAST_SHARE)) return found;
  }
  throw new Error(`${proxy.name}: ${of.title} broke off ${TRANSFER_ATTEMPTS} times`);
}

async function transferOnce(of: TransferCase, proxy: Proxy, upstream: Upstream): Promise<Measured> {
  const before = residentMib(proxy.pid);
  const processes = processTree(proxy.pid);
  processes.forEach(forgetPeak);
  const moved = await withCpu(proxy, async () => {
    const { bytes, seconds, complete } = await runTransfer({
      url: `https://${formatAuthority(proxy.authority(PASSTHROUGH_HOST))}/${of.upload ? 'upload' : 'bulk'}`,
      proxyUrl: `http://127.0.0.1:${proxy.port}`,
      proxyUser: `${proxy.user}:${proxy.password}`,
      caFile: proxy.caFile,
      ...(of.upload ? { upload: upstream.bulkFile } : {}),
    });
    return { units: bytes / BULK_BYTES, seconds, failed: complete ? 0 : 1 };
  });
  const peak = processes.reduce((sum, pid) => sum + peakResidentMib(pid), 0);
  return { ...moved, p50Ms: null, p99Ms: null, extraMib: Math.max(0, peak - before) };
}

/** Runs one case through one subject; null if it does not apply. */
export function measure(of: Case, subject: Subject, upstream: Upstream, seconds: number): Promise<Measured> | null {
  const { proxy, forwarder, streams } = subject;
  if (of.kind === 'streams') {
    return proxy === null || streams === null ? null : measureStreams(of, proxy, streams.port, seconds);
  }
  if (forwarder === null) return null;
  if (of.kind === 'load') return measureLoad(of, { proxy, port: forwarder.port }, upstream, seconds);
  return proxy === null ? null : measureTransfer(of, proxy, upstream);
}
