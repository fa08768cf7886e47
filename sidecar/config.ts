import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import type { Limits } from '../shared/model/limits.ts';
import { isLoopbackHostname } from '../shared/model/loopback_hostname.ts';
import { err, ok } from '../shared/model/result.ts';
import type { Result } from '../shared/model/result.ts';
import { DEFAULT_PROXY_PORT, parseControlUrl, parseSettings } from '../shared/model/settings.ts';
import { PLAIN_PORT, portOfHost } from '../shared/net/host_port.ts';
import { normaliseHost, normaliseHostOnPort } from '../shared/net/host.ts';
import { readUpstreamProxy, type UpstreamProxy } from '../shared/net/upstream_proxy.ts';
import type { PinnedAddress } from './upstream/dialer.ts';
import { errorCode } from '../shared/model/error_code.ts';

/** The sidecar's checked start options. */
export interface SidecarConfig {
  readonly home: string;
  readonly controlUrl: string;
  readonly port: number;
  /** Addresses to listen on. Loopback only by default. */
  readonly listen: readonly string[];
  /** True if the parent process passed on a socket that is bound to the first of them. */
  readonly inheritsSocket: boolean;
  readonly upstreamRoots: readonly string[];
  readonly pinned: ReadonlyMap<string, PinnedAddress>;
  readonly proxy: UpstreamProxy | null;
  readonly denyPrivateUpstreams: boolean;
  readonly name: string;
  readonly limits: Limits;
}

const FLAGS = {
  home: { type: 'string' },
  control: { type: 'string' },
  port: { type: 'string' },
  listen: { type: 'string', multiple: true },
  'listen-fds': { type: 'string' },
  name: { type: 'string' },
  'upstream-ca': { type: 'string', multiple: true },
  resolve: { type: 'string', multiple: true },
  'deny-private-upstreams': { type: 'boolean' },
} as const;

/** Reads flags and environment; a flag wins. Every error names the bad value and the fix. */
export function readConfig(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  hostName: string,
): Result<SidecarConfig, readonly string[]> {
  const flags = parseFlags(argv);
  if (!flags.ok) return flags;
  const settings = parseSettings(env);
  if (!settings.ok) return err(settings.error.map((problem) => problem.message));
  const { values } = flags.value;
  const problems: string[] = [];
  const take = <T>(part: Result<T, string>, otherwise: T): T => {
    if (part.ok) return part.value;
    problems.push(part.error);
    return otherwise;
  };
  const controlUrl = take(controlOf(values.control ?? settings.value.controlUrl), '');
  const port = take(portOf(values.port), 0);
  const listen = (values.listen ?? ['127.0.0.1']).map((address) => take(addressOf(address), ''));
  const pinned = new Map((values.resolve ?? []).map((text) => take(pinOf(text), NO_PIN)));
  const caFiles = [...settings.value.upstreamCaFiles, ...(values['upstream-ca'] ?? [])];
  const upstreamRoots = caFiles.map((file) => take(rootsIn(file), ''));
  const proxy = take(proxyOf(env, port), null);
  if (problems.length > 0) return err(problems);
  return ok({
    home: resolve(values.home ?? settings.value.home ?? join(homedir(), '.svc')),
    controlUrl,
    port,
    listen,
    inheritsSocket: values['listen-fds'] === '1',
    upstreamRoots,
    pinned,
    proxy,
    denyPrivateUpstreams: values['deny-private-upstreams'] ?? false,
    name: values.name ?? hostName,
    limits: settings.value.limits,
  });
}

const NO_PIN: readonly [string, PinnedAddress] = ['', { address: '', port: 0 }];

function parseFlags(
  argv: readonly string[],
): Result<ReturnType<typeof parseArgs<{ options: typeof FLAGS }>>, string[]> {
  try {
    return ok(parseArgs({ args: [...argv], options: FLAGS, strict: true, allowPositionals: false }));
  } catch (error) {
    return err([error instanceof Error ? error.message : 'cannot read the flags']);
  }
}

function controlOf(text: string | undefined): Result<string, string> {
  if (text === undefined) return err('--control is missing: give the origin of the control plane');
  const url = parseControlUrl(text);
  return url.ok ? url : err(`--control ${url.error}`);
}

function portOf(text: string | undefined): Result<number, string> {
  if (text === undefined) return ok(DEFAULT_PROXY_PORT);
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return ok(port);
  return err(`--port is ${JSON.stringify(text)}: give a number from 0 (any free port) to 65535`);
}

/** Refuses the sidecar's own port, where each connection would come back as a new one. */
function proxyOf(env: Parameters<typeof readUpstreamProxy>[0], ownPort: number): Result<UpstreamProxy | null, string> {
  const proxy = readUpstreamProxy(env);
  if (!proxy.ok || proxy.value === null) return proxy;
  const { host, port, source } = proxy.value;
  return isLoopbackHostname(host) && port === ownPort
    ? err(`${source} is this sidecar itself: name another proxy`)
    : proxy;
}

function addressOf(text: string): Result<string, string> {
  return isIP(text) === 0 ? err(`--listen is ${JSON.stringify(text)}: give an IP address`) : ok(text);
}

/**
 * `[http://]HOST[:PORT]:ADDRESS[:PORT]`; an IPv6 address is written in brackets. The first port is that of the host, if it is not
 * 443. With `http://` it is for plain HTTP alone.
 */
function pinOf(text: string): Result<readonly [string, PinnedAddress], string> {
  const parts = /^(http:\/\/)?([^:[\]]+(?::\d{1,5})?):(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(text);
  const isPlain = parts?.[1] !== undefined;
  const host = (isPlain ? normaliseHost : normaliseHostOnPort)(parts?.[2] ?? '');
  const address = parts?.[3] ?? parts?.[4] ?? '';
  const port = Number(parts?.[5] ?? (isPlain || !host.ok ? PLAIN_PORT : portOfHost(host.value)));
  if (host.ok && isIP(address) !== 0 && port > 0 && port <= 65_535) {
    return ok([isPlain ? `http://${host.value}` : host.value, { address, port }]);
  }
  return err(
    `--resolve is ${JSON.stringify(text)}: give HOST:ADDRESS or HOST:ADDRESS:PORT, such as api.example.test:127.0.0.1:8443, with HOST:PORT for a host on another port than 443`,
  );
}

function rootsIn(file: string): Result<string, string> {
  try {
    const pem = readFileSync(file, 'utf8');
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return ok(pem);
    return err(`--upstream-ca ${file} contains no PEM certificate`);
  } catch (error) {
    const code = errorCode(error) || 'unreadable';
    return err(`--upstream-ca ${file} cannot be read (${code})`);
  }
}
