import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ROOT } from '../../e2e/support/program.ts';
import { freePort } from './ports.ts';
import { stopChild } from './programs.ts';

const BIN = join(ROOT, 'node_modules', '.bin');
const START_LIMIT_MS = 20_000;
const EMPTY_WORKER = 'export default { fetch: () => new Response("ok") };\n';

/** A module made by `writeWorkers`: the control worker as deployed, or an empty one. */
type WorkerModule = 'workerd.js' | 'empty.js';

/** The settings of a worker. */
export interface WorkerdOptions {
  /** The folder of the modules; the configuration is written there too. */
  readonly directory: string;
  readonly module: WorkerModule;
  readonly bindings: Readonly<Record<string, string>>;
  /** The heap limit in MiB; by default the engine's own. */
  readonly maxHeapMib?: number;
  /** Whether its heap can be inspected; this makes its start slower. */
  readonly isInspected?: true;
}

/** A started workerd, which may not listen yet. */
interface WorkerdProcess {
  readonly url: string;
  readonly pid: number;
  /** The address of its DevTools protocol, if it is inspected. */
  readonly inspectorPort: number;
  readonly stop: () => Promise<void>;
}

/** The modules, each in one file. */
export function writeWorkers(directory: string): void {
  const args = ['deploy', '--dry-run', '--outdir', directory];
  const env = { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false', XDG_CONFIG_HOME: directory };
  execFileSync(join(BIN, 'wrangler'), args, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'pipe'] });
  writeFileSync(join(directory, 'empty.js'), EMPTY_WORKER);
}

/** The settings of a control worker in local mode on a database server. */
export function localBindings(databaseUrl: string): Record<string, string> {
  return {
    SVC_LOCAL: '1',
    SVC_LOCAL_KEY: `svc_local_${randomBytes(32).toString('base64url')}`,
    SVC_VAULT_KEY: randomBytes(32).toString('base64url'),
    SVC_DATABASE_URL: databaseUrl,
  };
}

export async function spawnWorkerd(options: WorkerdOptions): Promise<WorkerdProcess> {
  const [port, inspectorPort] = [await freePort(), await freePort()];
  const config = join(options.directory, `${port}.capnp`);
  writeFileSync(config, configText(options, port));
  const inspector = options.isInspected === true ? [`--inspector-addr=127.0.0.1:${inspectorPort}`] : [];
  const args = ['serve', config, ...inspector];
  const child: ChildProcess = spawn(join(ROOT, 'node_modules/@cloudflare/workerd-linux-64/bin/workerd'), args, {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return { url: `http://127.0.0.1:${port}`, pid: child.pid ?? 0, inspectorPort, stop: () => stopChild(child) };
}

/** The files that the control worker imports as text, under their names in the bundle. */
function textModules(directory: string): string[] {
  const names = readdirSync(directory).filter((name) => /^[0-9a-f]{40}-/.test(name));
  return names.map((name) => `(name = "${name}", text = embed "${name}")`);
}

function configText({ directory, module, bindings, maxHeapMib }: WorkerdOptions, port: number): string {
  const modules = [`(name = "${module}", esModule = embed "${module}")`, ...textModules(directory)];
  const texts = Object.entries(bindings).map(([name, text]) => `(name = "${name}", text = "${text}")`);
  const flags = maxHeapMib === undefined ? '' : `"--max-heap-size=${maxHeapMib}"`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "internet", network = (allow = ["private", "public"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
  v8Flags = [${flags}]);
const worker :Workerd.Worker = (
  modules = [${modules.join(', ')}],
  compatibilityDate = "2026-06-01", compatibilityFlags = ["enable_request_signal", "nodejs_compat"],
  bindings = [${texts.join(', ')}]);
`;
}

/** Polls its health until there is a reply, which must be a success. */
export async function firstReply({ url }: WorkerdProcess): Promise<void> {
  const deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    const status = await statusOf(`${url}/v1/health`);
    if (status === 200) return;
    if (status !== null) throw new Error(`workerd answered ${status}`);
    if (performance.now() > deadline) throw new Error('workerd did not start');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function statusOf(url: string): Promise<number | null> {
  return new Promise((resolve) => {
    const sent = request(url, { agent: false }, (reply) => {
      reply.resume();
      reply.on('end', () => resolve(reply.statusCode ?? 0));
    });
    sent.on('error', () => resolve(null));
    sent.end();
  });
}
