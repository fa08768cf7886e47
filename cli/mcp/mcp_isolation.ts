import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import { parseAllowedHost } from '../../shared/resolve/admitted_host.ts';
import { isContainerCommand, isPlacedInContainer } from '../../shared/mcp/server_isolation.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { isolationReply } from '../../shared/wire/mcp/mcp_gateway.ts';
import { readPackageCommand } from '../../shared/mcp/package_command.ts';
import { pipOnPath } from '../../gateway/packages/pip_program.ts';
import { pythonImage } from '../../gateway/packages/python_installer.ts';
import { DEFAULT_RUNTIME_IMAGES, imageFor } from '../../gateway/servers/container_command.ts';
import { findServerSandbox } from '../../gateway/servers/sealed_sandbox.ts';
import type { ContainerRuntime } from '../../sandbox/engine/container_runtime.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import { engineCommand } from '../../sandbox/engine/engine_cli.ts';
import { runProgram } from '../../sandbox/engine/engine_program.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { valueOrUsageError } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { homeOf } from '../up/home.ts';
import type { MachineServer } from './mcp_machine.ts';

const PULL_MS = 600_000;

/**
 * The isolation of a new local server for which none was given: a container with a closed network where this machine can give
 * it one, or a sandbox in its place, else a process, which is said with the reason (decisions 0080 and 0177). Only a path that the
 * person typed can be such a reason: what comes from a registry must not decide where it runs.
 */
export async function chooseIsolation(
  call: Call,
  { name, command }: Pick<McpServer, 'name' | 'command'>,
  typed: readonly string[],
): Promise<McpServer['isolation']> {
  // Its own docker run is a container already, with the network that the configuration names.
  if (isContainerCommand(command)) return 'process';
  const problem = await findObstacle(call, { name, command }, typed);
  if (problem === null) return 'container';
  call.print.note(toPrintable(`${name} runs code as you, not in a container: ${problem}`));
  return 'process';
}

/** Why the server cannot run apart, with a closed network, here; null if it can. The image of its container is there then. */
async function findObstacle(
  call: Call,
  { name, command }: Pick<McpServer, 'name' | 'command'>,
  typed: readonly string[],
): Promise<string | null> {
  const path = typed.map(pathIn).find((each) => each !== null && existsSync(each));
  if (path !== undefined) return `a container does not have ${path}, which its configuration names`;
  const container = await findContainer(call, command);
  if (container.ok) return null;
  // A program of the machine may need files of its person, so it gets a sandbox only if the person says so.
  if (readPackageCommand(command) === null) return container.error;
  const sandbox = findSandbox(call, command);
  if (!sandbox.ok) return `${container.error}; ${sandbox.error}`;
  call.print.note(toPrintable(`${name} runs in a sandbox of bubblewrap, not in a container: ${container.error}`));
  return null;
}

/** Whether it can run in a container here, whose image is fetched; or why not. */
async function findContainer(call: Call, command: readonly string[]): Promise<Result<void, string>> {
  const image = await imageOf(call, command);
  if (!image.ok) return image;
  const runtime = await openEngine(call.context.env);
  if (!runtime.ok) return err(runtime.error.message);
  const sealed = await askSealed(call, runtime.value.endpoint);
  if (!sealed.ok) return sealed;
  const fetched = await fetchImage(call, runtime.value, image.value, null);
  return !fetched.ok || sealed.value === null ? fetched : fetchImage(call, runtime.value, sealed.value, null);
}

/** Whether the gateway can run it in a sandbox if it has no container (decision 0177). */
function findSandbox({ context }: Call, command: readonly string[]): Result<unknown, string> {
  const find = context.findServerSandbox ?? findServerSandbox;
  return find(command, readPackageCommand(command) !== null, context.env);
}

/** A Python package needs the Python that it is installed for. Without one, the install says what to do. */
async function imageOf({ context, options }: Call, command: readonly string[]): Promise<Result<string, string>> {
  const known = imageFor(command[0] ?? '', DEFAULT_RUNTIME_IMAGES);
  if (readPackageCommand(command)?.spec.kind !== 'pypi') return known;
  const python = await (context.pip ?? pipOnPath(context.env)).describe(homeOf(context, options), context.stop);
  return python.ok ? ok(pythonImage(python.value)) : known;
}

/** An absolute path, alone or as the value of an option. */
function pathIn(word: string): string | null {
  const value = /^--?[\w-]+=(.*)$/s.exec(word)?.[1] ?? word;
  return isAbsolute(value) && !value.includes('\0') ? value : null;
}

/** The hosts of `--allow`. An agent may not widen what a server reaches. */
export function typedHosts(call: Call, given: readonly string[] = []): readonly string[] {
  const hosts = given.map((text) => valueOrUsageError('--allow', parseAllowedHost(text)));
  if (hosts.length > 0) {
    requireOutside(call, homeOf(call.context, call.options), 'which may not change what a server reaches');
  }
  return hosts;
}

/** A list that limits nothing would only look as if it did. */
export function refuseUnusedHosts(hosts: readonly string[], isolation: string | undefined): void {
  if (hosts.length === 0 || isolation === 'container') return;
  throw new CliError(EXIT.usage, '--allow limits a container, and this server would not run in one', [
    'Leave it out, or add --isolation container.',
  ]);
}

function fetchIsolation({ context, options }: Call, endpoint: string): Promise<z.output<typeof isolationReply>> {
  return sidecarClient(context, options).call('GET', '/v1/mcp/isolation', isolationReply, { query: { endpoint } });
}

const UNSEALED = 'the sidecar cannot close its network';

/** Asks the sidecar whether it can close the network of a container of this engine, and by which image with Node if not by any. */
async function askSealed(call: Call, endpoint: string): Promise<Result<string | null, string>> {
  try {
    const { sealed, message, node_image: nodeImage } = await fetchIsolation(call, endpoint);
    return sealed ? ok(nodeImage) : err(message ?? UNSEALED);
  } catch (error) {
    if (error instanceof CliError) return err(error.message);
    throw error;
  }
}

/** Fetches an image that the engine does not have. */
export async function fetchImage(
  { context, print }: Call,
  runtime: ContainerRuntime,
  image: string,
  platform: string | null,
): Promise<Result<void, string>> {
  const found = await runtime.inspectImage(image);
  if (found.ok) return ok(undefined);
  if (found.error.reason !== 'image_missing') return err(found.error.message);
  print.note(`fetching the image ${image} for its container`);
  const kept = Object.entries(context.env).filter((each): each is [string, string] => each[1] !== undefined);
  const words = ['pull', '--quiet', ...(platform === null ? [] : ['--platform', platform]), image];
  const { program, args } = engineCommand(runtime.endpoint, words);
  const pulled = await runProgram(program, args, { env: Object.fromEntries(kept), timeoutMs: PULL_MS });
  if (pulled.ok && pulled.value.exitCode === 0) return ok(undefined);
  const why = pulled.ok ? (pulled.value.stderr.trim().split('\n').at(-1) ?? '') : `${program} pull did not finish`;
  return err(`the image ${image} could not be fetched: ${why}`);
}

/** The hosts that a consent grants to a server's container, and how to say so. */
export interface ConsentedHosts {
  /** Null: its network is not closed. Undefined: it has no container of ours. */
  readonly hosts: readonly string[] | null | undefined;
  readonly text: string;
}

const consented = z.object({ isolation: z.string() });

/**
 * What a consent would say about the network: a server keeps what it had in the same isolation; a new one gets a closed
 * network with the hosts that were typed, where this machine can close it.
 */
export async function hostsToConsent(
  call: Call,
  { server, allowed_hosts: had, last_consent: last }: Pick<MachineServer, 'server' | 'allowed_hosts' | 'last_consent'>,
  typed: readonly string[] = [],
): Promise<ConsentedHosts> {
  if (server.mode !== 'local') return { hosts: undefined, text: 'runs nothing on this machine' };
  if (!isPlacedInContainer(server)) {
    const own = isContainerCommand(server.command);
    const text = own ? `in its own container; ${OPEN}` : 'none: it runs code as you, with your files and your network';
    return { hosts: undefined, text };
  }
  const before = last === null ? null : consented.safeParse(parseJson(last.text)).data;
  if (had === null && before?.isolation === 'container' && typed.length === 0) {
    return { hosts: null, text: `in a container, as before; ${OPEN}` };
  }
  const hosts = [...new Set([...(had ?? []), ...typed])].toSorted();
  const runtime = await openEngine(call.context.env);
  // With neither an engine nor bubblewrap the server does not start, and may once there is one.
  const isOfEngine = runtime.ok && (await imageOf(call, server.command)).ok;
  const isolation = isOfEngine ? await fetchIsolation(call, runtime.value.endpoint) : null;
  if (isolation?.sealed === true) return { hosts, text: `in a container; ${reachText(server.name, hosts)}` };
  const sandbox = findSandbox(call, server.command);
  if (sandbox.ok) return { hosts, text: `in a sandbox of bubblewrap; ${reachText(server.name, hosts)}` };
  if (isolation === null) return { hosts, text: `in a container; ${reachText(server.name, hosts)}` };
  return { hosts: null, text: `in a container; ${OPEN}, because: ${isolation.message ?? UNSEALED}` };
}

const OPEN = 'it can reach every host, also on your network';

/** Where a new server would run, before the person agrees to it. */
export function isolationLine(isolation: McpServer['isolation'], hosts: readonly string[]): string {
  if (isolation === 'process') return 'it runs code as you, with your files and your network';
  const reach = hosts.length === 0 ? 'it reaches no host until you allow one' : reachText('', hosts);
  return `it runs in a container, or in a sandbox where there is no engine; ${reach}`;
}

/** What a container with a closed network reaches. */
export function reachText(name: string, hosts: readonly string[]): string {
  if (hosts.length > 0) return `it reaches only ${hosts.join(', ')}, with the credentials that you have there`;
  return `it reaches no host until you allow one: svc mcp allow ${name} HOST`;
}
