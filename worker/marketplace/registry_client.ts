import { err, ok, type Result } from '../../shared/model/result.ts';
import type { Outbound, OutboundReply, OutboundFailureReason } from '../kernel/outbound.ts';
import { readRetryAfter } from '../kernel/retry_after.ts';
import { readRegistryRecord, type RegistryRecord } from './registry_record.ts';
import { parseJsonBytes } from '../../shared/model/json.ts';
import type { Failure } from '../../shared/model/failure.ts';

/** The requested page size, which is also the registry's maximum. */
const REGISTRY_PAGE = 100;
/** If a registry sends more, only this many entries are read. */
const MAX_PAGE_ENTRIES = 500;
const MAX_CURSOR_CHARACTERS = 300;
const MAX_WAIT_SECONDS = 600;
const DEFAULT_WAIT_SECONDS = 60;

/** The registry's answer. */
export interface RegistryPage {
  readonly records: readonly RegistryRecord[];
  /** The next page; null on the last one. */
  readonly nextCursor: string | null;
  /** The number of invalid entries. */
  readonly skipped: number;
}

/** Why the registry gave no answer. */
export interface RegistryFailure {
  readonly reason: 'not_found' | 'bad_reply' | 'unavailable' | 'too_many_requests';
  /** For a person: names the registry's host, but not the query. */
  readonly message: string;
  /** How long the registry asks not to be called. */
  readonly retryAfterSeconds: number | null;
}

interface ListRequest {
  readonly cursor: string | null;
  /** The registry's own search, which covers only names. */
  readonly search: string | null;
  /** RFC 3339; then deleted entries are listed too. */
  readonly updatedSince: string | null;
}

/** The URL of a page of the newest versions. */
export function listUrl(registryUrl: string, { cursor, search, updatedSince }: ListRequest): string {
  const query = new URLSearchParams({ limit: String(REGISTRY_PAGE), version: 'latest' });
  if (updatedSince !== null) query.set('updated_since', updatedSince);
  if (search !== null) query.set('search', search);
  if (cursor !== null) query.set('cursor', cursor);
  return `${registryUrl}/v0/servers?${query.toString()}`;
}

/** The URL of every version of an entry, or of one. */
export function versionsUrl(registryUrl: string, name: string, version: string | null): string {
  const versions = `${registryUrl}/v0/servers/${encodeURIComponent(name)}/versions`;
  return version === null ? versions : `${versions}/${encodeURIComponent(version)}`;
}

/** Calls the registry. An invalid entry is skipped and counted; an invalid page is an error. */
export async function askRegistry(
  outbound: Outbound,
  url: string,
  nowMs: number,
): Promise<Result<RegistryPage, RegistryFailure>> {
  const headers = { accept: 'application/json', 'user-agent': 'svc' };
  const reply = await outbound.call({ method: 'GET', url, headers, body: null });
  if (!reply.ok) return err(callFailure(reply.error));
  const failure = statusFailure(reply.value, new URL(url).hostname, nowMs);
  return failure === null ? readPage(reply.value, new URL(url).hostname) : err(failure);
}

function statusFailure({ status, retryAfter }: OutboundReply, host: string, nowMs: number): RegistryFailure | null {
  if (status === 200) return null;
  if (status === 404) return { reason: 'not_found', message: `${host} has no such entry`, retryAfterSeconds: null };
  const message = `${host} answered with status ${status}`;
  if (status === 429) {
    return {
      reason: 'too_many_requests',
      message,
      retryAfterSeconds: waitSeconds(retryAfter, nowMs) ?? DEFAULT_WAIT_SECONDS,
    };
  }
  if (status < 500) return badReply(message);
  return { reason: 'unavailable', message, retryAfterSeconds: waitSeconds(retryAfter, nowMs) };
}

/** An unreadable reply concerns one URL; an unreachable registry concerns every call. */
function callFailure({ reason, message }: Failure<OutboundFailureReason>): RegistryFailure {
  const isOfReply = reason === 'upstream_invalid_reply' || reason === 'upstream_response_too_large';
  return isOfReply ? badReply(message) : { reason: 'unavailable', message, retryAfterSeconds: null };
}

/** How long the registry asks to be left alone: at least a second, at most ten minutes; null if it says nothing. */
function waitSeconds(retryAfter: string | undefined, nowMs: number): number | null {
  const afterMs = readRetryAfter(retryAfter, nowMs);
  return afterMs === null ? null : Math.min(Math.max(Math.ceil(afterMs / 1000), 1), MAX_WAIT_SECONDS);
}

function readPage({ body }: OutboundReply, host: string): Result<RegistryPage, RegistryFailure> {
  const value = parseJsonBytes(body);
  if (typeof value !== 'object' || value === null) return err(badReply(`the reply of ${host} is not a JSON object`));
  if (!('servers' in value)) return readSingle(value, host);
  if (!Array.isArray(value.servers)) return err(badReply(`the reply of ${host} has no list of servers`));
  const entries: readonly unknown[] = value.servers.slice(0, MAX_PAGE_ENTRIES);
  const records = entries.map((entry) => readRegistryRecord(entry)).filter((record) => record !== null);
  const nextCursor = readCursor(value);
  if (nextCursor === undefined) return err(badReply(`the reply of ${host} has an invalid cursor`));
  return ok({ records, nextCursor, skipped: value.servers.length - records.length });
}

/** One version of an entry, without a list around it. */
function readSingle(value: object, host: string): Result<RegistryPage, RegistryFailure> {
  const record = readRegistryRecord(value);
  if (record === null) return err(badReply(`the reply of ${host} is neither a list nor an entry`));
  return ok({ records: [record], nextCursor: null, skipped: 0 });
}

/** Null on the last page; undefined if the cursor is invalid. Treating that as the last page would lose the rest. */
function readCursor(value: object): string | null | undefined {
  const metadata = 'metadata' in value ? value.metadata : null;
  if (typeof metadata !== 'object' || metadata === null) return null;
  const cursors: Readonly<Record<string, unknown>> = { ...metadata };
  const next = cursors['nextCursor'] ?? cursors['next_cursor'] ?? '';
  if (typeof next !== 'string' || next.length > MAX_CURSOR_CHARACTERS) return undefined;
  return next === '' ? null : next;
}

function badReply(message: string): RegistryFailure {
  return { reason: 'bad_reply', message, retryAfterSeconds: null };
}
