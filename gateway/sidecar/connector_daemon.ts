import { z } from 'zod';
import { LIMIT_SETTINGS } from '../../shared/model/limit_settings.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { runReply, type RunReply, type RunRequest } from '../../shared/wire/connectors.ts';
import { createHttpClient, type HttpCall, type HttpReply } from '../../machine/http_call.ts';
import { type ListedOperation, operationsReply } from '../../shared/wire/connector_operations.ts';
import { ACTING_SESSION_HEADER } from '../../shared/wire/connector_operations.ts';
import { parseJson } from '../../shared/model/json.ts';

/** Why the daemon did not do what it was asked. */
export interface DaemonProblem {
  /** The daemon's own code; `sidecar_unreachable` when it gave none. */
  readonly code: string;
  /** The problem and the fix. */
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The operations that can be run, with the tag that changes whenever they do. */
export interface OperationList {
  readonly etag: string;
  readonly operations: readonly ListedOperation[];
}

/** The daemon's connector operations, as the gateway uses them. */
export interface ConnectorDaemon {
  /**
   * The list, once it is another one than `heldEtag` names or `waitSeconds` are over; null when it is still that one.
   */
  operations(
    heldEtag: string | null,
    waitSeconds: number,
    signal: AbortSignal,
  ): Promise<Result<OperationList | null, DaemonProblem>>;
  /** Runs an operation for a session, or for the host itself. */
  run(request: RunRequest, sessionId: string | null, signal: AbortSignal): Promise<Result<RunReply, DaemonProblem>>;
}

/** More than an approval is waited for and an upstream may take. */
const RUN_TIMEOUT_MS = (120 + LIMIT_SETTINGS.runTimeoutSeconds.max) * 1000;
const LIST_TIMEOUT_MS = 10_000;
const MAX_REPLY_BYTES = 32 * 1024 * 1024;

const refusalBody = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).default({}),
  }),
});

/** Where the daemon listens, and what opens its local API. */
export interface DaemonPlace {
  readonly origin: URL;
  readonly hostToken: string;
}

/**
 * Calls the daemon as the host. Where it is, is looked up for each call: it may have been started again. A connection is
 * for one call: on one that was kept a call is made again when that turns out to be closed, and a run must not be.
 */
export function connectorDaemon(locate: () => DaemonPlace | null): ConnectorDaemon {
  return {
    async operations(heldEtag, waitSeconds, signal) {
      const target = `/v1/connector-operations?wait=${waitSeconds}`;
      const headers = heldEtag === null ? {} : { 'if-none-match': heldEtag };
      const timeoutMs = LIST_TIMEOUT_MS + waitSeconds * 1000;
      const reply = await answered(locate(), { method: 'GET', target, headers, body: '', timeoutMs, signal });
      if (!reply.ok) return reply;
      return reply.value.status === 304 ? ok(null) : listOf(reply.value);
    },
    async run(request, sessionId, signal) {
      const acting = sessionId === null ? {} : { [ACTING_SESSION_HEADER]: sessionId };
      const headers = { 'content-type': 'application/json', ...acting };
      const target = '/v1/connector-operations/run';
      const body = JSON.stringify(request);
      const timeoutMs = RUN_TIMEOUT_MS;
      const reply = await answered(locate(), { method: 'POST', target, headers, body, timeoutMs, signal });
      return reply.ok ? parsed(runReply, reply.value) : reply;
    },
  };
}

async function answered(place: DaemonPlace | null, call: HttpCall): Promise<Result<HttpReply, DaemonProblem>> {
  if (place === null) return err(unreachable('it is not running'));
  const client = createHttpClient({ baseUrl: place.origin, maxReplyBytes: MAX_REPLY_BYTES });
  const headers = { ...call.headers, authorization: `Bearer ${place.hostToken}` };
  const reply = await client.call({ ...call, headers }).finally(() => client.close());
  if (!reply.ok) return err(unreachable(reply.error.message));
  if (reply.value.status < 400) return reply;
  const refused = refusalBody.safeParse(parseJson(reply.value.body));
  return err(refused.success ? refused.data.error : unreachable(`it answered ${reply.value.status}`));
}

function listOf(reply: HttpReply): Result<OperationList, DaemonProblem> {
  const list = parsed(operationsReply, reply);
  return list.ok ? ok({ etag: reply.header('etag') ?? '', operations: list.value.items }) : list;
}

function parsed<T>(schema: z.ZodType<T>, reply: HttpReply): Result<T, DaemonProblem> {
  const read = schema.safeParse(parseJson(reply.body));
  return read.success ? ok(read.data) : err(unreachable('it answered something else; restart it after an update'));
}

function unreachable(why: string): DaemonProblem {
  const message = `the sidecar did not answer: ${why}. See: svc status`;
  return { code: 'sidecar_unreachable', message, details: {} };
}
