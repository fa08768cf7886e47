import type { AllowList } from '../../../shared/model/egress.ts';
import { listPlainHttpHosts, type ListPlace, splitTyped } from './allowed_hosts.ts';

/** An option of `svc run` and `svc launch`. */
export const PLAIN_HTTP_OPTION = '--plain-http <host>';
export const PLAIN_HTTP_TEXT =
  'also forward requests to http:// URLs of this host, never with a credential (repeatable)';

/** The hosts of a new session for plain HTTP: what was typed for it, and what the folder has. Undefined if there are none. */
export function plainHttpFor(place: ListPlace, typed: readonly string[]): AllowList | undefined {
  const list = splitTyped(typed, listPlainHttpHosts(place));
  return list.hosts.length + list.named.length === 0 ? undefined : list;
}

/** The fields of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses them, and does not run the session without its list. */
export function plainHttpFields(list: AllowList | undefined): object {
  return list === undefined ? {} : { plain_http_hosts: list.hosts, plain_http_named: list.named };
}
