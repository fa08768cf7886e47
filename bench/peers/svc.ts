import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ROOT } from '../../e2e/support/program.ts';
import { type Session, Svc, type UpOptions } from '../../e2e/support/svc.ts';
import { CREDENTIALED_HOST, HTTP2_HOST, PASSTHROUGH_HOST, type Upstream } from '../load/nginx.ts';
import { residentMib } from '../load/process_stats.ts';
import { otherBoundHosts, type Proxy } from './proxy.ts';

export const BINDINGS = 1_000;

interface SvcOptions {
  readonly directory: string;
  readonly upstream: Upstream;
  /** Further upstreams, `host:address:port`. */
  readonly resolve?: readonly string[];
  /** Those of them that get the bearer too. */
  readonly boundHosts?: readonly string[];
  /** Flags for Node itself, for every program. */
  readonly nodeFlags?: readonly string[];
}

export interface SvcProxy extends Proxy {
  readonly svc: Svc;
  readonly session: Session;
  readonly controlPort: number;
  /** The time of each call that added a binding, in ms. */
  readonly apiCallsMs: readonly number[];
  /** The sidecar's memory before any request. */
  readonly idleResidentMib: number;
}

async function addBindings(svc: Svc, hosts: readonly string[]): Promise<number[]> {
  const times: number[] = [];
  for (const host of hosts) {
    const began = performance.now();
    await svc.binding({ host, scheme: 'bearer', credential_ref: 'vault://user/bench' });
    times.push(performance.now() - began);
  }
  return times;
}

/** Stores the credential and the bindings in a home, and stops the programs again. */
async function fillHome(options: UpOptions, { upstream, boundHosts = [] }: SvcOptions): Promise<readonly number[]> {
  const svc = await Svc.up(options);
  try {
    await svc.secret('user/bench', upstream.bearer);
    const bound = [CREDENTIALED_HOST, HTTP2_HOST, ...boundHosts];
    return await addBindings(svc, [...otherBoundHosts(BINDINGS - bound.length), ...bound]);
  } finally {
    await svc.stop();
  }
}

function upOptions({ directory, upstream, resolve = [], nodeFlags = [] }: SvcOptions): UpOptions {
  const home = join(directory, 'svc_home');
  mkdirSync(home, { mode: 0o700 });
  return {
    home,
    upstreamCaFiles: [upstream.caFile],
    resolve: [
      ...[CREDENTIALED_HOST, PASSTHROUGH_HOST].map((host) => `${host}:127.0.0.1:${upstream.port}`),
      `${HTTP2_HOST}:127.0.0.1:${upstream.http2Port}`,
      ...resolve,
    ],
    command: [process.execPath, ...nodeFlags, join(ROOT, 'cli/main.ts'), 'up'],
  };
}

/** The whole product as a user starts it, on a home with a credential and a thousand bindings, and one session. */
export async function startSvc(options: SvcOptions): Promise<SvcProxy> {
  const up = upOptions(options);
  const apiCallsMs = await fillHome(up, options);
  const svc = await Svc.up(up);
  try {
    const session = await svc.session();
    const caFile = join(options.directory, 'svc_ca.pem');
    writeFileSync(caFile, session.caPem);
    return {
      name: 'svc',
      version: svc.runFile.version,
      kind: 'tunnel of both',
      port: Number(new URL(session.proxyUrl).port),
      authority: (host) => `${host}:443`,
      user: session.sessionId,
      password: session.token,
      caFile,
      pid: svc.runFile.sidecar_pid,
      companion: { label: 'control worker', pid: svc.runFile.control_pid },
      svc,
      session,
      controlPort: Number(new URL(svc.runFile.control_url).port),
      apiCallsMs,
      idleResidentMib: residentMib(svc.runFile.sidecar_pid),
      stop: () => svc.stop(),
    };
  } catch (error) {
    await svc.stop();
    throw error;
  }
}
