import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { startLibsqlServer } from '../../e2e/runtimes/programs.ts';
import { ROOT } from '../../e2e/support/program.ts';
import { freePort } from './ports.ts';
import { stopChild } from './programs.ts';

const BIN = join(ROOT, 'node_modules', '.bin');
const START_LIMIT_MS = 20_000;
const EMPTY_WORKER = 'export default { fetch: () => new Response("ok") };\n';

/** Times from the start of a workerd process to the end of its first reply, in ms. */
export interface WorkerdStarts {
  /** With a worker that does nothing. */
  readonly empty: readonly number[];
  /** With the control worker, on a libSQL server whose database is made already; the call asks for its health. */
  readonly ours: readonly number[];
}

/** Starts workerd `times` times with each worker, in turn. */
export async function workerdStarts(times: number): Promise<WorkerdStarts> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-workerd-'));
  const database = await startLibsqlServer();
  try {
    bundleInto(directory);
    writeFileSync(join(directory, 'empty.js'), EMPTY_WORKER);
    const bindings = {
      SVC_LOCAL: '1',
      SVC_LOCAL_KEY: `svc_local_${randomBytes(32).toString('base64url')}`,
      SVC_VAULT_KEY: randomBytes(32).toString('base64url'),
      SVC_DATABASE_URL: database.url,
    };
    await startOnce(directory, 'workerd.js', bindings);
    const starts = { empty: new Array<number>(), ours: new Array<number>() };
    for (let n = 0; n < times; n += 1) {
      starts.empty.push(await startOnce(directory, 'empty.js', {}));
      starts.ours.push(await startOnce(directory, 'workerd.js', bindings));
    }
    return starts;
  } finally {
    await database.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The control worker as it is deployed, in one file: workerd.js. */
function bundleInto(directory: string): void {
  const args = ['deploy', '--dry-run', '--outdir', directory];
  const env = { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false', XDG_CONFIG_HOME: directory };
  execFileSync(join(BIN, 'wrangler'), args, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'pipe'] });
}

async function startOnce(
  directory: string,
  module: string,
  bindings: Readonly<Record<string, string>>,
): Promise<number> {
  const port = await freePort();
  const config = join(directory, 'config.capnp');
  writeFileSync(config, configText(module, port, bindings));
  const begun = performance.now();
  const child = spawn(join(ROOT, 'node_modules/@cloudflare/workerd-linux-64/bin/workerd'), ['serve', config], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    await firstReply(port, begun + START_LIMIT_MS);
    return performance.now() - begun;
  } finally {
    await stopChild(child);
  }
}

function configText(module: string, port: number, bindings: Readonly<Record<string, string>>): string {
  const texts = Object.entries(bindings).map(([name, text]) => `(name = "${name}", text = "${text}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "internet", network = (allow = ["private", "public"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);
const worker :Workerd.Worker = (
  modules = [(name = "${module}", esModule = embed "${module}")],
  compatibilityDate = "2026-06-01", compatibilityFlags = ["enable_request_signal", "nodejs_compat"],
  bindings = [${texts.join(', ')}]);
`;
}

/** Asks until there is a reply; it has to be a success. */
async function firstReply(port: number, deadline: number): Promise<void> {
  for (;;) {
    const status = await statusOf(port);
    if (status === 200) return;
    if (status !== null) throw new Error(`workerd answered ${status}`);
    if (performance.now() > deadline) throw new Error('workerd did not start');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function statusOf(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path: '/v1/health', agent: false }, (reply) => {
      reply.resume();
      reply.on('end', () => resolve(reply.statusCode ?? 0));
    });
    sent.on('error', () => resolve(null));
    sent.end();
  });
}
