import type { ProgramContext } from '../../installation/program_context.ts';
import type { AppContext } from '../http/app_env.ts';

const LOOPBACK_NAME = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/;

/** A loopback name as a URL writes it. Nobody has it alone: its cookies go to every port of the machine. */
export function isLoopbackName(hostname: string): boolean {
  return LOOPBACK_NAME.test(hostname);
}

/**
 * Whether a call came by a name whose cookies are ours alone: when hosted always, in local mode by the console's own name.
 * By any other name no cookie is read and none is set.
 */
export function holdsCookies({ local }: Pick<ProgramContext, 'local'>, calledUrl: string): boolean {
  return local === null || new URL(calledUrl).hostname === local.consoleHost;
}

/** The same for the request of a page. */
export function isAtConsole(c: AppContext): boolean {
  return holdsCookies(c.get('context'), c.req.url);
}

/**
 * The console's origin, at the port that was called. It tells the console's name: only for who has shown the local key, a
 * session there, or the state of a sign-in that began there.
 */
export function consoleOrigin(consoleHost: string, calledUrl: string): string {
  const { protocol, port } = new URL(calledUrl);
  return `${protocol}//${consoleHost}${port === '' ? '' : `:${port}`}`;
}

/** The origin that a provider sends a browser back to: loopback, for none takes the console's name. */
export function loopbackOrigin(consoleHost: string, calledUrl: string): string {
  const url = new URL(calledUrl);
  if (url.hostname === consoleHost) url.hostname = '127.0.0.1';
  return url.origin;
}
