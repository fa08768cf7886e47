import type { ProgramContext } from '../../installation/program_context.ts';
import type { AppContext } from '../http/app_env.ts';

const LOOPBACK_NAME = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/** A loopback name in a URL. Its cookies go to every port of the machine, so it belongs to no single server. */
export function isLoopbackName(hostname: string): boolean {
  return LOOPBACK_NAME.test(hostname);
}

/**
 * Whether the call's host name keeps our cookies to us: always if hosted, in local mode only the console's own name.
 * Under other names no cookie is read or set.
 */
export function holdsCookies({ local }: Pick<ProgramContext, 'local'>, calledUrl: string): boolean {
  return local === null || new URL(calledUrl).hostname === local.consoleHost;
}

/** The same for a page's request. */
export function isAtConsole(c: AppContext): boolean {
  return holdsCookies(c.get('context'), c.req.url);
}

/**
 * The console's origin, at the called port. It reveals the console's name, so it is only for callers with the local
 * key, a session or the state of a sign-in in progress.
 */
export function consoleOrigin(consoleHost: string, calledUrl: string): string {
  const { protocol, port } = new URL(calledUrl);
  return `${protocol}//${consoleHost}${port === '' ? '' : `:${port}`}`;
}

/** The origin of a provider's redirect URL: loopback, because providers do not accept the console's name. */
export function loopbackOrigin(consoleHost: string, calledUrl: string): string {
  const url = new URL(calledUrl);
  if (url.hostname === consoleHost) url.hostname = '127.0.0.1';
  return url.origin;
}
