import type { z } from 'zod';
import { hostBindingInput, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { VAULT_SCHEME } from '../../shared/model/vault_path.ts';
import { dropUndefined, toCount, toSize } from '../command_options.ts';

/** The options of `svc binding add` that become fields of a binding. */
export interface BindingFlags {
  readonly scheme?: string;
  readonly credential?: string;
  readonly emit?: string;
  readonly sentinel?: string;
  readonly sentinelEnv?: string;
  readonly username?: string;
  readonly header?: string;
  readonly template?: string;
  readonly queryParam?: string;
  readonly accessKeyId?: string;
  readonly sessionToken?: string;
  readonly region?: string;
  readonly service?: string;
  readonly allowedHost?: readonly string[];
  readonly effect?: string;
  readonly body?: string;
  readonly keepCookies?: boolean;
  readonly requestsPerMinute?: string;
  readonly requestsPerDay?: string;
  readonly bytesPerDay?: string;
  readonly owner?: string;
  readonly description?: string;
}

/** Each field and the flag that sets it. */
const FLAG_OF_FIELD: Readonly<Record<string, string>> = {
  host: 'HOST',
  credential_ref: '--credential',
  scheme: '--scheme',
  emit_mechanism: '--emit',
  sentinel: '--sentinel',
  'sentinel.value': '--sentinel',
  'sentinel.env': '--sentinel-env',
  username: '--username',
  header: '--header',
  template: '--template',
  query_param: '--query-param',
  access_key_id: '--access-key-id',
  session_token_ref: '--session-token',
  region: '--region',
  service: '--service',
  allowed_hosts: '--allowed-host',
  effect: '--effect',
  body: '--body',
  keep_cookies: '--keep-cookies',
  requests_per_minute: '--requests-per-minute',
  requests_per_day: '--requests-per-day',
  bytes_per_day: '--bytes-per-day',
  owner: '--owner',
  description: '--description',
};

/** The fields set by flags; flags that were not given are left out. */
export function fieldsOf(host: string | undefined, flags: BindingFlags): Record<string, unknown> {
  const sentinel = { value: flags.sentinel, env: flags.sentinelEnv };
  return dropUndefined({
    host,
    credential_ref: flags.credential === undefined ? undefined : toReference(flags.credential),
    scheme: flags.scheme,
    emit_mechanism: flags.emit,
    sentinel: sentinel.value === undefined && sentinel.env === undefined ? undefined : dropUndefined(sentinel),
    username: flags.username,
    header: flags.header,
    template: flags.template,
    query_param: flags.queryParam,
    access_key_id: flags.accessKeyId,
    session_token_ref: flags.sessionToken === undefined ? undefined : toReference(flags.sessionToken),
    region: flags.region,
    service: flags.service,
    allowed_hosts: flags.allowedHost,
    effect: flags.effect,
    body: flags.body,
    keep_cookies: flags.keepCookies,
    requests_per_minute: toCount(flags.requestsPerMinute),
    requests_per_day: toCount(flags.requestsPerDay),
    bytes_per_day: toSize(flags.bytesPerDay),
    owner: flags.owner,
    description: flags.description,
  });
}

/**
 * Completes a path such as `user/github` to `vault://user/github`. Only lower-case paths with a slash are completed: other text
 * may be a credential pasted by mistake, which validation refuses without repeating it.
 */
export function toReference(text: string): string {
  return /^[a-z][a-z0-9._-]{0,30}(?:\/[a-z][a-z0-9._-]{0,30})+$/.test(text) ? `${VAULT_SCHEME}${text}` : text;
}

/** The flag that sets a field, such as `--region`. */
export function flagOf(field: string): string {
  return FLAG_OF_FIELD[field] ?? field;
}

/** How an error names a field: its path in a file, or the flag on the command line. */
type FieldNaming = 'flags' | 'fields';

/** A binding in the form of the control API, or one line for each problem. */
export function validateBinding(fields: unknown, naming: FieldNaming): Result<ValidHostBinding, readonly string[]> {
  const parsed = hostBindingInput.safeParse(fields);
  return parsed.success ? ok(parsed.data) : err(parsed.error.issues.map((issue) => issueLine(issue, naming)));
}

function issueLine(issue: z.core.$ZodIssue, naming: FieldNaming): string {
  const path = issue.path.map(String);
  const field = path.filter((part) => !/^\d+$/.test(part)).join('.');
  const name = naming === 'flags' ? flagOf(field) : path.join('.');
  return name === '' ? issue.message : `${name} ${issue.message}`;
}
