import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/free_port.ts';
import { CONTROL_PLANE } from '../support/program.ts';
import { answering, listening, run, runDeno, type Running, until } from '../runtimes/programs.ts';

/** The sites that a hosted control plane can call: names whose port 443 is a TLS server on loopback. */
export interface Sites {
  readonly names: readonly string[];
  readonly port: number;
  /** The roots of that server, as PEM and as a file. */
  readonly ca: string;
  readonly caFile: string;
  /** A proxy that leads to them. */
  readonly proxyUrl: string;
}

export interface HostedProgram {
  readonly url: string;
  readonly output: () => string;
  /** Does what is due from time to time, such as the sending of audit events, where only the platform starts it. */
  readonly takeTurns: () => Promise<unknown>;
  readonly stop: () => Promise<void>;
  /** Ends it at once, as a power cut would. */
  readonly kill: () => Promise<void>;
}

/** Starts a hosted control plane with these settings. */
export type StartHosted = (settings: Readonly<Record<string, string>>, sites: Sites) => Promise<HostedProgram>;

/** Node and Deno reach the sites as from a company's network, by its proxy. */
function throughProxy({ proxyUrl, caFile }: Sites): Record<string, string> {
  return { SVC_UPSTREAM_PROXY: proxyUrl, SVC_UPSTREAM_PROXY_PUBLIC_ONLY: 'on', SVC_UPSTREAM_CA: caFile };
}

export const startHostedOnNode: StartHosted = (settings, sites) =>
  whenListening(run('node', [...CONTROL_PLANE, '--port', '0'], { ...settings, ...throughProxy(sites) }));

export const startHostedOnDeno: StartHosted = (settings, sites) =>
  whenListening(runDeno([], { ...settings, ...throughProxy(sites) }));

async function whenListening(program: Running): Promise<HostedProgram> {
  const url = await until(program, listening(program));
  return { url, output: program.output, takeTurns: async () => undefined, stop: program.stop, kill: program.kill };
}

/** workerd resolves names itself, so its calls go through the program that starts it. */
export const startHostedOnWorkerd: StartHosted = async (settings, { names, port: sitesPort, ca }) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-wrangler-'));
  const port = await freePort();
  const options = { port, folder: join(folder, 'state'), variables: settings, sites: names, sitesPort, ca };
  const program = run('node', [join(import.meta.dirname, 'workerd_program.ts'), JSON.stringify(options)], {
    CI: '1',
    XDG_CONFIG_HOME: folder,
    WRANGLER_SEND_METRICS: 'false',
    WRANGLER_LOG_PATH: join(folder, 'logs'),
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    DO_NOT_TRACK: '1',
  });
  const url = `http://127.0.0.1:${port}`;
  await until(program, answering(`${url}/v1/health`));
  const stop = async () => {
    await program.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const kill = async () => {
    await program.kill();
    await rm(folder, { recursive: true, force: true });
  };
  const takeTurns = () => fetch(`${url}/cdn-cgi/handler/scheduled`);
  return { url, output: program.output, takeTurns, stop, kill };
};
