import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { AppContext } from '../http/app_env.ts';
import { isLoopbackName } from '../console/console_host.ts';

/**
 * The origin that the browser called, from `X-Forwarded-Host` and `X-Forwarded-Proto`, else from `Host` (specification
 * section 4). Anyone can send these headers: only a host of SVC_ALLOWED_HOSTS is taken, or in local mode a loopback name,
 * which stands for the console's own too; a hosted origin is https. Refuses with `misdirected_host`.
 */
export function publicOrigin(c: AppContext): Result<string, ApiError> {
  const { local, signIn } = c.get('context');
  const url = new URL(c.req.url);
  const called = (first(c.req.header('x-forwarded-host')) ?? c.req.header('host') ?? url.host).toLowerCase();
  const host = local === null ? called : called.replace(local.consoleHost, '127.0.0.1');
  const scheme = first(c.req.header('x-forwarded-proto'))?.toLowerCase() ?? url.protocol.replace(':', '');
  const isKnown =
    signIn.allowedHosts.includes(host) || (local !== null && isLoopbackName(host.replace(/:\d{1,5}$/, '')));
  if (!isKnown) return err(unknownHost());
  const isHttp = scheme === 'http' && local !== null;
  return scheme === 'https' || isHttp ? ok(`${scheme}://${host}`) : err(notHttps());
}

/** The first of a list: what the outermost of several proxies was called by. */
function first(header: string | undefined): string | undefined {
  return header?.split(',')[0]?.trim();
}

function unknownHost(): ApiError {
  return apiError(
    'misdirected_host',
    'nobody signs in under this host name: call the control plane by its own name, or add this one to SVC_ALLOWED_HOSTS',
  );
}

function notHttps(): ApiError {
  return apiError(
    'misdirected_host',
    'sign-in is over https alone: a proxy in front of the control plane has to send X-Forwarded-Proto: https',
  );
}
