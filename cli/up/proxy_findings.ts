import { dialThroughProxy } from '../../machine/connection/dial_through_proxy.ts';
import { createTrustingContext } from '../../machine/trusted_roots.ts';
import { DEFAULT_REGISTRY_URL } from '../../shared/model/settings.ts';
import {
  goesThrough,
  isAboutTarget,
  proxyOrigin,
  type ProxyTarget,
  readUpstreamProxy,
  type UpstreamProxy,
} from '../../shared/net/upstream_proxy.ts';
import { controlUrlOf } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { settingsOf } from '../context.ts';
import { CliError } from '../exit_codes.ts';
import type { Finding } from './finding.ts';
import { readRootFiles } from '../terminal/hosted_fetch.ts';
import type { Asked, SidecarHealth } from './status_command.ts';

const CHECK = 'upstream proxy';
const TIMEOUT_MS = 10_000;

/** Tries the upstream proxy of this environment, and compares it with the one that the running sidecar uses. */
export async function proxyFindings(call: Call, sidecar: Asked<SidecarHealth>): Promise<readonly Finding[]> {
  const proxy = readUpstreamProxy(call.context.env);
  if (!proxy.ok) return [];
  const differs = differenceFinding(proxy.value, sidecar);
  return proxy.value === null ? differs : [await tryProxy(call, proxy.value, targetOf(call)), ...differs];
}

/** A host of svc's own, with which the proxy is tried. */
interface TriedHost extends ProxyTarget {
  readonly isRegistry: boolean;
}

async function tryProxy(call: Call, proxy: UpstreamProxy, target: TriedHost): Promise<Finding> {
  const origin = proxyOrigin(proxy);
  const tried = `${target.host}:${target.port}`;
  if (!goesThrough(proxy, target)) {
    return { check: CHECK, level: 'ok', text: `${origin} was not tried: NO_PROXY exempts ${tried}` };
  }
  const secureContext = createTrustingContext(readRootFiles(call.context.env));
  const dialled = await dialThroughProxy({ proxy, target, secureContext, timeoutMs: TIMEOUT_MS }).connected;
  if (dialled.ok) {
    dialled.value.destroy();
    return { check: CHECK, level: 'ok', text: `${origin} opens connections, tried with ${tried}` };
  }
  return {
    check: CHECK,
    ...failure(dialled.error, proxy, target),
    text: `${origin}, tried with ${tried}: ${dialled.error}`,
  };
}

/** What to do. A proxy that answers may well open the hosts of agents, so a registry that it does not open is a warning. */
function failure(error: string, { source }: UpstreamProxy, target: TriedHost): Pick<Finding, 'level' | 'fix'> {
  if (/\((?:401|407)\)$/.test(error)) {
    const fix =
      'SVC_UPSTREAM_PROXY=http://USER:PASSWORD@HOST:PORT, with every special character of the password as %XX';
    return { level: 'problem', fix };
  }
  if (!isAboutTarget(error)) {
    return { level: 'problem', fix: `check ${source}, or set SVC_UPSTREAM_PROXY=off to connect without a proxy` };
  }
  const allow = `have the proxy allow ${target.host}:${target.port}`;
  return target.isRegistry
    ? { level: 'warning', fix: `${allow}, to search and install MCP servers; everything else works without it` }
    : { level: 'problem', fix: `${allow}, or set SVC_UPSTREAM_PROXY=off to connect without a proxy` };
}

/** The hosted control plane; for a local one the registry, which svc itself asks. */
function targetOf({ context, options }: Call): TriedHost {
  try {
    const control = new URL(controlUrlOf(context, options));
    if (control.protocol === 'https:') return hostOf(control, false);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
  return hostOf(new URL(settingsOf(context).registryUrl ?? DEFAULT_REGISTRY_URL), true);
}

function hostOf({ hostname, port }: URL, isRegistry: boolean): TriedHost {
  return { host: hostname, port: Number(port || 443), isRegistry };
}

/** The sidecar keeps the environment that it was started with. */
function differenceFinding(proxy: UpstreamProxy | null, sidecar: Asked<SidecarHealth>): readonly Finding[] {
  const used = sidecar.ok ? sidecar.value.upstream_proxy : undefined;
  const here = proxy === null ? null : proxyOrigin(proxy);
  if (used === undefined || used === here) return [];
  const text = `the running sidecar uses ${used ?? 'none'}, and the settings here name ${here ?? 'none'}`;
  return [{ check: CHECK, level: 'warning', text, fix: 'start svc again with these settings' }];
}
