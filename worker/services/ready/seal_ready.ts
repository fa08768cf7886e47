import { OWNERS, type Owner } from '../../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { Secret } from '../../../shared/model/secret.ts';
import { formatVaultReference } from '../../../shared/model/vault_path.ts';
import type { BindingTemplate } from '../../../shared/wire/binding_template.ts';
import type { ConnectorSpecRecord } from '../../../shared/wire/connectors/connector_spec.ts';
import { apiError, fieldProblems, type ApiError } from '../../../shared/wire/errors.ts';
import { duplicateBinding, hostBindingInput, type ValidHostBinding } from '../../../shared/wire/host_binding.ts';
import { bindingsOfService, type SealedService, type ServiceValues } from '../../../shared/wire/sealed_service.ts';
import { testOperation } from '../../../shared/wire/ready_services.ts';
import { type Caller, visibleOwners, writableOwner } from '../../kernel/caller.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { createHostBinding, listAllHostBindings, removeHostBinding } from '../bindings/host_bindings.ts';
import { storeConnectorCredential } from '../connectors/connector_credentials.ts';
import { parseStoredSpec } from '../connectors/connector_records.ts';
import { installConnector, listConnectorPage } from '../connectors/connectors.ts';
import { chooseConnector } from '../connectors/run_operation.ts';
import { findConnectorsNamed } from '../../store/connectors.ts';
import { findOwnSecret, storeSecret } from '../vault/secrets.ts';

/** What a person gave for a service. */
export interface ReadyInput {
  readonly owner: Owner;
  /** What was pasted; null for a connector to which the person signs in. */
  readonly token: string | null;
  /** Whether an earlier value, which cannot be brought back, may be replaced. */
  readonly replaces: boolean;
}

/**
 * Installs the connector of a service and stores the token as its credential, so that listed operations alone are sent with it.
 * Returns the connector's id. Refuses with `admin_required`, `connector_version_conflict`, and `invalid_input` for a token that is
 * missing or would replace another.
 */
export async function sealByConnector(
  context: ServiceContext,
  caller: Caller,
  spec: ConnectorSpecRecord,
  { owner, token, replaces }: ReadyInput,
): Promise<Result<string, ApiError>> {
  const isKey = spec.credential.kind === 'api_key';
  if (isKey && token === null) return err(tokenError('is missing: paste the credential'));
  const { fqn } = spec.connector;
  if (isKey && !replaces && (await hasCredential(context, caller, owner, fqn))) {
    return err(tokenError(`would replace the stored credential of ${fqn}: confirm it below`));
  }
  const installed = await installConnector(context, caller, owner, spec);
  if (!installed.ok) return installed;
  const { id } = installed.value.value.reply;
  if (!isKey || token === null) return ok(id);
  const stored = await storeConnectorCredential(context, caller, id, { kind: 'api_key', value: token });
  return stored.ok ? ok(id) : err(renameField(stored.error, 'value'));
}

async function hasCredential(context: ServiceContext, caller: Caller, owner: Owner, fqn: string): Promise<boolean> {
  const listed = await listConnectorPage(context, caller, { owner, fqn, limit: 1 });
  return listed.ok && listed.value.items.some(({ credential }) => credential.state !== 'missing');
}

/** A service's bindings, and the values that a person gave for them. */
interface BindingsWanted extends ReadyInput {
  readonly templates: readonly BindingTemplate[];
  readonly values: ServiceValues;
}

/**
 * Binds a service's hosts and stores the token, in this order: a value cannot be brought back once it is replaced. If a step
 * fails, the bindings made before are deleted. A binding with the same credential is kept as it is. Refuses with `admin_required`,
 * `duplicate_binding` for a host that another credential is bound to, and `invalid_input` for a value that is missing or wrong.
 */
export async function sealByBindings(
  context: ServiceContext,
  caller: Caller,
  service: SealedService,
  wanted: BindingsWanted,
): Promise<Result<undefined, ApiError>> {
  const { owner, token, replaces } = wanted;
  const planned = await planBindings(context, caller, service, wanted);
  if (!planned.ok) return planned;
  if (token === null) return err(tokenError('is missing: paste the credential'));
  const before = await findOwnSecret(context, caller, { owner, pathOrId: service.secret });
  if (before.ok && !replaces)
    return err(tokenError(`would replace the value stored at ${service.secret}: confirm it below`));
  const made: string[] = [];
  for (const binding of planned.value) {
    const created = await createHostBinding(context, caller, binding);
    if (!created.ok) return undo(context, caller, made, created.error);
    made.push(created.value.value.id);
  }
  const secret = { path: service.secret, owner, value: new Secret(token), description: `sealed for ${service.title}` };
  const stored = await storeSecret(context, caller, secret);
  return stored.ok ? ok(undefined) : undo(context, caller, made, renameField(stored.error, 'value'));
}

/** The bindings that are missing. */
async function planBindings(
  context: ServiceContext,
  caller: Caller,
  service: SealedService,
  { owner, templates, values }: BindingsWanted,
): Promise<Result<readonly ValidHostBinding[], ApiError>> {
  const ownerId = writableOwner(caller, owner);
  if (!ownerId.ok) return ownerId;
  const credentialRef = formatVaultReference(service.secret);
  const filled = bindingsOfService(service, templates, { values, credentialRef, owner });
  if (!filled.ok) {
    const fields = filled.error.map((field) => ({ field, message: 'is missing' }));
    return err(apiError('invalid_input', `${service.title} needs ${filled.error.join(', ')}`, { fields }));
  }
  const bindings: ValidHostBinding[] = [];
  for (const fields of filled.value) {
    const parsed = hostBindingInput.safeParse(fields);
    if (!parsed.success) {
      return err(apiError('invalid_input', 'a value is wrong', { fields: fieldProblems(parsed.error) }));
    }
    bindings.push(parsed.data);
  }
  const existing = await listAllHostBindings(context, [ownerId.value]);
  for (const { host, credential_ref: reference } of bindings) {
    const other = existing.find((each) => each.host === host && each.credential_ref !== reference);
    if (other !== undefined) return err(boundElsewhere(other));
  }
  return ok(bindings.filter((binding) => duplicateBinding(existing, binding) === null));
}

function boundElsewhere({
  id,
  host,
  credential_ref: reference,
}: {
  readonly id: string;
  readonly host: string;
  readonly credential_ref: string;
}): ApiError {
  const message = `${host} is already bound to ${reference}: nothing was stored. Delete that binding first, or add this account as a second one under Host rules, with a placeholder of its own`;
  return apiError('duplicate_binding', message, { binding_id: id });
}

async function undo(
  context: ServiceContext,
  caller: Caller,
  made: readonly string[],
  error: ApiError,
): Promise<Result<never, ApiError>> {
  const left: string[] = [];
  for (const id of made.toReversed()) {
    const removed = await removeHostBinding(context, caller, id);
    if (!removed.ok) left.push(id);
  }
  if (left.length === 0) return err(error);
  return err({ ...error, message: `${error.message}. Delete what is left over under Host rules: ${left.join(', ')}` });
}

function tokenError(message: string): ApiError {
  return apiError('invalid_input', `token ${message}`, { fields: [{ field: 'token', message }] });
}

/** The services call the field `value`, the form `token`. */
function renameField(error: ApiError, from: string): ApiError {
  const fields = error.details?.['fields'];
  if (!Array.isArray(fields)) return error;
  const renamed = fields.map((each: unknown) => (isFieldNamed(each, from) ? { ...each, field: 'token' } : each));
  return { ...error, details: { ...error.details, fields: renamed } };
}

function isFieldNamed(value: unknown, name: string): value is { readonly field: string } {
  return typeof value === 'object' && value !== null && 'field' in value && value.field === name;
}

/** What is set up of a service, for those who may use it. */
export interface ReadyState {
  readonly connectors: readonly {
    readonly id: string;
    readonly fqn: string;
    readonly owner: Owner;
    readonly isReady: boolean;
  }[];
  readonly bindings: readonly { readonly id: string; readonly host: string; readonly owner: Owner }[];
  /** Whether a token would replace a stored one. */
  readonly hasValue: boolean;
  /** Null if nothing is ready, or no operation can be tried without an input. */
  readonly test: TestRequest | null;
}

/** The request that shows whether the credential of an installed connector works. */
interface TestRequest {
  readonly operation: string;
  readonly method: string;
  readonly url: string;
}

/** What the caller has of a service, and what the enterprise has. */
export async function describeReady(
  context: ServiceContext,
  caller: Caller,
  { service, connector }: { readonly service: SealedService | null; readonly connector: ConnectorSpecRecord | null },
  ownerIds: readonly string[],
): Promise<ReadyState> {
  const fqn = connector?.connector.fqn;
  const listed = fqn === undefined ? null : await listConnectorPage(context, caller, { fqn, limit: 10 });
  const connectors = listed?.ok === true ? listed.value.items : [];
  const reference = service === null ? null : formatVaultReference(service.secret);
  const bindings = reference === null ? [] : await listAllHostBindings(context, ownerIds);
  const test = fqn === undefined ? null : await findTestRequest(context, caller, fqn);
  const isReady = connectors.some(({ id, credential }) => id === test?.connectorId && credential.state === 'ready');
  return {
    connectors: connectors.map(({ id, fqn: name, owner, credential }) => ({
      id,
      fqn: name,
      owner,
      isReady: credential.state === 'ready',
    })),
    bindings: bindings
      .filter(({ credential_ref: used }) => used === reference)
      .map(({ id, host, owner }) => ({ id, host, owner })),
    hasValue:
      connectors.some(({ credential }) => credential.state !== 'missing') ||
      (service !== null && (await hasSecret(context, caller, service.secret))),
    test: isReady ? test : null,
  };
}

async function hasSecret(context: ServiceContext, caller: Caller, pathOrId: string): Promise<boolean> {
  const found = await Promise.all(OWNERS.map((owner) => findOwnSecret(context, caller, { owner, pathOrId })));
  return found.some(({ ok: isFound }) => isFound);
}

/**
 * The test request of the connector that a run by this name uses; null if it has none. It is one of the installed spec: under the
 * catalog's name there may be another spec, whose operation of the same name changes something or goes elsewhere.
 */
async function findTestRequest(
  context: ServiceContext,
  caller: Caller,
  fqn: string,
): Promise<(TestRequest & { readonly connectorId: string }) | null> {
  const row = chooseConnector(caller, await findConnectorsNamed(context.database, visibleOwners(caller), fqn));
  if (row === null) return null;
  const spec = parseStoredSpec(row.connector);
  const operation = testOperation(spec);
  if (operation === null) return null;
  const url = `https://${spec.hosts[0] ?? ''}${operation.path}`;
  return { connectorId: row.connector.id, operation: operation.name, method: operation.method, url };
}
