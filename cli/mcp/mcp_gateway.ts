import { join } from 'node:path';
import { runStdioGateway } from '../../gateway/run_gateway.ts';
import type { LocalApiAddress } from '../../gateway/sidecar/local_api.ts';
import { sidecarClient, findRunning } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { machineServer, serversOfMachine } from './mcp_machine.ts';
import { homeOf, readTokenFile } from '../up/home.ts';

export interface GatewayOptions {
  readonly http?: boolean;
  readonly server?: string;
}

/** `svc mcp gateway`: stdout carries only the protocol. */
export async function serveGateway(call: Call<GatewayOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  // Fails with a fix if the sidecar does not run.
  const { origin } = sidecarClient(context, options);
  if (options.http === true) {
    if (options.server !== undefined)
      throw new CliError(EXIT.usage, '--server is only for clients that start the gateway');
    showHttp(call, origin, join(home, 'sidecar', 'host.token'));
    return undefined;
  }
  if (context.interactive)
    print.note(
      'svc: this speaks MCP over stdin and stdout and is meant to be started by an MCP client; Ctrl-C ends it',
    );
  // The id, because a name may belong to another server tomorrow. Fails for an unknown name, with the known ones.
  const only = await onlyServer(call);
  const { stdin, stdout, stop } = context;
  const run = {
    mcpHome: join(home, 'mcp'),
    locate: () => locate(home),
    env: context.env,
    version: context.version,
    pid: process.pid,
    only,
    clock: { now: context.now },
    pause: context.pause,
    warn: (message: string) => print.warn(message),
    stop,
  };
  const served = await runStdioGateway(run, { stdin, stdout });
  stdin.destroy();
  if (!served.ok) throw new CliError(EXIT.unreachable, served.error.message);
  return undefined;
}

async function onlyServer(call: Call<GatewayOptions>): Promise<string | null> {
  const { server } = call.options;
  if (server === undefined) return null;
  return machineServer((await serversOfMachine(call)).servers, server).server.id;
}

/** The current sidecar: it may have been restarted. */
function locate(home: string): LocalApiAddress | null {
  const found = findRunning(home);
  const hostToken = found === null ? null : tokenOf(join(home, 'sidecar', 'host.token'));
  return found === null || hostToken === null ? null : { origin: new URL(found.proxy_url), hostToken };
}

function tokenOf(path: string): string | null {
  try {
    return readTokenFile(path);
  } catch (error) {
    if (error instanceof CliError) return null;
    throw error;
  }
}

function showHttp({ print }: Call, origin: string, tokenFile: string): void {
  const url = `${origin}/v1/mcp`;
  print.data(
    { url, token_file: tokenFile },
    () =>
      `${url}\n\nMCP over streamable HTTP, for this machine only. Send with each request:\n  Authorization: Bearer $(cat ${tokenFile})\n`,
  );
}
