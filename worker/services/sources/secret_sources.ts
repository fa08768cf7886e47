import type { Owner } from '../../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { SecretSource, SourcePlan, SourceRecord } from '../../../shared/wire/secret_sources.ts';
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
import { findSecret, insertSecret, replaceSecret } from '../../store/secrets.ts';
import { type Caller, ownerName, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import { type AuditDraft, commit } from '../../kernel/commit.ts';
import { targetProblem } from '../../kernel/outbound.ts';
import { type Changed, commitPolicy, controlChain } from '../../kernel/policy_change.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import { listRequiredCredentials } from '../mcp/mcp_server_records.ts';
import { additionsOf, type OnlyNew, refuseTaken, sealRow } from '../vault/secrets.ts';
import { keyPlace, mint, mintedForOf, mintEvent, planMint, sourceOf } from './minted_value.ts';
import type { Minted, MintFailure } from './source_port.ts';
import { BORROWED_WHY, configured } from './source_table.ts';

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
  const problem = await findSourceProblem(context, input);
  if (problem !== null) return err(problem);
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

/** Why a source cannot be used; its key is checked if it is given. */
async function findSourceProblem(
  context: ServiceContext,
  { source, key }: { readonly source: SecretSource; readonly key: Secret | null },
): Promise<ApiError | null> {
  const problem = urlProblem(source, context.local !== null);
  return problem !== null || key === null ? problem : findKeyProblem({ source, key });
}

function urlProblem(source: SecretSource, isLocal: boolean): ApiError | null {
  for (const [field, value] of Object.entries(source)) {
    if (typeof value !== 'string' || !field.endsWith('_url')) continue;
    const problem = targetProblem(new URL(value), isLocal);
    if (problem !== null) return fieldError(`source.${field}`, `cannot be used: ${problem.message}`);
  }
  return null;
}

async function findKeyProblem({ source, key }: Pick<SourceToStore, 'source' | 'key'>): Promise<ApiError | null> {
  const problem = await configured(source).checkKey(key);
  return problem === null ? null : fieldError('key', `cannot be used: ${problem.message}`);
}

function fieldError(field: string, message: string): ApiError {
  return apiError('invalid_input', `${field} ${message}`, { fields: [{ field, message }] });
}

/** The sources that a caller sees, never with a key or a value. */
export async function listSourceRecords(
  context: ServiceContext,
  caller: Caller,
  owner?: Owner,
): Promise<readonly SourceRecord[]> {
  return (await listSources(context.database, visibleOwners(caller, owner))).map((row) => toRecord(context, row));
}

/**
 * Mints a value and discards it: what would be minted, and until when. Only the audit log has it. Refuses with `not_found`,
 * `admin_required`, `credential_unavailable`.
 */
export async function testSource(
  context: ServiceContext,
  caller: Caller,
  place: { readonly owner: Owner; readonly path: string },
): Promise<Result<{ readonly minted_for: string; readonly until: string }, ApiError>> {
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
  return ok({ minted_for: mintedForOf(row), until: new Date(minted.value.expiresAtMs).toISOString() });
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
    const problem = await findSourceProblem(context, planned);
    if (problem !== null) return err(problem);
    return ok({ ...planMint(planned.source, nowMs), key_checked: planned.key !== null });
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
        'svc.proxy.reason': 'tested and discarded',
      })
    : mintEvent('control.secret.mint_failed', row, { 'svc.proxy.reason': minted.error.message });
  return { ...draft, actor: caller.userId };
}

/** Forgets minted values at their end; nobody receives one after it, and this takes them out of the database too. */
export async function removeEndedValues(context: ServiceContext): Promise<void> {
  await context.database.write([forgetEndedValues(context.database, nowText(context))]);
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
