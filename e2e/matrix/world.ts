import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pythonWith, STANDARD_MODULES } from '../../tools/system_parts.mjs';
import { installCloudClients } from '../support/cloud_sdks.ts';
import { startGitUpstream, type GitUpstream } from '../support/git_upstream.ts';
import { startGrpcUpstream, type GrpcUpstream } from '../support/grpc_upstream.ts';
import { OpenRun } from '../support/open_run.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { type Finished, runOk, type RunOptions } from '../support/program.ts';
import type { RealProxy } from '../support/real_proxies.ts';
import { startS3Upstream, type S3Upstream } from '../support/s3_upstream.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { type ConnectService, startConnectService } from './connect_service.ts';
import { type S3OverHttp2, startS3OverHttp2 } from './s3_over_http2.ts';
import { startService, type Service } from './service.ts';
import { githubApi, itemsApi, npmRegistry, pythonIndex } from './services.ts';
import { startUpstreamProxy } from './upstream_proxy.ts';

export const PROGRAMS = join(import.meta.dirname, 'programs');
export const HOSTS = {
  items: 'api.example.test',
  itemsOverHttp2: 'http2.example.test',
  grpc: 'grpc.example.test',
  connect: 'connect.example.test',
  github: 'github.example.test',
  npm: 'npm.example.test',
  python: 'pypi.example.test',
  git: 'git.example.test',
  s3: 's3.example.test',
  s3OverHttp2: 's3-http2.example.test',
  google: 'items.googleapis.com',
  azure: 'items.vault.azure.net',
} as const;
export type ServiceName = keyof typeof HOSTS;
export const ITEMS = `https://${HOSTS.items}/items`;
export const ITEMS_OVER_HTTP2 = `https://${HOSTS.itemsOverHttp2}/items`;
/** An agent's placeholders for the GitHub token and the AWS keys. */
const GITHUB_PLACEHOLDER = 'ghp_SvcPlaceholder0000000000000000000000';
const AWS_KEYS = { accessKeyId: 'AKIAE2EMATRIX0000001', secretAccessKey: plantSecret() };
const BASIC_USER = 'octo';

/** svc in front of one service of each kind, each with a credential that only svc holds. */
export interface MatrixWorld {
  readonly svc: Svc;
  readonly git: GitUpstream;
  readonly s3: S3Upstream;
  readonly s3OverHttp2: S3OverHttp2;
  readonly grpc: GrpcUpstream;
  readonly connect: ConnectService;
  readonly services: Readonly<
    Record<'items' | 'itemsOverHttp2' | 'github' | 'npm' | 'python' | 'google' | 'azure', Service>
  >;
  /** A folder for one client, removed at the end. */
  folder(name: string): string;
  /** Runs a program with the environment of `svc run` and returns its standard output; fails unless it succeeds. */
  run(command: readonly string[], options?: RunOptions): Promise<string>;
  /** The same with `svc run --relay`. */
  runWithRelay(command: readonly string[], options?: RunOptions): Promise<string>;
  /** Runs a program with the environment of `svc run`; it may fail. */
  tryRun(command: readonly string[]): Promise<Finished>;
  /** Ends what `run` and the others opened; afterwards their events are in the audit log. */
  endRuns(): Promise<void>;
  /** The credentials that svc alone holds. */
  readonly secrets: readonly string[];
  /** Ends the upstream proxy, if there is one. */
  stopProxy(): Promise<void>;
  stop(): Promise<void>;
}

interface WorldOptions {
  /** For `svc up` and its programs. */
  readonly env?: Readonly<Record<string, string>>;
  /** svc reaches the services through this proxy, which resolves their names. */
  readonly proxy?: RealProxy;
}

export async function startMatrixWorld({ env, proxy }: WorldOptions = {}): Promise<MatrixWorld> {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-matrix-'));
  await installCloudClients();
  const ca = await createTestCa();
  const token = plantSecret();
  const basic = `Basic ${Buffer.from(`${BASIC_USER}:${token}`).toString('base64')}`;
  const certify = (name: ServiceName) => ca.issue([HOSTS[name]]);
  const services = {
    items: await startService(await certify('items'), `Bearer ${token}`, itemsApi()),
    itemsOverHttp2: await startService(await certify('itemsOverHttp2'), `Bearer ${token}`, itemsApi(), 'HTTP/2'),
    google: await startService(await certify('google'), `Bearer ${token}`, itemsApi()),
    azure: await startService(await certify('azure'), `Bearer ${token}`, itemsApi()),
    github: await startService(await certify('github'), `token ${token}`, githubApi),
    npm: await startService(await certify('npm'), `Bearer ${token}`, npmRegistry()),
    python: await startService(await certify('python'), basic, pythonIndex('demo', await makeWheel(scratch))),
  };
  const git = await startGitUpstream(await certify('git'), BASIC_USER, token);
  const s3 = await startS3Upstream(await certify('s3'), AWS_KEYS, 'bucket');
  const s3OverHttp2 = await startS3OverHttp2(await certify('s3OverHttp2'), AWS_KEYS);
  const grpc = await startGrpcUpstream(await certify('grpc'));
  const connect = await startConnectService(await certify('connect'));
  const others = { git, s3, s3OverHttp2, grpc, connect };
  const ports: Record<ServiceName, { port: number }> = { ...services, ...others };
  const hosts = new Map<string, string>(Object.entries(HOSTS));
  const portOf = new Map(Object.entries(ports).map(([name, { port }]) => [hosts.get(name) ?? '', port]));
  const upstreamProxy = proxy === undefined ? null : await startUpstreamProxy(proxy, portOf);
  const svc = await Svc.up({
    upstreamCaFiles: [ca.file],
    resolve: upstreamProxy === null ? [...portOf].map(([host, port]) => `${host}:127.0.0.1:${port}`) : [],
    env: { ...env, ...(upstreamProxy !== null && { SVC_UPSTREAM_PROXY: upstreamProxy.url }) },
  });
  await bind(svc, token);
  const runs = new Map<string, Promise<OpenRun>>();
  const openRun = (...flags: string[]): Promise<OpenRun> => {
    const known = runs.get(flags.join());
    if (known !== undefined) return known;
    const opened = OpenRun.start(svc.home, flags, { cwd: scratch });
    runs.set(flags.join(), opened);
    return opened;
  };
  const endRuns = async (): Promise<void> => {
    for (const each of runs.values()) await (await each).end();
    runs.clear();
  };
  return {
    svc,
    ...others,
    services,
    secrets: [token, AWS_KEYS.secretAccessKey],
    folder: (name) => mkdtempSync(join(scratch, `${name}-`)),
    run: async (command, options) => (await openRun()).ok(command, { cwd: scratch, ...options }),
    runWithRelay: async (command, options) => (await openRun('--relay')).ok(command, { cwd: scratch, ...options }),
    tryRun: async (command) => (await openRun()).run(command, { cwd: scratch }),
    endRuns,
    stopProxy: async () => upstreamProxy?.stop(),
    stop: async () => {
      await endRuns();
      await svc.stop();
      await upstreamProxy?.stop();
      grpc.close();
      await Promise.all([...Object.values(services), git, s3, s3OverHttp2, connect].map((service) => service.close()));
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

async function bind(svc: Svc, token: string): Promise<void> {
  await svc.secret('user/token', token);
  await svc.secret('user/aws', AWS_KEYS.secretAccessKey);
  const credential_ref = 'vault://user/token';
  await svc.binding({ host: HOSTS.items, scheme: 'bearer', credential_ref });
  await svc.binding({ host: HOSTS.itemsOverHttp2, scheme: 'bearer', credential_ref });
  for (const host of [HOSTS.google, HOSTS.azure]) await svc.binding({ host, scheme: 'bearer', credential_ref });
  await svc.binding({ host: HOSTS.grpc, scheme: 'bearer', credential_ref, body: 'stream' });
  await svc.binding({ host: HOSTS.connect, scheme: 'bearer', credential_ref, body: 'stream' });
  await svc.binding({
    host: HOSTS.github,
    scheme: 'header-template',
    header: 'Authorization',
    template: 'token {token}',
    credential_ref,
    emit_mechanism: 'sentinel-swap',
    sentinel: { value: GITHUB_PLACEHOLDER, env: 'GH_ENTERPRISE_TOKEN' },
  });
  await svc.binding({ host: HOSTS.npm, scheme: 'bearer', credential_ref, body: 'stream' });
  await svc.binding({ host: HOSTS.python, scheme: 'basic', username: BASIC_USER, credential_ref });
  await svc.binding({ host: HOSTS.git, scheme: 'basic', username: BASIC_USER, credential_ref, body: 'stream' });
  for (const host of [HOSTS.s3, HOSTS.s3OverHttp2]) {
    await svc.binding({
      host,
      scheme: 'sigv4-resign',
      access_key_id: AWS_KEYS.accessKeyId,
      region: 'eu-north-1',
      service: 's3',
      credential_ref: 'vault://user/aws',
    });
  }
}

export async function makeWheel(folder: string): Promise<{ name: string; bytes: Buffer }> {
  const name = 'demo-1.0-py3-none-any.whl';
  await runOk(pythonWith(STANDARD_MODULES) ?? 'python3', [join(PROGRAMS, 'make_wheel.py'), join(folder, name)]);
  return { name, bytes: readFileSync(join(folder, name)) };
}

/** The credential of each request to a service, in order, and the expected one. */
export function credentialsSeen(world: MatrixWorld, name: ServiceName): { seen: unknown[]; wanted: unknown } {
  if (name === 's3' || name === 's3OverHttp2') {
    const wanted = { ok: true, accessKeyId: AWS_KEYS.accessKeyId, region: 'eu-north-1', service: 's3' };
    return { seen: world[name].verdicts, wanted };
  }
  if (name === 'git') return { seen: world.git.authorizations, wanted: world.services.python.wanted };
  if (name === 'grpc') {
    return {
      seen: world.grpc.calls.map(({ metadata }) => metadata['authorization']),
      wanted: world.services.items.wanted,
    };
  }
  const service = name === 'connect' ? world.connect : world.services[name];
  return {
    seen: service.requests.map(({ authorization }) => authorization),
    wanted: world.services[name === 'connect' ? 'items' : name].wanted,
  };
}

/** Clears the requests that the services have received. */
export function forgetRequests(world: MatrixWorld): void {
  for (const service of Object.values(world.services)) service.requests.length = 0;
  world.git.authorizations.length = 0;
  world.grpc.calls.length = 0;
  world.connect.requests.length = 0;
  world.s3OverHttp2.verdicts.length = 0;
  world.s3.verdicts.length = 0;
  world.s3.tls.requests.length = 0;
}
