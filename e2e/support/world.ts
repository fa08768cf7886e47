import { createTestCa, type TestCa } from './test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from './tls_upstream.ts';
import { Svc, type UpOptions } from './svc.ts';

/** One raw upstream with a certificate for all these hosts, and svc in front of it. */
export interface World {
  readonly ca: TestCa;
  readonly upstream: TlsUpstream;
  readonly svc: Svc;
  stop(): Promise<void>;
}

export async function startWorld(hosts: readonly string[], options: UpOptions = {}): Promise<World> {
  const ca = await createTestCa();
  const upstream = await startTlsUpstream(await ca.issue(hosts));
  const svc = await Svc.up({
    ...options,
    upstreamCaFiles: [ca.file, ...(options.upstreamCaFiles ?? [])],
    resolve: [...hosts.map((host) => `${host}:127.0.0.1:${upstream.port}`), ...(options.resolve ?? [])],
  });
  const stop = async (): Promise<void> => {
    await svc.stop();
    await upstream.close();
  };
  return { ca, upstream, svc, stop };
}
