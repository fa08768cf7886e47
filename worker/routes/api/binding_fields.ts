import { parseSize } from '../../../shared/model/quotas/byte_size.ts';
import { INJECTION_SCHEMES, type InjectionScheme, type Owner } from '../../../shared/model/host_binding.ts';
import { VAULT_SCHEME } from '../../../shared/model/vault_path.ts';
import type { FormState } from '../../pages/components/form_field.ts';
import type { Caller } from '../../kernel/caller.ts';
import { listSecretPage } from '../../services/vault/secrets.ts';
import type { AppContext } from '../http/app_env.ts';
import { type Fields, dropEmpty } from '../console/console.ts';

const SHOWN = 100;

/** Makes a binding from the fields of the form. */
export function bindingRecordOf(fields: Fields): Record<string, unknown> {
  const {
    allowed_hosts: allowed,
    sentinel_value: value,
    sentinel_env: env,
    keep_cookies: kept,
    requests_per_minute: perMinute,
    requests_per_day: perDay,
    bytes_per_day: bytes,
    ...plain
  } = dropEmpty(fields);
  const hosts = allowed?.split(/[\s,]+/).filter((host) => host !== '');
  const isSwap = value !== undefined || env !== undefined;
  return {
    ...plain,
    ...(hosts !== undefined && { allowed_hosts: hosts }),
    ...(perMinute !== undefined && { requests_per_minute: Number(perMinute) }),
    ...(perDay !== undefined && { requests_per_day: Number(perDay) }),
    ...(bytes !== undefined && { bytes_per_day: parseSize(bytes.trim()) ?? bytes }),
    ...(kept !== undefined && { keep_cookies: kept === 'true' }),
    ...(isSwap && { emit_mechanism: 'sentinel-swap', sentinel: { value, ...(env !== undefined && { env }) } }),
  };
}

/**
 * The refused form of a binding: problems of `sentinel.value` belong to the form's field, and what was typed for a reference
 * without being one is not returned, because it may be the credential itself.
 */
export function refusedBindingForm({ values, problems, refusal }: FormState): FormState {
  const { credential_ref: reference, ...others } = values;
  const isReference = reference?.startsWith(VAULT_SCHEME) === true;
  return {
    values: isReference ? values : others,
    problems: problems.map(({ field, message }) => ({ field: field.replace(/^sentinel\./, 'sentinel_'), message })),
    refusal,
  };
}

export function schemeOf(values: Fields): InjectionScheme {
  return INJECTION_SCHEMES.find((scheme) => scheme === values['scheme']) ?? 'bearer';
}

/** References of stored secrets to choose from; `owner` limits them to one namespace. */
export async function listStoredReferences(c: AppContext, caller: Caller, owner?: Owner): Promise<readonly string[]> {
  const secrets = await listSecretPage(c.get('context'), caller, { limit: SHOWN, owner });
  return secrets.ok ? [...new Set(secrets.value.items.map(({ ref }) => ref))] : [];
}
