import { LIMIT_SETTINGS } from '../../shared/model/limit_settings.ts';
import { ok, type Result } from '../../shared/model/result.ts';
import { runReply, type RunReply, type RunRequest } from '../../shared/wire/connectors/connectors.ts';
import {
  ACTING_SESSION_HEADER,
  type ListedOperation,
  operationsReply,
} from '../../shared/wire/connectors/connector_operations.ts';
import { type LocalApi, type LocalApiFailure, readReply } from './local_api.ts';

/** The operations that can be run, with a tag that changes with them. */
export interface OperationList {
  readonly etag: string;
  readonly operations: readonly ListedOperation[];
}

/** The sidecar's connector operations, as the gateway uses them. */
export interface ConnectorCalls {
  /** Returns the list when its tag differs from `heldEtag`; null if it is unchanged after `waitSeconds`. */
  operations(
    heldEtag: string | null,
    waitSeconds: number,
    signal: AbortSignal,
  ): Promise<Result<OperationList | null, LocalApiFailure>>;
  /** Runs an operation for a session or for the host. */
  run(request: RunRequest, sessionId: string | null, signal: AbortSignal): Promise<Result<RunReply, LocalApiFailure>>;
}

/** Longer than an approval and an upstream together may take. */
const RUN_TIMEOUT_MS = (120 + LIMIT_SETTINGS.runTimeoutSeconds.max) * 1000;
const LIST_TIMEOUT_MS = 10_000;

/** The connector operations of the sidecar that `localApi` calls. */
export function connectorCalls(localApi: LocalApi): ConnectorCalls {
  return {
    async operations(heldEtag, waitSeconds, signal) {
      const target = `/v1/connector-operations?wait=${waitSeconds}`;
      const headers = heldEtag === null ? {} : { 'if-none-match': heldEtag };
      const timeoutMs = LIST_TIMEOUT_MS + waitSeconds * 1000;
      const reply = await localApi.send('GET', target, { headers, timeoutMs, signal });
      if (!reply.ok) return reply;
      if (reply.value.status === 304) return ok(null);
      const list = readReply(operationsReply, reply.value);
      return list.ok ? ok({ etag: reply.value.header('etag') ?? '', operations: list.value.items }) : list;
    },
    run(body, sessionId, signal) {
      const headers = sessionId === null ? {} : { [ACTING_SESSION_HEADER]: sessionId };
      const how = { body, headers, timeoutMs: RUN_TIMEOUT_MS, signal, isOnce: true } as const;
      return localApi.call('POST', '/v1/connector-operations/run', runReply, how);
    },
  };
}
