import { z } from 'zod';
import {
  EFFECTS,
  EMIT_MECHANISMS,
  INJECTION_SCHEMES,
  OWNERS,
  type CredentialRef,
  type Emit,
  type HostBinding,
  type Injection,
  type InjectionScheme,
} from '../model/host_binding.ts';
import { toRequestLimits } from '../model/request_limits.ts';
import { parseSentReference } from '../model/vault_path.ts';
import {
  accessKeyIdText,
  allowedHostText,
  bindingCredentialText,
  oneOfValues,
  credentialRefText,
  descriptionText,
  headerText,
  hostPatternText,
  MAX_ALLOWED_HOSTS,
  queryParamText,
  regionSetText,
  byteLimit,
  requestLimit,
  sentCredentialText,
  sentinelEnvText,
  sentinelValueText,
  serviceText,
  templateText,
  usernameText,
} from './host_binding_fields.ts';
import { checkBinding, describeUnknownFields } from './host_binding_rules.ts';
import { ifMatchHeaders } from '../net/http/if_match.ts';
import { id, time } from './primitives.ts';

/** A non-secret placeholder for the agent, and the environment variable that contains it. */
const sentinel = z
  .strictObject(
    { value: sentinelValueText, env: sentinelEnvText.optional() },
    { error: objectError('{value, env?}', ['value', 'env']) },
  )
  .meta({ id: 'Sentinel' });

/** Every field of a host binding that a person writes (design section 5, Host binding record). */
const fields = {
  owner: oneOfValues(OWNERS).default('personal'),
  host: hostPatternText,
  credential_ref: bindingCredentialText,
  scheme: oneOfValues(INJECTION_SCHEMES),
  emit_mechanism: oneOfValues(EMIT_MECHANISMS).default('inject'),
  sentinel: sentinel.optional(),
  username: usernameText.optional(),
  header: headerText.optional(),
  template: templateText.optional(),
  query_param: queryParamText.optional(),
  access_key_id: accessKeyIdText.optional(),
  region: regionSetText.optional(),
  service: serviceText.optional(),
  session_token_ref: credentialRefText.optional(),
  allowed_hosts: z
    .array(allowedHostText, { error: 'must be a list of hosts, such as ["api.example.com"]' })
    .max(MAX_ALLOWED_HOSTS, { error: `has more than ${MAX_ALLOWED_HOSTS} hosts: write several bindings` })
    .default([]),
  effect: oneOfValues(EFFECTS).optional(),
  body: oneOfValues(['buffer', 'stream']).default('buffer'),
  keep_cookies: z.boolean({ error: 'must be true or false' }).optional(),
  requests_per_minute: requestLimit.optional(),
  requests_per_day: requestLimit.optional(),
  bytes_per_day: byteLimit.optional(),
  description: descriptionText.optional(),
};

/** The names of those fields. */
export const HOST_BINDING_FIELDS: readonly string[] = Object.keys(fields);

const recordFields = {
  ...fields,
  owner: oneOfValues(OWNERS),
  credential_ref: sentCredentialText,
  session_token_ref: sentCredentialText.optional(),
  id: id('bnd'),
  created_at: time,
  updated_at: time,
};

/** `POST /v1/host-bindings` and each entry of `svc binding apply -f`. */
export const hostBindingInput = z
  .strictObject(fields, { error: objectError('a binding', HOST_BINDING_FIELDS) })
  .superRefine(checkBinding, { when: () => true })
  .meta({ id: 'HostBindingInput' });
/** `PUT /v1/host-bindings/{id}`: with the `updated_at` that was read as its `revision`, only if nobody has changed it since. */
export const hostBindingReplacement = z
  .strictObject(
    { ...fields, revision: time.optional() },
    { error: objectError('a binding', [...HOST_BINDING_FIELDS, 'revision']) },
  )
  .superRefine(checkBinding, { when: () => true })
  .meta({ id: 'HostBindingReplacement' });
/** The headers of `PUT /v1/host-bindings/{id}`. */
export const hostBindingHeaders = ifMatchHeaders(time, '2026-01-31T12:00:00.000Z');
/** The validated form: hosts canonical, defaults filled in. */
export type ValidHostBinding = z.output<typeof hostBindingInput>;

/**
 * A host binding as in the API and in snapshots. Strict like the input: a sidecar that does not know a field must not act on
 * the binding, because the field may narrow it.
 */
export const hostBindingRecord = z
  .strictObject(recordFields, { error: objectError('a binding', Object.keys(recordFields)) })
  .superRefine(checkBinding, { when: () => true })
  .meta({ id: 'HostBinding' });
export type HostBindingRecord = z.output<typeof hostBindingRecord>;

/** The messages for an object itself: what it must be, and its unknown fields. */
function objectError(what: string, known: readonly string[]) {
  return (issue: { readonly code?: string | undefined; readonly keys?: unknown }): string => {
    if (issue.code !== 'unrecognized_keys') return `must be ${what}, an object`;
    return describeUnknownFields(Array.isArray(issue.keys) ? issue.keys.map(String) : [], known);
  };
}

/** The binding for the data plane. Throws on a record that {@link hostBindingRecord} has not accepted, which is a bug. */
export function toHostBinding(record: HostBindingRecord): HostBinding {
  return {
    id: record.id,
    owner: record.owner,
    host: record.host,
    credential: credentialRef(record, record.credential_ref),
    injection: INJECTIONS[record.scheme](record),
    emit: toEmit(record),
    allowedHosts: record.allowed_hosts,
    ...(record.effect === undefined ? {} : { effect: record.effect }),
    body: record.body,
    ...(record.keep_cookies === true ? { keepCookies: true } : {}),
    ...toRequestLimits(record),
  };
}

/** Reads each scheme's parameters. */
const INJECTIONS: { readonly [S in InjectionScheme]: (record: HostBindingRecord) => Injection } = {
  bearer: () => ({ scheme: 'bearer' }),
  basic: (record) => ({ scheme: 'basic', username: requireField(record, 'username') }),
  'header-template': (record) => ({
    scheme: 'header-template',
    header: requireField(record, 'header'),
    template: requireField(record, 'template'),
  }),
  'query-param': (record) => ({ scheme: 'query-param', queryParam: requireField(record, 'query_param') }),
  'sigv4-resign': (record) => ({
    scheme: 'sigv4-resign',
    accessKeyId: requireField(record, 'access_key_id'),
    region: requireField(record, 'region'),
    service: requireField(record, 'service'),
    ...(record.session_token_ref !== undefined && { sessionTokenRef: credentialRef(record, record.session_token_ref) }),
  }),
};

function toEmit(record: HostBindingRecord): Emit {
  if (record.emit_mechanism === 'inject') return { mechanism: 'inject' };
  if (record.sentinel === undefined) throw unvalidatedError(record, 'sentinel');
  const { value, env } = record.sentinel;
  return { mechanism: 'sentinel-swap', sentinel: value, ...(env === undefined ? {} : { env }) };
}

/** A reference resolves only in its binding owner's namespace (design section 6). */
function credentialRef(record: HostBindingRecord, text: string): CredentialRef {
  const path = parseSentReference(text);
  if (!path.ok) throw unvalidatedError(record, 'credential_ref');
  return { owner: record.owner, path: path.value };
}

type SchemeParameter = 'username' | 'header' | 'template' | 'query_param' | 'access_key_id' | 'region' | 'service';

function requireField(record: HostBindingRecord, field: SchemeParameter): string {
  const value = record[field];
  if (value === undefined) throw unvalidatedError(record, field);
  return value;
}

function unvalidatedError(record: HostBindingRecord, field: string): Error {
  return Object.assign(new Error(`host binding ${record.id} was not validated: ${field}`), {
    code: 'host_binding_not_validated',
  });
}

/** The parts that distinguish the bindings of one owner. */
type BindingSlot = Pick<ValidHostBinding, 'owner' | 'host' | 'sentinel'> & { readonly id?: string };

/**
 * The binding in `existing` that `candidate` would duplicate: same owner, same pattern, and the same sentinel or none on
 * both, so that the proxy could not choose between them. Null if there is none. A binding never duplicates itself (by id),
 * so that it can be updated. `existing` may contain both owners' bindings.
 */
export function duplicateBinding<T extends BindingSlot>(existing: readonly T[], candidate: BindingSlot): T | null {
  const same = existing.find(
    (other) =>
      other.owner === candidate.owner &&
      other.host === candidate.host &&
      other.sentinel?.value === candidate.sentinel?.value &&
      (candidate.id === undefined || other.id !== candidate.id),
  );
  return same ?? null;
}
