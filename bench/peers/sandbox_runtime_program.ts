/** A program: the HTTP proxy of `@anthropic-ai/sandbox-runtime` alone. Settings: see `sandbox_runtime_settings.ts`. */
import dns from 'node:dns';
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { LookupFunction } from 'node:net';
import { z } from 'zod';
import { announce, readSettings } from '../load/programs.ts';
import { type SandboxRuntimeSettings, sandboxRuntimeSettings } from './sandbox_runtime_settings.ts';

/** The part of the package's exports that is used here. */
interface ProxyOptions {
  readonly filter: (port: number, host: string) => boolean;
  readonly mitmCA: unknown;
  readonly mutateHeaders: (headers: IncomingHttpHeaders, host: string) => void;
  readonly tlsTerminateUpstreamCA: string;
  readonly proxyAuthToken: string;
}
const proxyModule = z.object({
  createHttpProxyServer: z.custom<(options: ProxyOptions) => Server>((value) => typeof value === 'function'),
});
const authorityModule = z.object({
  createMitmCA: z.custom<(options: object) => { certPem: string }>((value) => typeof value === 'function'),
});

/** Every name resolves to this machine without a resolver; the other proxies are configured like this too. */
const loopback: LookupFunction = (_host, options, callback) => {
  if (options.all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};

async function createProxy(settings: SandboxRuntimeSettings): Promise<Server> {
  const { createHttpProxyServer } = proxyModule.parse(await import(settings.proxyModule));
  const { createMitmCA } = authorityModule.parse(await import(settings.authorityModule));
  const mitmCA = createMitmCA({});
  writeFileSync(settings.caFile, mitmCA.certPem);
  const bound = new Set(settings.boundHosts);
  const allowed = new Set([...settings.boundHosts, ...settings.otherHosts]);
  const authorization = `Bearer ${settings.bearer}`;
  return createHttpProxyServer({
    filter: (_port, host) => allowed.has(host),
    mitmCA,
    mutateHeaders: (headers, host) => {
      if (bound.has(host)) Object.assign(headers, { authorization });
    },
    tlsTerminateUpstreamCA: readFileSync(settings.upstreamCaFile, 'utf8'),
    proxyAuthToken: settings.password,
  });
}

async function main(): Promise<void> {
  Object.assign(dns, { lookup: loopback });
  const server = await createProxy(await readSettings(sandboxRuntimeSettings));
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address !== null && typeof address === 'object') announce(address.port);
  });
  process.on('SIGTERM', () => process.exit(0));
}

await main();
