import type { CleanUp } from './clean_up.ts';
import type { Upstream } from './load/nginx.ts';
import { present } from './load/programs.ts';
import { startBareStreams } from './peers/bare_streams.ts';
import { NGHTTPX, startNghttpx } from './peers/nghttpx.ts';
import type { Proxy, ProxyName } from './peers/proxy.ts';
import { SANDBOX_RUNTIME, sandboxRuntimeVersion, startSandboxRuntime } from './peers/sandbox_runtime.ts';
import { SQUID, startSquid } from './peers/squid.ts';
import { startSvc, type SvcProxy } from './peers/svc.ts';

interface Proxies {
  readonly svc: SvcProxy;
  /** svc first. */
  readonly all: readonly Proxy[];
  /** A sentence for each peer that is not there. */
  readonly missing: readonly string[];
}

type Start = (directory: string, upstream: Upstream) => Promise<Proxy>;

interface Peer {
  readonly name: ProxyName;
  readonly install: string;
  /** How it is started; null where it is not installed. */
  find(): Start | null;
}

const PEERS: readonly Peer[] = [
  { name: 'squid', install: SQUID.install, find: () => (present(SQUID) ? startSquid : null) },
  { name: 'nghttpx', install: NGHTTPX.install, find: () => (present(NGHTTPX) ? startNghttpx : null) },
  { name: 'node:http2', install: '', find: () => startBareStreams },
  {
    name: 'sandbox-runtime',
    install: SANDBOX_RUNTIME.install,
    find: () => {
      const version = sandboxRuntimeVersion();
      return version === null ? null : (directory, upstream) => startSandboxRuntime(directory, upstream, version);
    },
  },
];

/** Starts svc and the peers that are installed; `only`, when it names some, leaves the others out. */
export async function startProxies(
  directory: string,
  upstream: Upstream,
  only: readonly string[],
  cleanUp: CleanUp,
): Promise<Proxies> {
  const svc = cleanUp.add(await startSvc({ directory, upstream }));
  const all: Proxy[] = [svc];
  const missing: string[] = [];
  for (const peer of PEERS.filter(({ name }) => only.length === 0 || only.includes(name))) {
    const start = peer.find();
    if (start === null) missing.push(`${peer.name} is not installed and left out: ${peer.install}`);
    else all.push(cleanUp.add(await start(directory, upstream)));
  }
  return { svc, all, missing };
}
