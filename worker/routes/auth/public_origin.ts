import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { AppContext } from '../http/app_env.ts';
import { isLoopbackName } from '../console/console_host.ts';

/**
 * The origin that the browser called, from `X-Forwarded-Host` and `X-Forwarded-Proto`, otherwise from `Host`
 * (specification section 4). Anyone can send these headers, so only hosts in SVC_ALLOWED_HOSTS are accepted. In local
 * mode it is a loopback name, also for the console's own name. A hosted origin is always https. Refuses with
 * `misdirected_host`.
 */
export function publicOrigin(c: AppContext): Result<string, ApiError> {
  const { local, signIn } = c.get('context');
  const url = new URL(c.req.url);
  const called = calledHost(c);
  const host = local === null ? called : called.replace(local.consoleHost, '127.0.0.1');
  const scheme = firstOf(c.req.header('x-forwarded-proto'))?.toLowerCase() ?? url.protocol.replace(':', '');
  const isKnown =
    signIn.allowedHosts.includes(host) || (local !== null && isLoopbackName(host.replace(/:\d{1,5}$/, '')));
  if (!isKnown) return err(unknownHostError());
  const isHttp = scheme === 'http' && local !== null;
  return scheme === 'https' || isHttp ? ok(`${scheme}://${host}`) : err(notHttpsError());
}

/** The host that the caller used, in lower case. Anyone can send these headers, so it has to be compared with known hosts. */
export function calledHost(c: AppContext): string {
  const named = firstOf(c.req.header('x-forwarded-host')) || c.req.header('host') || new URL(c.req.url).host;
  return named.toLowerCase();
}

/** The first entry of a list: the host that the outermost proxy was called by. */
function firstOf(header: string | undefined): string | undefined {
  return header?.split(',')[0]?.trim();
}

function unknownHostError(): ApiError {
  return apiError(
    'misdirected_host',
    "sign-in is off under this host name: use the control plane's own name, or add this one to SVC_ALLOWED_HOSTS",
  );
}

function notHttpsError(): ApiError {
  return apiError(
    'misdirected_host',
    'sign-in requires https: the proxy in front of the control plane must send X-Forwarded-Proto: https',
  );
}
