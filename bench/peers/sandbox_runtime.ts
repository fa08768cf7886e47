import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { CREDENTIALED_HOST, PASSTHROUGH_HOST, type Upstream } from '../load/nginx.ts';
import { startNodeProgram, type Tool } from '../load/programs.ts';
import { otherBoundHosts, type Proxy } from './proxy.ts';
import type { SandboxRuntimeSettings } from './sandbox_runtime_settings.ts';
import { BINDINGS } from './svc.ts';

const PACKAGE = '@anthropic-ai/sandbox-runtime';
const load = createRequire(import.meta.url);

export const SANDBOX_RUNTIME: Omit<Tool, 'probe'> = {
  name: 'sandbox-runtime',
  install: `npm install --no-save ${PACKAGE}`,
};

/** The package's version if it is installed, else null. */
export function sandboxRuntimeVersion(): string | null {
  try {
    const manifest = z.object({ version: z.string() });
    return manifest.parse(JSON.parse(readFileSync(load.resolve(`${PACKAGE}/package.json`), 'utf8'))).version;
  } catch {
    return null;
  }
}

/** Its HTTP proxy as its own manager configures it: with TLS termination, a proxy token, an allowlist and rewritten headers. */
export async function startSandboxRuntime(directory: string, upstream: Upstream, version: string): Promise<Proxy> {
  const password = randomBytes(24).toString('base64url');
  const settings: SandboxRuntimeSettings = {
    proxyModule: load.resolve(`${PACKAGE}/dist/sandbox/http-proxy.js`),
    authorityModule: load.resolve(`${PACKAGE}/dist/sandbox/mitm-ca.js`),
    caFile: join(directory, 'sandbox_runtime_ca.pem'),
    upstreamCaFile: upstream.caFile,
    password,
    bearer: upstream.bearer,
    boundHosts: [...otherBoundHosts(BINDINGS - 1), CREDENTIALED_HOST],
    otherHosts: [PASSTHROUGH_HOST],
  };
  const program = await startNodeProgram(new URL('sandbox_runtime_program.ts', import.meta.url), settings);
  return {
    ...program,
    name: 'sandbox-runtime',
    version,
    kind: 'tunnel',
    authority: (host) => `${host}:${upstream.port}`,
    user: 'srt',
    password,
    caFile: settings.caFile,
    companion: null,
  };
}
