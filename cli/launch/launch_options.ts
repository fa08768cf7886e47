import {
  parseImageReference,
  parseSandboxProxy,
  REMOVED_SANDBOX_PROXY_SETTING,
  type SandboxProxy,
  type Settings,
} from '../../shared/model/settings.ts';
import { EGRESS_MODES, type Egress } from '../../shared/model/egress.ts';
import type { Result } from '../../shared/model/result.ts';
import type { BindMount } from '../../sandbox/engine/container_runtime.ts';
import type { EngineName } from '../../sandbox/engine/engine_address.ts';
import { parseSandboxMode, type SandboxMode } from '../../sandbox/launch/launch_mode.ts';
import { parseMount } from '../../sandbox/launch/mount_policy.ts';
import { parseUnsealed, type UnsealedCredential } from '../../sandbox/launch/unsealed.ts';
import type { Call } from '../command_line.ts';
import { settingsOf } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { parseMcpServer } from '../mcp/mcp_server_option.ts';
import { parseSessionLength } from '../terminal/relative_time.ts';
import { HTTPS_PORT, portOfHost } from '../../shared/net/host_port.ts';
import { parseAllowedHost, parsePlainHost } from '../../shared/resolve/admitted_host.ts';
import type { UseOptions } from './chosen_secrets.ts';
import { type LimitOptions, listLimits } from './limit_options.ts';
import type { ScopeOptions } from './scope_option.ts';
import { valueOrUsageError } from '../command_options.ts';

/** The options of `svc launch` as typed. */
export interface LaunchOptions extends UseOptions, ScopeOptions, LimitOptions {
  readonly sandbox?: string;
  readonly sandboxProxy?: string;
  readonly egress?: string;
  readonly allow?: readonly string[];
  readonly plainHttp?: readonly string[];
  readonly image?: string;
  readonly mount?: readonly string[];
  readonly defaultMount: boolean;
  readonly env?: readonly string[];
  readonly unsealed?: readonly string[];
  readonly mcp?: readonly string[];
  readonly workdir?: string;
  readonly name?: string;
  readonly detach?: boolean;
  readonly relay?: boolean;
  readonly ttl?: string;
  /** The profile that was named instead of a command; the rest is only for these. */
  readonly agent?: string;
  readonly login?: string;
  readonly base?: string;
  readonly rebuild?: boolean;
  readonly forget?: boolean;
  readonly quiet?: boolean;
}

/** A valid launch request, made from the command line and the environment alone. */
export interface LaunchRequest {
  readonly sandbox: SandboxMode;
  /** Null: the one that the settings name, or that works. */
  readonly engine: EngineName | null;
  readonly proxy: SandboxProxy;
  readonly egress: Egress;
  /** Host patterns, for sealed egress; those with a port, for every egress. */
  readonly allow: readonly string[];
  /** Host patterns. */
  readonly plainHttp: readonly string[];
  readonly image: string | null;
  /** Sources as typed. */
  readonly mounts: readonly BindMount[];
  readonly defaultMount: boolean;
  readonly envNames: readonly string[];
  readonly unsealed: readonly UnsealedCredential[];
  /** Names or ids. */
  readonly mcpServers: readonly string[];
  readonly workdir: string | null;
  readonly name: string | null;
  readonly detach: boolean;
  readonly relay: boolean;
  readonly ttlSeconds: number | null;
  readonly command: readonly string[];
}

/** Parses the command line and the settings; throws the first mistake with the option and the fix. */
export function launchRequest(call: Call<LaunchOptions>): LaunchRequest {
  const { options, args, context } = call;
  refuseRemovedSetting(context.env);
  const settings = settingsOf(context);
  const sandbox = option('--sandbox', options.sandbox, parseSandboxMode) ?? null;
  const request: LaunchRequest = {
    sandbox: sandbox ?? settings.sandboxEngine ?? 'docker',
    engine: sandbox === 'none' ? null : sandbox,
    proxy: option('--sandbox-proxy', options.sandboxProxy, parseSandboxProxy) ?? settings.sandboxProxy ?? 'auto',
    egress: option('--egress', options.egress, parseEgress) ?? 'open',
    allow: (options.allow ?? []).map((text) => valueOrUsageError('--allow', parseAllowedHost(text))),
    plainHttp: (options.plainHttp ?? []).map((text) => valueOrUsageError('--plain-http', parsePlainHost(text))),
    image: requestedImage(options, settings),
    mounts: (options.mount ?? []).map((text) => valueOrUsageError('--mount', parseMount(text))),
    defaultMount: options.defaultMount,
    envNames: [...new Set(options.env ?? [])],
    unsealed: (options.unsealed ?? []).map((text) => valueOrUsageError('--unsealed', parseUnsealed(text))),
    mcpServers: (options.mcp ?? []).map((text) => valueOrUsageError('--mcp', parseMcpServer(text))),
    workdir: option('--workdir', options.workdir, parseWorkdir) ?? null,
    name: option('--name', options.name, parseName) ?? null,
    detach: options.detach === true,
    relay: options.relay === true,
    ttlSeconds: option('--ttl', options.ttl, parseSessionLength) ?? null,
    command: args,
  };
  if (options.agent === undefined) refuseAgentOptions(options);
  refuseTwice(request);
  refuseUselessAllow(request);
  refuseWithoutProxy(request, options);
  if (request.sandbox === 'none') refuseWithoutContainer(call, request);
  else if (request.image === null && options.agent === undefined) throw noImageError();
  return request;
}

/** The setting names an image for commands, in which no agent need be. */
function requestedImage(options: LaunchOptions, { sandboxImage }: Settings): string | null {
  const given = option('--image', options.image, parseImageReference);
  return given ?? (options.agent === undefined ? sandboxImage : undefined) ?? null;
}

/** Refuses options of agents for another command: the option would have no effect. */
function refuseAgentOptions(options: LaunchOptions): void {
  const asked = (['login', 'base', 'rebuild', 'forget', 'quiet'] as const).find((name) => options[name] !== undefined);
  if (asked === undefined) return;
  throw new CliError(EXIT.usage, `--${asked} is for an agent, and no agent is named`, [
    `\`svc agents\` lists the agents: svc launch --${asked} ... AGENT`,
  ]);
}

/** Refuses the removed setting: someone who still sets it expects it to have an effect. */
function refuseRemovedSetting(env: Call['context']['env']): void {
  if (env[REMOVED_SANDBOX_PROXY_SETTING] === undefined) return;
  throw new CliError(EXIT.usage, `${REMOVED_SANDBOX_PROXY_SETTING} is set, but this setting was removed`, [
    `Unset it. Use SVC_SANDBOX_PROXY=auto|on|off or --sandbox-proxy=auto|on|off; the default, auto, uses the proxy.`,
  ]);
}

function refuseTwice({ envNames, unsealed }: LaunchRequest): void {
  const names = [...envNames, ...unsealed.map(({ env }) => env)];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new CliError(EXIT.usage, `the variable ${JSON.stringify(twice)} is given twice: use one option for it`);
  }
}

/**
 * With another egress every public host can be reached on port 443, and a list would only seem to limit it. A typed host may be
 * private.
 */
function refuseUselessAllow({ allow: typed, egress }: LaunchRequest): void {
  const allow = typed.filter((host) => portOfHost(host) === HTTPS_PORT);
  if (allow.length === 0 || egress === 'sealed') return;
  const pattern = allow.find((host) => host.includes('*'));
  if (egress === 'sealed,public' && pattern === undefined) return;
  if (egress === 'sealed,public') {
    throw new CliError(EXIT.usage, `--allow ${pattern}: every public host can be reached; name a private one exactly`);
  }
  throw new CliError(
    EXIT.usage,
    `--allow needs --egress=sealed: with --egress=${egress} every host can be reached, and only one on another port is named: --allow HOST:PORT`,
  );
}

/** Refuses options that need the proxy. */
function refuseWithoutProxy(request: LaunchRequest, options: UseOptions & ScopeOptions & LimitOptions): void {
  if (request.proxy !== 'off' && request.sandbox !== 'none') return;
  const off = request.proxy === 'off' ? '--sandbox-proxy=off' : `--sandbox=${request.sandbox}`;
  const asked = [
    ...(request.egress === 'open' ? [] : [`--egress=${request.egress}`]),
    ...(request.unsealed.length > 0 ? ['--unsealed'] : []),
    ...(request.plainHttp.length > 0 ? ['--plain-http'] : []),
    ...(request.egress === 'open' && request.allow.length > 0 ? ['--allow'] : []),
    ...(request.relay ? ['--relay'] : []),
    ...(request.mcpServers.length > 0 ? ['--mcp'] : []),
    ...(options.use === undefined ? [] : ['--use']),
    ...(options.scope === undefined ? [] : ['--scope']),
    ...listLimits(options),
    ...(request.ttlSeconds !== null ? ['--ttl'] : []),
  ];
  if (asked.length > 0 && request.proxy !== 'on') {
    throw new CliError(EXIT.usage, `${asked.join(', ')} needs the proxy, but ${off} turns it off`);
  }
}

/** Refuses options that need a container. */
function refuseWithoutContainer(call: Call<LaunchOptions>, request: LaunchRequest): void {
  const asked = [
    ...(call.options.image === undefined ? [] : ['--image']),
    ...(request.mounts.length > 0 || !request.defaultMount ? ['--mount'] : []),
    ...(request.envNames.length > 0 ? ['--env'] : []),
    ...(request.workdir === null ? [] : ['--workdir']),
    ...(request.name === null ? [] : ['--name']),
    ...(request.detach ? ['--detach'] : []),
  ];
  if (asked.length === 0) return;
  throw new CliError(EXIT.usage, `${asked.join(', ')} needs a container, but --sandbox=none uses none`);
}

function noImageError(): CliError {
  return new CliError(EXIT.usage, 'no image: give one with --image IMAGE, or set SVC_SANDBOX_IMAGE', [
    'Build one from a base image: svc image build --base BASE --tag svc-agent',
    'Requirements for your own image: docs/image-contract.md',
  ]);
}

function parseEgress(text: string): Result<Egress, string> {
  const mode = EGRESS_MODES.find((each) => each === text);
  if (mode !== undefined) return { ok: true, value: mode };
  return { ok: false, error: `is ${JSON.stringify(text)}: use open, sealed or sealed,public` };
}

function parseWorkdir(text: string): Result<string, string> {
  if (text.startsWith('/') && !/\p{Cc}/u.test(text)) return { ok: true, value: text };
  return { ok: false, error: `is ${JSON.stringify(text)}: use an absolute path in the container, such as /work` };
}

function parseName(text: string): Result<string, string> {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/.test(text)) return { ok: true, value: text };
  return {
    ok: false,
    error: `is ${JSON.stringify(text)}: use up to 63 letters, digits, "_", "." and "-", beginning with a letter or digit`,
  };
}

function option<T>(name: string, text: string | undefined, parse: (text: string) => Result<T, string>): T | undefined {
  return text === undefined ? undefined : valueOrUsageError(name, parse(text));
}
