import { isDeepStrictEqual } from 'node:util';
import { hostBindingRecord, duplicateBinding } from '../../shared/wire/host_binding.ts';
import type { HostBindingRecord, ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { storeLoginReply } from '../../shared/wire/pending_logins.ts';
import { secretRecord, type SecretRecord } from '../../shared/wire/secrets.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';

/** A binding of a service: one that is missing, or one that is there already. */
export type SealStep =
  | { readonly kind: 'create'; readonly binding: ValidHostBinding }
  | { readonly kind: 'keep'; readonly binding: ValidHostBinding; readonly record: HostBindingRecord };

/** A value for the vault. */
interface NewSecret {
  readonly path: string;
  readonly value: string;
  readonly owner: string;
  readonly description: string;
}

/** The token of a login that waits in the control plane. */
interface HeldSecret {
  readonly path: string;
  readonly loginId: string;
  readonly description: string;
}

/** A binding that a seal has made, or found. */
interface SealedBinding {
  readonly record: HostBindingRecord;
  readonly created: boolean;
}

/** The result of a seal; no secret if the bindings use one that is stored already. */
export interface Sealed<S = SecretRecord> {
  readonly secret: S;
  readonly bindings: readonly SealedBinding[];
}

/**
 * What is missing for a service. A binding that uses the same credential is kept, also if a person has changed it. If one for
 * the same requests uses another credential, the proxy could not choose between them: then `makeAnother` gives the new account
 * a placeholder of its own, and without it this throws.
 */
export function planSeal(
  existing: readonly HostBindingRecord[],
  wanted: readonly ValidHostBinding[],
  makeAnother: (() => string) | null = null,
): readonly SealStep[] {
  let placeholder: string | null = null;
  return wanted.map((binding) => {
    const record = duplicateBinding(existing, binding) ?? findSame(existing, binding);
    if (record?.credential_ref === binding.credential_ref) return { kind: 'keep', binding, record };
    // Without a placeholder, a second account would be the default of every session, also where the first one has one.
    const isSecond = binding.emit_mechanism === 'inject' && existing.some((other) => isAnother(other, binding));
    if (makeAnother !== null && (record !== null || isSecond)) {
      const own = findSame(existing, { ...binding, emit_mechanism: 'sentinel-swap' });
      if (own !== null) return { kind: 'keep', binding, record: own };
      placeholder ??= findPlaceholder(existing, wanted) ?? makeAnother();
      const env = binding.sentinel?.env;
      const sentinel = { value: placeholder, ...(env !== undefined && { env }) };
      return { kind: 'create', binding: { ...binding, emit_mechanism: 'sentinel-swap', sentinel } };
    }
    if (record === null) return { kind: 'create', binding };
    throw new CliError(
      EXIT.failed,
      `${record.host} is already bound to ${record.credential_ref}: nothing was changed`,
      [
        `To give that secret the new value: --as ${record.credential_ref.replace(/^vault:\/\//, '')}`,
        'To add a second account of the host: --as PATH, with a new path',
        `To bind the host anew, first: svc binding rm ${record.id}`,
      ],
    );
  });
}

/** Whether another account has a binding for the same host. */
function isAnother(record: HostBindingRecord, { owner, host, credential_ref: reference }: ValidHostBinding): boolean {
  return record.owner === owner && record.host === host && record.credential_ref !== reference;
}

/** The placeholder that a part of the account has already. */
function findPlaceholder(
  existing: readonly HostBindingRecord[],
  wanted: readonly ValidHostBinding[],
): string | undefined {
  const own = wanted.flatMap((binding) => findSame(existing, { ...binding, emit_mechanism: 'sentinel-swap' }) ?? []);
  return own[0]?.sentinel?.value;
}

/** The same credential written in the same way, with a placeholder that a person has chosen. */
function findSame(existing: readonly HostBindingRecord[], binding: ValidHostBinding): HostBindingRecord | null {
  const same = existing.find(
    (record) =>
      record.owner === binding.owner &&
      record.host === binding.host &&
      record.credential_ref === binding.credential_ref &&
      record.emit_mechanism === binding.emit_mechanism &&
      isDeepStrictEqual(injectionOf(record), injectionOf(binding)),
  );
  return same ?? null;
}

function injectionOf(binding: ValidHostBinding | HostBindingRecord): unknown {
  const { scheme, username, header, template, query_param, access_key_id, region, service } = binding;
  return [scheme, username, header, template, query_param, access_key_id, region, service];
}

/**
 * Makes the bindings and stores the value, in this order: a value cannot be brought back once it is replaced, so that is the
 * last step. If a step fails, the bindings made before are deleted. A call without an answer may have taken effect: that is said.
 */
export async function carryOutSeal(client: HttpClient, steps: readonly SealStep[], secret: NewSecret): Promise<Sealed>;
export async function carryOutSeal(
  client: HttpClient,
  steps: readonly SealStep[],
  secret: HeldSecret | null,
): Promise<Sealed<null>>;
export async function carryOutSeal(
  client: HttpClient,
  steps: readonly SealStep[],
  secret: NewSecret | HeldSecret | null,
): Promise<Sealed<SecretRecord | null>> {
  const made: HostBindingRecord[] = [];
  let sending: string | null = null;
  try {
    const bindings: SealedBinding[] = [];
    for (const step of steps) {
      if (step.kind === 'keep') {
        bindings.push({ record: step.record, created: false });
        continue;
      }
      sending = `the binding of ${step.binding.host}`;
      const record = await client.call('POST', '/v1/host-bindings', hostBindingRecord, { body: step.binding });
      made.push(record);
      bindings.push({ record, created: true });
    }
    if (secret === null) return { secret, bindings };
    sending = `the value of ${secret.path}`;
    if ('loginId' in secret) {
      const { loginId, path, description } = secret;
      const url = `/v1/pending-logins/${loginId}/store`;
      await client.call('POST', url, storeLoginReply, { body: { path, description } });
      return { secret: null, bindings };
    }
    return { secret: await client.call('POST', '/v1/secrets', secretRecord, { body: secret }), bindings };
  } catch (error) {
    throw await undoBindings(client, made, { error, sending });
  }
}

/** Deletes what was made, newest first. Returns the error, with what could not be deleted. */
async function undoBindings(
  client: HttpClient,
  made: readonly HostBindingRecord[],
  { error, sending }: { readonly error: unknown; readonly sending: string | null },
): Promise<unknown> {
  const left: string[] = [];
  for (const record of made.toReversed()) {
    try {
      await client.callEmpty('DELETE', `/v1/host-bindings/${record.id}`);
    } catch (failure) {
      if (!(failure instanceof CliError)) throw failure;
      left.push(`Left over, delete it: svc binding rm ${record.id}   (${record.host})`);
    }
  }
  if (!(error instanceof CliError)) return error;
  const isUnknown = error.exitCode === EXIT.unreachable && sending !== null;
  const undoneText = left.length === 0 ? 'nothing was changed' : 'not everything could be undone';
  const outcome = isUnknown ? `${sending} may have been stored` : undoneText;
  const again = isUnknown ? ['Run the same command again: it keeps the bindings that are there.'] : [];
  const fixes = [...error.fixes, ...left, ...again];
  return new CliError(error.exitCode, `${error.message}: ${outcome}`, fixes, error.apiCode);
}
