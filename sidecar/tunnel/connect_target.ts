import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { parseAuthority } from '../../shared/net/host.ts';
import { hostOnPort } from '../../shared/net/host_port.ts';
import type { RequestHead } from '../../shared/net/http/http1_head.ts';

/** True for a request that is meant for a proxy and not for the sidecar's local API (specification section 4). */
export function isProxyShaped(head: RequestHead): boolean {
  if (head.method === 'CONNECT') return true;
  if (!head.target.startsWith('/') && head.target !== '*') return true;
  return head.fields.some((field) => field.name === 'proxy-authorization');
}

/** The host of a CONNECT to `host:port` (RFC 9110 section 9.3.6), in canonical form: see `hostOnPort`. */
export function connectHost(head: RequestHead): Result<string, Refusal> {
  if (head.method !== 'CONNECT') {
    const message =
      'this proxy handles CONNECT host:443, as clients send it for https:// URLs, and http:// URLs of hosts that the session allows';
    return err(refusal('non_connect_proxy_request', message));
  }
  const authority = parseAuthority(head.target);
  if (!authority.ok) return invalid(authority.error.message);
  const { host, port } = authority.value;
  if (port === null) return invalid('the port is missing; it must be host:443');
  return ok(hostOnPort(host, port));
}

function invalid(message: string): { readonly ok: false; readonly error: Refusal } {
  return err(refusal('invalid_connect_target', `CONNECT target: ${message}`));
}
