import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pythonWith, STANDARD_MODULES } from '../../tools/system_parts.mjs';
import { startGitUpstream, type GitUpstream } from '../support/git_upstream.ts';
import { startGrpcUpstream, type GrpcUpstream } from '../support/grpc_upstream.ts';
import { plantSecret } from '../support/planted_secret.ts';
import { type Finished, runOk, type RunOptions } from '../support/program.ts';
import { startS3Upstream, type S3Upstream } from '../support/s3_upstream.ts';
import { Svc } from '../support/svc.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startService, type Service } from './service.ts';
import { githubApi, itemsApi, npmRegistry, pythonIndex } from './services.ts';

export const PROGRAMS = join(import.meta.dirname, 'programs');
export const HOSTS = {
  items: 'api.example.test',
  itemsOverHttp2: 'http2.example.test',
  grpc: 'grpc.example.test',
  github: 'github.example.test',
  npm: 'npm.example.test',
  python: 'pypi.example.test',
  git: 'git.example.test',
  s3: 's3.example.test',
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
  readonly grpc: GrpcUpstream;
  readonly services: Readonly<Record<Exclude<ServiceName, 'git' | 's3' | 'grpc'>, Service>>;
  /** A folder for one client, removed at the end. */
  folder(name: string): string;
  /** Runs a program with `svc run` and returns its standard output; fails unless it succeeds. */
  run(command: readonly string[], options?: RunOptions): Promise<string>;
  /** The same with `svc run --relay`. */
  runWithRelay(command: readonly string[], options?: RunOptions): Promise<string>;
  /** Runs a program with `svc run`; it may fail. */
  tryRun(command: readonly string[]): Promise<Finished>;
  stop(): Promise<void>;
}

/** `env` is for `svc up` and its programs. */
export async function startMatrixWorld(env: Readonly<Record<string, string>> = {}): Promise<MatrixWorld> {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-e2e-matrix-'));
  const ca = await createTestCa();
  const token = plantSecret();
  const basic = `Basic ${Buffer.from(`${BASIC_USER}:${token}`).toString('base64')}`;
  const certify = (name: ServiceName) => ca.issue([HOSTS[name]]);
  const services = {
    items: await startService(await certify('items'), `Bearer ${token}`, itemsApi),
    itemsOverHttp2: await startService(await certify('itemsOverHttp2'), `Bearer ${token}`, itemsApi, 'HTTP/2'),
    github: await startService(await certify('github'), `token ${token}`, githubApi),
    npm: await startService(await certify('npm'), `Bearer ${token}`, npmRegistry()),
    python: await startService(await certify('python'), basic, pythonIndex('demo', await makeWheel(scratch))),
  };
  const git = await startGitUpstream(await certify('git'), BASIC_USER, token);
  const s3 = await startS3Upstream(await certify('s3'), AWS_KEYS, 'bucket');
  const grpc = await startGrpcUpstream(await certify('grpc'));
  const ports: Record<ServiceName, { port: number }> = { ...services, git, s3, grpc };
  const hosts = new Map<string, string>(Object.entries(HOSTS));
  const resolve = Object.entries(ports).map(([name, { port }]) => `${hosts.get(name)}:127.0.0.1:${port}`);
  const svc = await Svc.up({ upstreamCaFiles: [ca.file], resolve, env });
  await bind(svc, token);
  const runSvc = (flags: readonly string[], command: readonly string[], options?: RunOptions): Promise<string> =>
    svc.ok(['run', ...flags, '--', ...command], { cwd: scratch, ...options });
  return {
    svc,
    git,
    s3,
    grpc,
    services,
    folder: (name) => mkdtempSync(join(scratch, `${name}-`)),
    run: (command, options) => runSvc([], command, options),
    runWithRelay: (command, options) => runSvc(['--relay'], command, options),
    tryRun: (command) => svc.cli(['run', '--', ...command], { cwd: scratch }),
    stop: async () => {
      await svc.stop();
      grpc.close();
      await Promise.all([...Object.values(services), git, s3].map((service) => service.close()));
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
  await svc.binding({ host: HOSTS.grpc, scheme: 'bearer', credential_ref, body: 'stream' });
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
  await svc.binding({
    host: HOSTS.s3,
    scheme: 'sigv4-resign',
    access_key_id: AWS_KEYS.accessKeyId,
    region: 'eu-north-1',
    service: 's3',
    credential_ref: 'vault://user/aws',
  });
}

export async function makeWheel(folder: string): Promise<{ name: string; bytes: Buffer }> {
  const name = 'demo-1.0-py3-none-any.whl';
  await runOk(pythonWith(STANDARD_MODULES) ?? 'python3', [join(PROGRAMS, 'make_wheel.py'), join(folder, name)]);
  return { name, bytes: readFileSync(join(folder, name)) };
}

/** The credential of each request to a service, in order, and the expected one. */
export function credentialsSeen(world: MatrixWorld, name: ServiceName): { seen: unknown[]; wanted: unknown } {
  if (name === 's3') {
    const wanted = { ok: true, accessKeyId: AWS_KEYS.accessKeyId, region: 'eu-north-1', service: 's3' };
    return { seen: world.s3.verdicts, wanted };
  }
  if (name === 'git') return { seen: world.git.authorizations, wanted: world.services.python.wanted };
  if (name === 'grpc') {
    return {
      seen: world.grpc.calls.map(({ metadata }) => metadata['authorization']),
      wanted: world.services.items.wanted,
    };
  }
  const service = world.services[name];
  return { seen: service.requests.map(({ authorization }) => authorization), wanted: service.wanted };
}

/** Clears the requests that the services have received. */
export function forgetRequests(world: MatrixWorld): void {
  for (const service of Object.values(world.services)) service.requests.length = 0;
  world.git.authorizations.length = 0;
  world.grpc.calls.length = 0;
  world.s3.verdicts.length = 0;
  world.s3.tls.requests.length = 0;
}
