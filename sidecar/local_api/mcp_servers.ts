import { findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import { isContainerCommand, isPlacedInContainer } from '../../shared/mcp/server_isolation.ts';
import { parseJson } from '../../shared/model/json.ts';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { engineNameOf } from '../../sandbox/engine/engine_address.ts';
import { NODE_IMAGE } from '../../sandbox/engine/node_image.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { listRefusedHosts } from '../mcp/refused_hosts.ts';
import type { KnownServer } from '../mcp/server_directory.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { localError, type LocalError } from './local_error.ts';
import type { McpOptions } from './mcp_options.ts';
import { noServerError } from './mcp_release.ts';
import {
  type ConsentInput,
  type isolationQuery,
  type isolationReply,
  type ListedServer,
  type logsReply,
  type ServerHostsInput,
  type ServersReply,
  type serversQuery,
  snapshotRecord,
  type ToolsInput,
} from '../../shared/wire/mcp/mcp_gateway.ts';

/** Time between two checks, so that changes without a notification (a policy that becomes too old) are seen too. */
const LOOK_MS = 5_000;
const POLICY_WAIT_MS = 10_000;

/** `GET /v1/mcp/servers`: the servers of this machine, once they differ from the caller's list or its wait is over. */
export async function listServers(
  { mcp, clock, policy }: { readonly mcp: McpOptions } & Pick<LocalApiOptions, 'clock' | 'policy'>,
  { wait, version, min_policy_version: newest }: z.output<typeof serversQuery>,
  signal: AbortSignal,
): Promise<Result<ServersReply, LocalError>> {
  const reached = await policyOf(policy, newest);
  if (!reached.ok) return reached;
  const until = clock.now() + wait * 1000;
  for (;;) {
    const servers = mcp.directory.listAll();
    const reply = servers === null ? null : replyWith(mcp, servers);
    const left = until - clock.now();
    const isNews = reply !== null && reply.version !== version;
    if (isNews || left <= 0 || signal.aborted) return reply === null ? err(noneYetError()) : ok(reply);
    await mcp.directory.waitForChange(Math.min(left, LOOK_MS), signal);
  }
}

function replyWith(mcp: McpOptions, servers: readonly KnownServer[]): ServersReply {
  const items = servers.map((known) => ({
    ...factsOf(known),
    refused_hosts: listRefusedHosts(mcp.refused, known),
    health: healthOf(mcp, known),
  }));
  const problems = mcp.directory.listUnreadable().map(({ id, message }) => ({ id, message }));
  return { version: sha256Hex(JSON.stringify([servers.map(factsOf), problems])), items, problems };
}

/** The part of a server that a gateway has to act on when it changes. */
function factsOf(known: KnownServer): Omit<ListedServer, 'health' | 'refused_hosts'> {
  const { consent, consentHash, lastConsent, missing, credentials, reviewed, allowedHosts: hosts, image } = known;
  const { hash, text, consented_at } = lastConsent ?? { hash: '', text: '', consented_at: '' };
  return {
    server: snapshotRecord(known),
    consent,
    consent_hash: consentHash,
    last_consent: lastConsent && { hash, text, consented_at },
    missing: [...missing],
    credentials,
    reviewed: reviewed && [...reviewed],
    reviewed_kinds: [...known.reviewedKinds],
    allowed_hosts: hosts && [...hosts],
    image,
  };
}

function healthOf({ board }: McpOptions, known: KnownServer): ListedServer['health'] {
  const { state, lastError, checkedAt, restarts, tools, gateways } = board.stateOf(known);
  return { state, last_error: lastError, checked_at: new Date(checkedAt).toISOString(), restarts, tools, gateways };
}

/**
 * `POST /v1/mcp/servers/{id}/consent`: records that a person on this machine was shown what the hash covers. It applies only
 * to the configuration in force.
 */
export async function giveConsent(
  { mcp, policy }: { readonly mcp: McpOptions } & Pick<LocalApiOptions, 'policy'>,
  serverId: string,
  input: ConsentInput,
): Promise<Result<void, LocalError>> {
  const reached = await policyOf(policy, input.min_policy_version);
  if (!reached.ok) return reached;
  const known = mcp.directory.find(serverId);
  if (known === null) return err(noServerError(serverId));
  const { server, consentHash: hash, consentText: text } = known;
  if (hash === null || text === null) {
    return err(
      localError('conflict', `The server ${server.name} runs no program on this machine, so it needs no consent.`),
    );
  }
  if (hash !== input.consent_hash) {
    return err(localError('conflict', `The server ${server.name} has changed since it was shown: look at it again.`));
  }
  const [reason] = findUncheckedCode(server);
  if (reason !== undefined && !input.unchecked) {
    return err(
      localError('unchecked_code', `The server ${server.name} ${reason}. Consent to that with: svc mcp consent`),
    );
  }
  const isContainer = isContainerCommand(server.command);
  if (isContainer && input.image === undefined) {
    const message = `The server ${server.name} starts a container, and this consent names no image. Consent with: svc mcp consent ${server.name}`;
    return err(localError('conflict', message));
  }
  const image = isContainer ? { image: input.image } : {};
  const hosts = hostsOf(known, input);
  const closed = hosts === null ? {} : { hosts: [...hosts] };
  const given = await mcp.consents.give({ server_id: serverId, name: server.name, hash, text, ...closed, ...image });
  return given.ok ? ok(undefined) : err(localError('state_unusable', given.error.message));
}

/** `POST /v1/mcp/tools`: passes the tools on, and answers once the policy with the outcome is here. */
export async function reportTools(
  { mcp, policy }: { readonly mcp: McpOptions } & Pick<LocalApiOptions, 'policy'>,
  { server_id: serverId, kind, tools }: ToolsInput,
): Promise<Result<void, LocalError>> {
  if (mcp.directory.find(serverId) === null) return err(noServerError(serverId));
  const reported = await mcp.reportTools({ server_id: serverId, ...(kind && { kind }), tools });
  if (!reported.ok) return err(localError('control_plane_unavailable', reported.error.message));
  const reached = await policyOf(policy, reported.value);
  if (!reached.ok) return reached;
  return ok(undefined);
}

/** What a consent says about the hosts. A server keeps the open network that it had, and a new one begins with a closed one. */
function hostsOf(
  { server, lastConsent }: KnownServer,
  { allowed_hosts: given }: ConsentInput,
): readonly string[] | null {
  if (!isPlacedInContainer(server)) return null;
  if (given !== undefined) return given;
  const before = lastConsent === null ? null : consented.safeParse(parseJson(lastConsent.text)).data;
  return before?.isolation === 'container' ? (lastConsent?.hosts ?? null) : [];
}

const consented = z.object({ isolation: z.string() });

/** `POST /v1/mcp/servers/{id}/hosts`: gateways start the server again with the new list. */
export async function allowServerHosts(
  mcp: McpOptions,
  serverId: string,
  { allowed_hosts: hosts }: ServerHostsInput,
): Promise<Result<void, LocalError>> {
  const known = mcp.directory.find(serverId);
  if (known === null) return err(noServerError(serverId));
  if (known.allowedHosts === null) {
    const message = `The server ${known.server.name} does not run in a container with a closed network, so it has no list of hosts.`;
    return err(localError('conflict', message));
  }
  const changed = await mcp.consents.allowHosts(serverId, [...new Set(hosts)].toSorted());
  return changed.ok ? ok(undefined) : err(localError('state_unusable', changed.error.message));
}

/** `GET /v1/mcp/isolation`. */
export async function showIsolation(
  listeners: LocalApiOptions['listeners'],
  { endpoint }: z.output<typeof isolationQuery>,
): Promise<Result<z.output<typeof isolationReply>, never>> {
  const program = engineNameOf(endpoint);
  const runtime = { program, endpoint };
  const sandbox = { mode: program, image: '', imageId: '', runtime, detached: false, egress: 'sealed' as const };
  const planned = await listeners.planFor(sandbox);
  const isElsewhere = planned.ok ? await listeners.isInVirtualMachine(sandbox) : planned;
  if (!isElsewhere.ok) return ok({ sealed: false, message: isElsewhere.error.message, node_image: null });
  return ok({ sealed: true, message: null, node_image: isElsewhere.value ? NODE_IMAGE : null });
}

/** `DELETE /v1/mcp/servers/{id}/consent`: stops what runs. Also works for a server that no longer exists. */
export async function withdrawConsent(mcp: McpOptions, serverId: string): Promise<Result<void, LocalError>> {
  const withdrawn = await mcp.consents.withdraw(serverId);
  if (!withdrawn.ok) return err(localError('state_unusable', withdrawn.error.message));
  return withdrawn.value ? ok(undefined) : err(localError('not_found', 'No consent was given to this server.'));
}

/** `GET /v1/mcp/logs/{id}`. */
export function serverLogs(mcp: McpOptions, serverId: string): Result<z.output<typeof logsReply>, LocalError> {
  const items = mcp.board.logsOf(serverId).map(({ gateway, lines }) => ({ gateway, lines: [...lines] }));
  if (items.length === 0 && mcp.directory.find(serverId) === null) return err(noServerError(serverId));
  return ok({ items });
}

async function policyOf(
  policy: LocalApiOptions['policy'],
  minVersion: number | undefined,
): Promise<Result<void, LocalError>> {
  if (minVersion === undefined) return ok(undefined);
  const reached = await policy.waitForVersion(minVersion, POLICY_WAIT_MS);
  return reached.ok ? ok(undefined) : err(localError(reached.error.reason, reached.error.message));
}

function noneYetError(): LocalError {
  return localError(
    'control_plane_unavailable',
    'No policy has arrived from the control plane yet, so the MCP servers are unknown. See: svc status',
  );
}
