import { readFileSync } from 'node:fs';
import { parseSettings } from '../../shared/model/settings.ts';
import { readUpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/**
 * `fetch` that trusts a hosted control plane, and reaches it, as the sidecar does. Reading the system's roots takes 0.2 s, so a
 * call to this machine does without: by Node's own fetch, unless variables would make that one use a proxy.
 */
export function createTrustedFetch(env: CliContext['env']): typeof fetch {
  let own: Promise<typeof fetch> | null = null;
  return async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.startsWith('https:') && env['NODE_USE_ENV_PROXY'] === undefined) return fetch(input, init);
    own ??= openFetch(env);
    return (await own)(input, init);
  };
}

async function openFetch(env: CliContext['env']): Promise<typeof fetch> {
  const proxy = readUpstreamProxy(env);
  if (!proxy.ok) throw new CliError(EXIT.usage, proxy.error);
  const { createNodeFetch } = await import('../../machine/node_fetch.ts');
  return createNodeFetch({ extraCa: readRootFiles(env), proxy: proxy.value });
}

/** The extra roots of the settings. */
export function readRootFiles(env: CliContext['env']): readonly string[] {
  const settings = parseSettings(env);
  return settings.ok ? settings.value.upstreamCaFiles.map((file) => readRoots(file)) : [];
}

function readRoots(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new CliError(EXIT.usage, `SVC_UPSTREAM_CA: the file ${file} cannot be read`);
  }
}
