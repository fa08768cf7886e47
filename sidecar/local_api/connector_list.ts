import { z } from 'zod';
import { listOperations } from '../../shared/operation_tools/list_operations.ts';
import type { InstalledConnector } from '../../shared/model/connector.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { operationsReply } from '../../shared/wire/connectors/connector_operations.ts';
import type { LocalApiOptions } from './local_api_options.ts';
import { localError, type LocalError } from './local_error.ts';
import { sha256 } from '../../machine/sha256.ts';

const MAX_WAIT_SECONDS = 25;

/** `GET /v1/connector-operations`. With `wait`, a list whose tag If-None-Match names is answered only once it has changed. */
export const operationsQuery = z.strictObject({
  wait: z.coerce.number().int().min(0).max(MAX_WAIT_SECONDS).default(0),
});

/** A list, with a tag that changes with it. */
interface OperationList {
  readonly etag: string;
  readonly body: () => z.infer<typeof operationsReply>;
}

/** The list that the caller has, and how long it waits for another one. */
interface ListWait {
  readonly heldEtag: string | null;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/**
 * The operations of the installed connectors, once they differ from the caller's list or its wait is over. Refuses like a
 * request if no policy may be used.
 */
export async function connectorOperations(
  { policy, clock }: Pick<LocalApiOptions, 'policy' | 'clock'>,
  { heldEtag, waitMs, signal }: ListWait,
): Promise<Result<OperationList, LocalError>> {
  const until = clock.now() + waitMs;
  for (;;) {
    const version = policy.status()?.version ?? null;
    const current = policy.current();
    if (!current.ok) return err(localError(current.error.reason, current.error.message));
    const list = listOf(current.value.installed);
    const leftMs = until - clock.now();
    if (list.etag !== heldEtag || leftMs <= 0 || signal.aborted) return ok(list);
    await policy.waitForChange(version, leftMs, signal);
  }
}

function listOf(installed: readonly InstalledConnector[]): OperationList {
  const connectors = installed.toSorted((a, b) => (a.spec.fqn < b.spec.fqn ? -1 : 1));
  const facts = connectors.map(({ id, contentHash }) => `${id} ${contentHash}`);
  const etag = `"${sha256(facts.join('\n')).toString('base64url')}"`;
  return { etag, body: () => ({ items: connectors.flatMap(({ spec }) => listOperations(spec)) }) };
}
