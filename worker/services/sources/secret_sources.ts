import { z } from 'zod';
import type { Owner } from '../../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { SourcePlan, SourceRecord, SourceTested } from '../../../shared/wire/secret_sources.ts';
import { type SecretSource, SOURCE_TABLE } from '../../../shared/wire/sources/source_table.ts';
import { BORROWED_KIND, findServerCredential } from '../../../shared/model/source_kind.ts';
import { bumpPolicy } from '../../store/accounts.ts';
import type { Statement } from '../../store/database.ts';
import { findMcpServer, isStill } from '../../store/mcp/mcp_servers.ts';
import {
  findSourceAt,
  forgetEndedValues,
  insertSource,
  listSources,
  type SourcedSecret,
  type SourceRow,
} from '../../store/sources/secret_sources.ts';
import { findSecret, insertSecret, replaceSecret, type VaultPlace } from '../../store/secrets.ts';
import { type Caller, ownerName, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import type { Page } from '../../../shared/wire/primitives.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { type PageQuery, readPage } from '../../kernel/cursors.ts';
import { targetProblem } from '../../kernel/outbound.ts';
import { type Changed, commitPolicy, controlChain } from '../../kernel/policy_change.ts';
import { MOST_SKEW_MS } from '../../kernel/leased_renewal.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { listRequiredCredentials } from '../mcp/mcp_server_records.ts';
import { additionsOf, type OnlyNew, refuseTaken, sealRow } from '../vault/secrets.ts';
import { forgetDoubtful, revocationOfHeld, type Revoked, revokeMinted } from './given_up_values.ts';
import { mint, planMint } from './minted_value.ts';
import { keyPlace, mintedForOf, mintEvent, sourceOf } from './sourced_secret.ts';
import type { Minted, MintFailure } from './source_port.ts';
import { BORROWED_WHY } from './kinds/borrowed.ts';
import { configured } from './source_table.ts';

interface SourceToStore {
  readonly path: string;
  readonly owner: Owner;
  readonly description?: string | undefined;
  readonly source: SecretSource;
  readonly key: Secret;
}

/**
 * Makes the value of a secret minted from now on, by a new source or in place of an earlier one. Refuses with
 * `admin_required`, `conflict`, and `invalid_input` for a key that is none or a URL that may not be called.
 */
export async function storeSource(
  context: ServiceContext,
  caller: Caller,
  input: SourceToStore & OnlyNew,
): Promise<Result<Changed<{ record: SourceRecord; created: boolean }>, ApiError>> {
  const owner = writableOwner(caller, input.owner);
  if (!owner.ok) return owner;
  const checked = await checkSource(context, input);
  if (!checked.ok) return checked;
  return commitPolicy(context, caller, async () => {
    const server = await serverOf(context, owner.value, input.path);
    if (!server.ok) return server;
    const before = await findSecret(context.database, { ownerId: owner.value, path: input.path });
    if (input.onlyNew === true && before !== null) return err(refuseTaken(input.path));
    // The value is minted when it is needed. Until then, and for workers of an earlier version, there is none.
    const secret = await sealRow(context, caller, { ...input, value: new Secret(''), ownerId: owner.value }, before);
    const source = await sourceRow(context, secret, input);
    const write = before === null ? insertSecret(context.database, secret) : replaceSecret(context.database, secret);
    return ok({
      statements: [
        ...server.value,
        ...write,
        insertSource(context.database, source),
        bumpPolicy(context.database, secret),
      ],
      adds: additionsOf(secret, before),
      afterwards: await revocationOfHeld(context, owner.value, [input.path]),
      events: [
        {
          type: 'control.secret.stored',
          actor: caller.userId,
          data: {
            'svc.control.resource': secret.id,
            'svc.control.credential_ref': formatVaultReference(secret.path),
            'svc.control.owner': ownerName(secret.ownerId),
            'svc.control.source': source.kind,
          },
        },
      ],
      value: { record: toRecord(context, { source, secret }), created: before === null },
    });
  });
}

/** For a credential of an MCP server: nothing is stored unless the server still refers to it when it is. */
async function serverOf(
  context: ServiceContext,
  ownerId: string,
  path: string,
): Promise<Result<readonly Statement[], ApiError>> {
  const credential = findServerCredential(path);
  if (credential === null) return ok([]);
  const { serverId, name } = credential;
  const row = await findMcpServer(context.database, [ownerId], serverId);
  if (row === null) return err(fieldError('path', `is of the MCP server ${serverId}, which this owner does not have`));
  if (listRequiredCredentials(row).includes(name)) return ok(isStill(row.id, row.revision));
  return err(fieldError('path', `is not used: nothing in the configuration of ${row.name} refers to ${name}`));
}

async function sourceRow(
  context: ServiceContext,
  secret: Pick<SourcedSecret['secret'], 'id' | 'ownerId' | 'path' | 'version'>,
  { source, key }: SourceToStore,
): Promise<SourceRow> {
  return {
    secretId: secret.id,
    kind: source.kind,
    config: JSON.stringify(source),
    sealedMaterial: await context.vault.seal(keyPlace(secret), key),
    sealedValue: null,
    sealedRevocation: null,
    mintedFor: null,
    mintedAt: null,
    expiresAt: null,
    failure: null,
    failedAt: null,
    lease: null,
    leaseUntil: null,
    updatedAt: nowText(context),
  };
}

/** Whether the key of a source was given and has the form that is needed. Refuses a source that cannot be used. */
async function checkSource(
  context: ServiceContext,
  { source, key }: { readonly source: SecretSource; readonly key: Secret | null },
): Promise<Result<{ readonly isKeyChecked: boolean }, ApiError>> {
  const problem = urlProblem(source, context.local !== null);
  if (problem !== null) return err(problem);
  const checked = key === null ? 'unchecked' : await configured(source).checkKey(key);
  if (checked === null || checked === 'unchecked') return ok({ isKeyChecked: checked === null });
  return err(fieldError('key', `cannot be used: ${checked.message}`));
}

/** Which fields may name another port is in their schema. */
function urlProblem(source: SecretSource, isLocal: boolean): ApiError | null {
  for (const [field, value] of Object.entries(source)) {
    if (typeof value !== 'string' || !field.endsWith('_url')) continue;
    const problem = targetProblem(new URL(value), isLocal, { anyPort: true });
    if (problem !== null) return fieldError(`source.${field}`, `cannot be used: ${problem.message}`);
  }
  return null;
}

function fieldError(field: string, message: string): ApiError {
  return apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] });
}

const sourcePosition = z.strictObject({ ownerId: z.string(), path: z.string() });

/** The sources that a caller sees, never with a key or a value. Refuses with `invalid_cursor`. */
export async function listSourcePage(
  context: ServiceContext,
  caller: Caller,
  query: PageQuery & { readonly owner?: Owner | undefined },
): Promise<Result<Page<SourceRecord>, ApiError>> {
  return readPage(query, {
    position: sourcePosition,
    read: (from) => listSources(context.database, { ownerIds: visibleOwners(caller, query.owner), ...from }),
    toItem: (row) => toRecord(context, row),
    positionOf: ({ secret: { ownerId, path } }) => ({ ownerId, path }),
  });
}

const ROWS_AT_ONCE = 500;

/** All sources that a caller sees, for a page of the console. */
export async function listSourceRecords(
  context: ServiceContext,
  caller: Caller,
  owner?: Owner,
): Promise<readonly SourceRecord[]> {
  const ownerIds = visibleOwners(caller, owner);
  const records: SourceRecord[] = [];
  let after: VaultPlace | null = null;
  do {
    const rows: SourcedSecret[] = await listSources(context.database, { ownerIds, after, limit: ROWS_AT_ONCE });
    records.push(...rows.map((row) => toRecord(context, row)));
    after = rows.length < ROWS_AT_ONCE ? null : (rows.at(-1)?.secret ?? null);
  } while (after !== null);
  return records;
}

/** The source at a place that the caller sees; null if there is none. */
export async function findSourceRecord(
  context: ServiceContext,
  caller: Caller,
  { owner, path }: { readonly owner: Owner; readonly path: string },
): Promise<SourceRecord | null> {
  const [ownerId = ''] = visibleOwners(caller, owner);
  const row = await findSourceAt(context.database, { ownerId, path });
  return row === null ? null : toRecord(context, row);
}

/**
 * Mints a value, and has it revoked where the provider can: what would be minted, and until when. Only the audit log has it. Refuses with `not_found`,
 * `admin_required`, `credential_unavailable`.
 */
export async function testSource(
  context: ServiceContext,
  caller: Caller,
  place: { readonly owner: Owner; readonly path: string },
): Promise<Result<SourceTested, ApiError>> {
  const found = await findOwnSource(context, caller, place);
  if (!found.ok) return found;
  const { path } = place;
  const row = found.value;
  if (row.source.kind === BORROWED_KIND) return err(fieldError('path', `is of a borrowed secret: ${BORROWED_WHY}`));
  const minted = await mint(context, row);
  const events = [testEvent(caller, row, minted)];
  const recorded = await commit(context, controlChain(caller), async () => ok({ statements: [], events, value: null }));
  if (!recorded.ok) return recorded;
  if (!minted.ok) {
    const message = `the source of ${formatVaultReference(path)} gives no value: ${minted.error.message}`;
    return err(apiError('credential_unavailable', message, { ref: formatVaultReference(path) }));
  }
  const until = new Date(minted.value.expiresAtMs).toISOString();
  const revoking = revokeTested(context, caller, row, minted.value);
  // A value that was minted is revoked also if the caller disconnects.
  context.defer('the revocation of a tested value', () => revoking);
  const revoked = await revoking;
  return ok({ minted_for: mintedForOf(row), until, left: leftAfterTest(row, revoked) });
}

function leftAfterTest(row: SourcedSecret, revoked: Revoked): SourceTested['left'] {
  if (revoked === 'held') return 'not_revoked';
  return revoked === 'ends' && SOURCE_TABLE[row.source.kind].value === 'kept_value' ? 'kept' : revoked;
}

/** After it, the secret holds no value that the test may have ended. */
async function revokeTested(
  context: ServiceContext,
  { userId }: Caller,
  row: SourcedSecret,
  minted: Minted,
): Promise<Revoked> {
  const revoked = await revokeMinted(context, row, minted, userId);
  if (revoked !== 'held') await forgetDoubtful(context, row.secret.id);
  return revoked;
}

async function findOwnSource(
  context: ServiceContext,
  caller: Caller,
  { owner: name, path }: { readonly owner: Owner; readonly path: string },
): Promise<Result<SourcedSecret, ApiError>> {
  const owner = writableOwner(caller, name);
  if (!owner.ok) return owner;
  const row = await findSourceAt(context.database, { ownerId: owner.value, path });
  if (row !== null) return ok(row);
  return err(apiError('not_found', `no ${name} secret ${path} has a source: list them with GET /v1/secret-sources`));
}

/** A source of a secret that exists, or one that nobody has stored. */
export type PlannedSource =
  | { readonly owner: Owner; readonly path: string }
  | { readonly source: SecretSource; readonly key: Secret | null };

/** What a mint would ask for. No provider is called, and nothing is stored. Refuses like {@link storeSource} and {@link testSource}. */
export async function planSource(
  context: ServiceContext,
  caller: Caller,
  planned: PlannedSource,
): Promise<Result<SourcePlan, ApiError>> {
  const nowMs = context.clock.now();
  if ('source' in planned) {
    const checked = await checkSource(context, planned);
    if (!checked.ok) return checked;
    return ok({ ...planMint(planned.source, nowMs), key_checked: checked.value.isKeyChecked });
  }
  const found = await findOwnSource(context, caller, planned);
  return found.ok ? ok({ ...planMint(sourceOf(found.value.source), nowMs), key_checked: false }) : found;
}

/** A value that was minted for nobody is in the log too. */
function testEvent(caller: Caller, row: SourcedSecret, minted: Result<Minted, MintFailure>): AuditDraft {
  const draft = minted.ok
    ? mintEvent('control.secret.minted', row, {
        'svc.control.minted_for': mintedForOf(row),
        'svc.control.until': new Date(minted.value.expiresAtMs).toISOString(),
        'svc.proxy.reason': 'for a test',
      })
    : mintEvent('control.secret.mint_failed', row, { 'svc.proxy.reason': minted.error.message });
  return { ...draft, actor: caller.userId };
}

/**
 * Forgets minted values at their end; nobody receives one after it, and this takes them out of the database too. So it does with one
 * that was minted before the clock was set back.
 */
export async function removeEndedValues(context: ServiceContext): Promise<void> {
  const now = context.clock.now();
  const latestMint = new Date(now + MOST_SKEW_MS).toISOString();
  await context.database.write([forgetEndedValues(context.database, { now: nowText(context), latestMint })]);
}

function toRecord(context: ServiceContext, { secret, source }: SourcedSecret): SourceRecord {
  const { mintedFor, mintedAt, expiresAt, failure, failedAt } = source;
  const isHeld = source.sealedValue !== null && expiresAt !== null && Date.parse(expiresAt) > context.clock.now();
  return {
    id: secret.id,
    path: secret.path,
    ref: formatVaultReference(secret.path),
    owner: ownerName(secret.ownerId),
    description: secret.description,
    version: secret.version,
    source: sourceOf(source),
    minted:
      isHeld && mintedFor !== null && mintedAt !== null ? { for: mintedFor, at: mintedAt, until: expiresAt } : null,
    last_minted_at: mintedAt,
    failure: failure !== null && failedAt !== null ? { message: failure, at: failedAt } : null,
    updated_at: source.updatedAt,
  };
}
