import { SdkError, SdkErrorCode, SdkHttpError, type Transport, UnauthorizedError } from '@modelcontextprotocol/client';
import { consentText, needsConsent } from '../../shared/mcp/consent_hash.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { readClocks } from '../../shared/model/clock.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { CurrentMask } from './current_mask.ts';
import { connectClient, type Downstream, type DownstreamEvents, hasEndedAtProbe } from '../fronts/downstream.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import type { GatewayPorts } from '../gateway_ports.ts';
import { fillBearer, fillLaunch, type FilledLaunch } from './fill_launch.ts';
import { ValueEnds } from './value_ends.ts';
import type { LocalLaunch } from './local_launch.ts';
import { ProcessTransport } from './process_transport.ts';
import { openRemote } from './remote_launch.ts';
import type { SecretMask } from './secret_mask.ts';
import type { ServerProcess } from './server_process.ts';
import type { StartSlot } from './start_slots.ts';
import type { StderrRing } from './stderr_ring.ts';
import { toShownLine } from '../../shared/model/shown_text.ts';
import type { UpstreamProxy } from '../../shared/net/upstream_proxy.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import type { Failure } from '../../shared/model/failure.ts';
import type { ServerFailureReason } from '../gateway_ports.ts';
import type { FilledBearer } from './current_mask.ts';

interface LauncherOptions {
  readonly ports: Pick<GatewayPorts, 'release' | 'clock'>;
  readonly local: Pick<LocalLaunch, 'start' | 'explainFailure' | 'findTrial' | 'keepStarted' | 'goBack'>;
  readonly limits: GatewayLimits;
  /** The version of this program, sent to servers. */
  readonly version: string;
  /** The control plane is on this machine. */
  readonly isLocal: boolean;
  readonly extraRoots: readonly string[];
  readonly proxy?: UpstreamProxy | null;
}

/** One start of one server. */
interface LaunchRequest {
  readonly server: McpServer;
  readonly events: DownstreamEvents;
  readonly stderr: StderrRing;
  /** Whether the server is known to speak an earlier revision. */
  readonly isLegacy: boolean;
  /** Whether that is assumed because it did not answer when it was asked. */
  readonly isEraGuessed?: boolean;
  /** The server runs in a container whose only way out is the proxy. */
  readonly isSealed?: boolean;
  /** The id of the image that its own `docker run` may start. */
  readonly image?: string | null;
  /** The slot that it takes; by default none. */
  readonly slot?: StartSlot | null;
  readonly signal: AbortSignal;
}

interface Connection {
  readonly client: Downstream['client'];
  readonly isEraGuessed: boolean;
}

type Launched = Result<Downstream, Failure<ServerFailureReason>>;

interface ReadyLaunch extends FilledLaunch {
  readonly ends: ValueEnds;
}

/** Starts or connects to servers and performs the handshake. A failed start leaves nothing behind. */
export class Launcher {
  readonly #options: LauncherOptions;

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  async launch(request: LaunchRequest): Promise<Launched> {
    const { server } = request;
    const { ports } = this.#options;
    const release = () => ports.release(server, consentHashOf(server));
    const clocks = { clock: ports.clock, monotonicNow: MONOTONIC };
    const asked = readClocks(clocks);
    const released = await release();
    if (!released.ok) return err({ reason: released.error.reason, message: released.error.message });
    const filled = fillLaunch(server, released.value);
    if (!filled.ok) return err({ reason: 'credential_missing', message: filled.error });
    const ready = { ...filled.value, ends: new ValueEnds(released.value, asked, { ...clocks, release }) };
    if (server.mode === 'local') return this.#local(request, ready);
    // The SSE-only transport exists only in the earlier generation.
    const isLegacy = request.isLegacy || server.transport === 'sse';
    return this.#remote({ ...request, isLegacy }, ready);
  }

  /** A newer release of a package that does not start is replaced by the one before, which is started then. */
  async #local(request: LaunchRequest, filled: ReadyLaunch): Promise<Launched> {
    const { local } = this.#options;
    const trial = local.findTrial(request, filled);
    const launched = await this.#localOfAnyRevision(request, filled);
    if (trial === null) return launched;
    if (launched.ok) {
      await local.keepStarted(trial);
      return launched;
    }
    if (request.signal.aborted || !BY_RELEASE.has(launched.error.reason)) return launched;
    const back = await local.goBack(trial, launched.error.message);
    if (back === null) return launched;
    request.stderr.write(Buffer.from(`svc: ${back}\n`));
    return this.#localOfAnyRevision(request, filled);
  }

  async #localOfAnyRevision(request: LaunchRequest, filled: ReadyLaunch): Promise<Launched> {
    const first = await this.#localOnce(request, filled);
    // A server that ends when asked for its revision speaks an earlier one, or is broken: the next start shows which.
    const again = !first.ok && first.error.atProbe && !request.isLegacy && !request.signal.aborted;
    return again ? this.#localOnce({ ...request, isLegacy: true }, filled) : first;
  }

  async #localOnce(
    request: LaunchRequest,
    filled: ReadyLaunch,
  ): Promise<Result<Downstream, Failure<ServerFailureReason> & { readonly atProbe: boolean }>> {
    const { limits } = this.#options;
    request.stderr.maskWith(filled.mask.now);
    const started = await this.#options.local.start(request, filled);
    if (!started.ok) return err({ ...started.error, atProbe: false });
    const process = started.value;
    const fault: { message: string | null } = { message: null };
    const transport = new ProcessTransport(process, limits, (message) => {
      fault.message = message;
    });
    const { mask } = filled;
    const connected = await this.#connect(request, mask, transport);
    if (!connected.ok) {
      await process.stop(0);
      const failure = await localFailure(process, fault.message, connected.error, mask.now);
      return err({ ...this.#explain(request, filled, failure), atProbe: hasEndedAtProbe(connected.error) });
    }
    const how = process.ended.then((ending): Failure<ServerFailureReason> => {
      if (fault.message !== null) return { reason: 'output_limit', message: fault.message };
      return this.#explain(request, filled, { reason: 'exited', message: describeEnd(ending, process.stderr) });
    });
    return ok(this.#downstream(connected.value, filled, how, () => undefined));
  }

  #explain(
    request: LaunchRequest,
    filled: FilledLaunch,
    { reason, message }: Failure<ServerFailureReason>,
  ): Failure<ServerFailureReason> {
    const why = request.signal.aborted ? null : this.#options.local.explainFailure(request, filled);
    return { reason, message: why === null ? message : `${message}; ${why}` };
  }

  async #remote(request: LaunchRequest, filled: ReadyLaunch): Promise<Launched> {
    const { isLocal, extraRoots, proxy = null, limits, ports } = this.#options;
    const { mask } = filled;
    const ended = Promise.withResolvers<Failure<ServerFailureReason>>();
    const opened = openRemote(request.server, filled, {
      isLocal,
      extraRoots,
      proxy,
      limits,
      clock: ports.clock,
      monotonicNow: MONOTONIC,
      hasEnded: () => filled.ends.hasEnded,
      onFault: (message) => ended.resolve({ reason: 'output_limit', message }),
      refresh: () => this.#freshBearer(request.server, mask),
    });
    if (!opened.ok) return opened;
    const connected = await this.#connect(request, mask, opened.value.transport);
    if (!connected.ok) {
      opened.value.release();
      // A server that does not answer when asked for its revision may speak an earlier one; the next start shows it.
      const isSilent = SdkError.isInstance(connected.error) && connected.error.code === SdkErrorCode.RequestTimeout;
      if (isSilent && !request.isLegacy && !request.signal.aborted) {
        return this.#remote({ ...request, isLegacy: true, isEraGuessed: true }, filled);
      }
      return err(remoteFailure(request.server, connected.error, mask.now));
    }
    const { client } = connected.value;
    Object.assign(client, {
      onclose: () => ended.resolve({ reason: 'exited', message: 'the connection has ended' }),
    });
    const release = (): void => {
      opened.value.release();
      // No more messages will come: pending requests are rejected.
      void client.close().catch(() => undefined);
    };
    return ok(this.#downstream(connected.value, filled, ended.promise, release));
  }

  /** Masks a renewed token from now on. */
  async #freshBearer(server: McpServer, mask: CurrentMask): Promise<FilledBearer | null> {
    const released = await this.#options.ports.release(server, null);
    if (!released.ok || released.value.bearer === null) return null;
    const bearer = fillBearer(released.value.bearer);
    mask.add(bearer, this.#options.ports.clock.now());
    return bearer;
  }

  async #connect(
    request: LaunchRequest,
    mask: CurrentMask,
    transport: Transport,
  ): Promise<Result<Connection, unknown>> {
    const { limits, version } = this.#options;
    const { events, isLegacy, isEraGuessed = false, signal } = request;
    const late = AbortSignal.timeout(limits.startMs);
    const both = AbortSignal.any([signal, late]);
    try {
      const masked = maskEvents(events, mask);
      const probeMs = request.server.mode === 'remote' ? limits.remoteProbeMs : limits.probeMs;
      const askedAt = MONOTONIC();
      const client = await connectClient({
        transport,
        isLegacy,
        probeMs,
        events: masked,
        version,
        limits,
        signal: both,
      });
      // The SDK does not tell an answer from silence; an answer came before the time for it was over.
      const wasSilent = !isLegacy && client.getProtocolEra() === 'legacy' && MONOTONIC() - askedAt >= probeMs;
      return ok({ client, isEraGuessed: isEraGuessed || wasSilent });
    } catch (error) {
      await transport.close().catch(() => undefined);
      return err(late.aborted ? new StartTimeout(limits.startMs) : error);
    }
  }

  #downstream(
    { client, isEraGuessed }: Connection,
    { mask, ends }: Pick<ReadyLaunch, 'mask' | 'ends'>,
    closed: Promise<Failure<ServerFailureReason>>,
    release: () => void,
  ): Downstream {
    return {
      client,
      isEraGuessed,
      ends,
      get mask() {
        return mask.now;
      },
      closed: closed.then(({ reason, message }) => {
        release();
        return { reason, message: mask.now.maskText(message) };
      }),
      async close() {
        await client.close().catch(() => undefined);
        release();
      },
    };
  }
}

const MONOTONIC = (): number => performance.now();

/** SHA-256 (hex) of the consent text; null for a server that needs no consent. */
function consentHashOf(server: McpServer): string | null {
  return needsConsent(server) ? sha256Hex(consentText(server)) : null;
}

/** Why a start failed, where another release of the same package may do better. */
const BY_RELEASE: ReadonlySet<ServerFailureReason> = new Set([
  'spawn_failed',
  'start_timeout',
  'handshake_failed',
  'exited',
  'output_limit',
]);

class StartTimeout extends Error {
  constructor(ms: number) {
    super(`it did not start within ${ms / 1000} s`);
  }
}

/** A server's own messages are masked before they are passed on. */
function maskEvents(events: DownstreamEvents, mask: CurrentMask): DownstreamEvents {
  return {
    input: (call, gone) => events.input(mask.now.maskValue(call), gone),
    listChanged: (kind) => events.listChanged(kind),
    resourceUpdated: (uri) => events.resourceUpdated(mask.now.maskText(uri)),
    log: (message) => events.log(mask.now.maskValue(message)),
    elicitationComplete: (params) => events.elicitationComplete(mask.now.maskValue(params)),
  };
}

function describeEnd(how: string, stderr: StderrRing): string {
  const said = stderr.findLastLines();
  return `it ended (${how})${said.length === 0 ? '' : `; its last output was: ${said.join(' | ')}`}`;
}

async function localFailure(
  process: ServerProcess,
  fault: string | null,
  error: unknown,
  mask: SecretMask,
): Promise<Failure<ServerFailureReason>> {
  if (fault !== null) return { reason: 'output_limit', message: fault };
  if (error instanceof StartTimeout) return { reason: 'start_timeout', message: error.message };
  const how = await process.ended;
  const closed = SdkError.isInstance(error) && CLOSED.has(error.code);
  if (closed) return { reason: 'exited', message: describeEnd(how, process.stderr) };
  return { reason: 'handshake_failed', message: `it did not answer like an MCP server: ${messageOf(error, mask)}` };
}

const CLOSED: ReadonlySet<SdkErrorCode> = new Set([SdkErrorCode.ConnectionClosed, SdkErrorCode.EraNegotiationFailed]);

function remoteFailure(server: McpServer, error: unknown, mask: SecretMask): Failure<ServerFailureReason> {
  if (error instanceof StartTimeout) return { reason: 'start_timeout', message: error.message };
  if (isUnauthorised(error)) {
    const fix = 'sign in again, or store another credential for it';
    return {
      reason: 'authorisation_needed',
      message: `${hostOf(server)} refuses the credentials (401); ${fix}`,
    };
  }
  const unreachable = unreachableFailure(server, error, mask);
  if (unreachable !== null) return unreachable;
  const message = `${hostOf(server)} did not answer like an MCP server: ${messageOf(error, mask)}`;
  return { reason: SdkHttpError.isInstance(error) ? 'handshake_failed' : 'unreachable', message };
}

/** The problem, if an error means that a remote server cannot be reached now; null if it has answered. */
export function unreachableFailure(
  server: McpServer,
  error: unknown,
  mask: SecretMask,
): Failure<ServerFailureReason> | null {
  if (SdkHttpError.isInstance(error)) {
    const { status } = error.data;
    if (!GATEWAY_STATUS.has(status)) return null;
    return { reason: 'unreachable', message: `${hostOf(server)} cannot be reached: it answers ${status}` };
  }
  const root = rootOf(error);
  const code = root instanceof Error && 'code' in root ? root.code : null;
  if (typeof code !== 'string' || !NETWORK_CODES.has(code)) return null;
  return { reason: 'unreachable', message: `${hostOf(server)} cannot be reached: ${messageOf(error, mask)}` };
}

/** A reverse proxy answers so in place of a server that is down. */
const GATEWAY_STATUS: ReadonlySet<number> = new Set([502, 503, 504]);
const NETWORK_CODES: ReadonlySet<string> = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/** True if a remote server needs credentials or refuses the ones sent. */
export function isUnauthorised(error: unknown): boolean {
  if (error instanceof UnauthorizedError) return true;
  return SdkHttpError.isInstance(error) && error.data.status === 401;
}

function hostOf(server: McpServer): string {
  return server.url !== null && URL.canParse(server.url) ? new URL(server.url).host : 'the server';
}

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error;
}

const MOST_CHARACTERS = 300;

/** A server's message, which may quote its credentials: it is masked before it is shortened. */
function messageOf(error: unknown, mask: SecretMask): string {
  const root = rootOf(error);
  const text = mask.maskText(root instanceof Error ? root.message : String(root));
  return toShownLine(text, MOST_CHARACTERS);
}
