import { readFileSync } from 'node:fs';
import { parseSettings } from '../../shared/model/settings.ts';
import { readUpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { ApiCall } from './http_client.ts';

/** Reaches a hosted control plane, and trusts it, as the sidecar does. */
export async function createHostedFetch(env: CliContext['env']): Promise<ApiCall> {
  const proxy = readUpstreamProxy(env);
  if (!proxy.ok) throw new CliError(EXIT.usage, proxy.error);
  // Loaded on use, so that what only checks the roots does without.
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
