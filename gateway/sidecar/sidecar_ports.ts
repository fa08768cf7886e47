import { MOST_SHOWN_BYTES } from '../../shared/wire/approval_views.ts';
import { findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { readSnapshotMcpServers } from '../../shared/wire/mcp/mcp_servers.ts';
import {
  eventsReply,
  type GatewayEventRecord,
  type GatewayIdentity,
  MAX_LIST_WAIT_SECONDS,
  type ReleaseInput,
  releaseReply,
  type ReportedServer,
  type ServersReply,
  serversReply,
} from '../../shared/wire/mcp/mcp_gateway.ts';
import type { ReviewedKind } from '../../shared/model/mcp_tool.ts';
import type { ToolDefinition } from '../../shared/mcp/tools/tool_definition.ts';
import type { Clock } from '../../shared/model/clock.ts';
import type { LocalApi, LocalApiFailure } from './local_api.ts';
import { EventOutbox } from './event_outbox.ts';
import { ServerWatch } from './server_watch.ts';
import type {
  ApprovalRefusalReason,
  GatewayEvent,
  GatewayPorts,
  GatewayServer,
  LaunchRefusalReason,
  ReleasedValues,
  ServerHealth,
  ToolApproval,
} from '../gateway_ports.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { toShownLine } from '../../shared/model/shown_text.ts';
import type { Refusal } from '../../shared/model/refusal.ts';

/** Details of a server for troubleshooting, in addition to its state. */
export interface ServerDetail {
  readonly restarts: number;
  /** Null while unknown. */
  readonly tools: number | null;
  /** Its stderr with secrets masked. */
  readonly stderr: string;
}

interface SidecarPortsOptions {
  readonly localApi: LocalApi;
  readonly identity: GatewayIdentity;
  readonly clock: Clock;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
  /** Read for each report. */
  readonly detailOf: (serverId: string) => ServerDetail | null;
}

const LIST_MARGIN_MS = 10_000;
const RELEASE_TIMEOUT_MS = 100_000;
const APPROVAL_TIMEOUT_MS = 120_000;
const TOOLS_TIMEOUT_MS = 20_000;
const GATHER_MS = 100;
const MAX_LOG_LINES = 500;
const MAX_LOG_LINE_CHARACTERS = 4_000;
const MAX_TOOL_CHARACTERS = 1_000;
/** Maximum size of one report; the sidecar accepts twice this. */
const MAX_LOG_BYTES = 512 * 1024;
const nothing = z.null();
const sessionState = z.object({ state: z.enum(['live', 'ended']) });
const approved = z.object({ approval_id: z.string() });

/** The gateway's ports, implemented by calls to the sidecar. After a restart of the sidecar, everything is reported again. */
export class SidecarPorts implements GatewayPorts {
  readonly #options: SidecarPortsOptions;
  readonly #outbox: EventOutbox;
  readonly #watch: ServerWatch;
  readonly #closing = new AbortController();
  readonly #toldLogs = new Map<string, string>();
  #toldDetails = '';
  /** The last report left out logs that did not fit. */
  #isPartial = false;
  #states: readonly ServerHealth[] = [];
  #reporting: Promise<void> | null = null;
  #isNews = false;

  constructor(options: SidecarPortsOptions) {
    this.#options = options;
    const { localApi, identity, clock, pause, warn } = options;
    const send = (events: readonly GatewayEventRecord[]) =>
      localApi.call('POST', '/v1/mcp/events', eventsReply, { body: { gateway: identity, events } });
    this.#outbox = new EventOutbox({ send, pause, warn, now: () => clock.now() });
    this.#watch = new ServerWatch({
      list: (version, signal) => this.#list(version, signal),
      pause,
      onReturn: () => this.#tellEverything(),
    });
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  watchServers(onChange: (servers: readonly GatewayServer[]) => void, signal: AbortSignal): Promise<void> {
    return this.#watch.follow((list) => onChange(serversIn(list)), signal);
  }

  async release(
    server: GatewayServer['server'],
    consentHash: string | null,
  ): Promise<Result<ReleasedValues, Refusal<LaunchRefusalReason>>> {
    const body: ReleaseInput = { consent_hash: consentHash, url: server.url };
    const target = `/v1/mcp/servers/${server.id}/release`;
    const reply = await this.#options.localApi.call('POST', target, releaseReply, {
      body,
      timeoutMs: RELEASE_TIMEOUT_MS,
    });
    if (!reply.ok) return err(launchRefusal(reply.error));
    const { values, ends_at: endsAt = null, bearer } = reply.value;
    return ok({
      values: new Map(Object.entries(values).map(([path, value]) => [path, new Secret(value)])),
      endsAt,
      bearer: bearer && { token: new Secret(bearer.token), expiresAt: bearer.expires_at },
    });
  }

  async approve(call: ToolApproval): Promise<Result<null, Refusal<ApprovalRefusalReason>>> {
    const { server, tool, argumentsHash, summary, shownArguments: text, sessionId, signal } = call;
    const body = {
      server_id: server.id,
      tool: toShownTool(tool),
      arguments_hash: callHash(tool, argumentsHash),
      summary,
      session_id: sessionId,
      ...(text !== null && { arguments: { text: text.slice(0, MOST_SHOWN_BYTES), bytes: Buffer.byteLength(text) } }),
    };
    const how = { body, timeoutMs: APPROVAL_TIMEOUT_MS, signal };
    const reply = await this.#options.localApi.call('POST', '/v1/mcp/approvals', approved, how);
    return reply.ok ? ok(null) : err(approvalRefusal(reply.error));
  }

  async reportTools(
    server: GatewayServer['server'],
    kind: ReviewedKind,
    tools: readonly ToolDefinition[],
  ): Promise<Result<null, string>> {
    const body = { server_id: server.id, ...(kind !== 'tool' && { kind }), tools };
    const how = { body, timeoutMs: TOOLS_TIMEOUT_MS };
    const reply = await this.#options.localApi.call('POST', '/v1/mcp/tools', nothing, how);
    if (!reply.ok) return err(reply.error.message);
    await this.#watch.refresh();
    return ok(null);
  }

  async hasEnded(sessionId: string, signal: AbortSignal): Promise<boolean> {
    const target = `/v1/sandbox-proxy/sessions/${encodeURIComponent(sessionId)}`;
    const reply = await this.#options.localApi.call('GET', target, sessionState, { signal });
    return reply.ok ? reply.value.state === 'ended' : reply.error.code === 'not_found';
  }

  record(event: GatewayEvent): void {
    this.#outbox.add(recordOf(event));
  }

  isAccepting(): boolean {
    return this.#outbox.accepting;
  }

  reportHealth(states: readonly ServerHealth[]): void {
    this.#states = states;
    this.#isNews = true;
    if (this.#closing.signal.aborted) return;
    this.#reporting ??= this.#report().finally(() => {
      this.#reporting = null;
    });
  }

  /** Reports the servers' state again if there are new details. */
  refreshDetails(): void {
    if (this.#isPartial || this.#details() !== this.#toldDetails) this.reportHealth(this.#states);
  }

  /** Sends the remaining events and reports that this gateway ends. */
  async close(timeoutMs: number): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#outbox.close(timeoutMs), this.#reporting]);
    await this.#sendHealth({ ended: true, timeoutMs });
  }

  /** The list, as soon as it differs from `version`. */
  #list(version: string | null, signal: AbortSignal): Promise<Result<ServersReply, LocalApiFailure>> {
    const wait = version === null ? '' : `?wait=${MAX_LIST_WAIT_SECONDS}&version=${version}`;
    const timeoutMs = MAX_LIST_WAIT_SECONDS * 1000 + LIST_MARGIN_MS;
    return this.#options.localApi.call('GET', `/v1/mcp/servers${wait}`, serversReply, { timeoutMs, signal });
  }

  /** A restarted sidecar does not know what was reported to the previous one. */
  #tellEverything(): void {
    this.#toldLogs.clear();
    if (this.#states.length > 0) this.reportHealth(this.#states);
  }

  /** Used only to detect changes. */
  #details(): string {
    const { detailOf } = this.#options;
    return sha256Hex(JSON.stringify(this.#states.map(({ id }) => [id, detailOf(id)])));
  }

  async #report(): Promise<void> {
    while (this.#isNews && !this.#closing.signal.aborted) {
      await this.#options.pause(GATHER_MS, this.#closing.signal);
      this.#isNews = false;
      this.#toldDetails = this.#details();
      // A failed report is not retried: the next change or the next minute reports everything.
      await this.#sendHealth({ ended: false, timeoutMs: LIST_MARGIN_MS });
    }
  }

  async #sendHealth({ ended, timeoutMs }: { readonly ended: boolean; readonly timeoutMs: number }): Promise<void> {
    const { localApi, identity, detailOf } = this.#options;
    const logs = this.#listChangedLogs();
    const servers = this.#states.map((state): ReportedServer => {
      const detail = detailOf(state.id);
      return {
        id: state.id,
        state: state.state,
        last_error: state.lastError,
        checked_at: new Date(state.checkedAt).toISOString(),
        restarts: detail?.restarts ?? null,
        tools: detail?.tools ?? null,
        log: logs.get(state.id)?.lines ?? null,
      };
    });
    const body = { gateway: identity, servers, ended };
    const reply = await localApi.call('POST', '/v1/mcp/health', nothing, { body, timeoutMs });
    if (!reply.ok) return;
    for (const [id, { stderr }] of logs) {
      this.#toldLogs.delete(id);
      this.#toldLogs.set(id, stderr);
    }
  }

  /** The changed logs, as many as fit, least recently reported first. */
  #listChangedLogs(): ReadonlyMap<string, UntoldLog> {
    const toldOrder = [...this.#toldLogs.keys()];
    const ids = this.#states.map(({ id }) => id).toSorted((a, b) => toldOrder.indexOf(a) - toldOrder.indexOf(b));
    const logs = new Map<string, UntoldLog>();
    let room = MAX_LOG_BYTES;
    this.#isPartial = false;
    for (const id of ids) {
      const stderr = this.#options.detailOf(id)?.stderr ?? '';
      if (stderr === (this.#toldLogs.get(id) ?? '')) continue;
      const lines = linesOf(stderr);
      room -= Buffer.byteLength(JSON.stringify(lines));
      if (room < 0) this.#isPartial = true;
      else logs.set(id, { stderr, lines });
    }
    return logs;
  }
}

interface UntoldLog {
  readonly stderr: string;
  readonly lines: string[];
}

function serversIn({ items }: ServersReply): readonly GatewayServer[] {
  return items.flatMap(({ server: record, consent, missing, credentials, reviewed, ...item }) => {
    const [known] = readSnapshotMcpServers([record]).servers;
    const lists = { reviewed, reviewedKinds: item.reviewed_kinds, allowedHosts: item.allowed_hosts };
    const { image } = item;
    return known === undefined ? [] : [{ server: known.server, consent, missing, credentials, image, ...lists }];
  });
}

function linesOf(stderr: string): string[] {
  const lines = stderr.split('\n').map((line) => line.slice(0, MAX_LOG_LINE_CHARACTERS));
  if (lines.at(-1) === '') lines.pop();
  return lines.slice(-MAX_LOG_LINES);
}

const LAUNCH_REASONS: Readonly<Record<string, LaunchRefusalReason>> = {
  consent_needed: 'consent_needed',
  command_refused: 'consent_needed',
  credential_missing: 'credential_missing',
  credential_unavailable: 'credential_unavailable',
  authorisation_needed: 'authorisation_needed',
  reauthorisation_required: 'authorisation_needed',
};

function launchRefusal({ code, message }: LocalApiFailure): Refusal<LaunchRefusalReason> {
  return { reason: LAUNCH_REASONS[code] ?? 'control_plane_unavailable', message };
}

function approvalRefusal({ code, message }: LocalApiFailure): Refusal<ApprovalRefusalReason> {
  const isDecision = code === 'approval_required' || code === 'approval_denied';
  return { reason: isDecision ? code : 'control_plane_unavailable', message };
}

/** Uses the server's raw tool name: tools whose displayed names are equal stay distinct. */
function callHash(tool: string, argumentsHash: string): string {
  return sha256Hex(JSON.stringify([tool, argumentsHash]));
}

/** A tool's name for records and display, sanitised, because a server may choose any name. */
function toShownTool(tool: string): string {
  return toShownLine(tool, MAX_TOOL_CHARACTERS) || '\ufffd';
}

function recordOf(event: GatewayEvent): Omit<GatewayEventRecord, 'number'> {
  const { id, name, registryId, version } = event.server;
  const common = {
    type: event.type,
    server_id: id,
    server: name,
    registry_id: registryId,
    version,
    ...(findUncheckedCode(event.server).length > 0 && { unchecked: true }),
    session_id: 'sessionId' in event ? event.sessionId : null,
  };
  const tool = 'tool' in event ? { tool: toShownTool(event.tool) } : {};
  const reason = 'reason' in event ? { reason: event.reason } : {};
  const called = 'outcome' in event ? { outcome: event.outcome, duration_ms: Math.max(0, event.durationMs) } : {};
  return { ...common, ...tool, ...reason, ...called };
}
