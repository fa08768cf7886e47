import { UPSTREAM_PROXY } from '../shared/net/upstream_proxy.ts';

/** What a package manager needs to reach its registry: no other credential of the shell, and none of svc's own settings and keys. */
const FOR_INSTALLERS =
  /^(?:PATH|HOME|USER|LOGNAME|TMPDIR|LANG|LC_\w+|XDG_(?:CACHE|CONFIG)_HOME|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_(?:FILE|DIR))$/i;

const PROXY = /^(?:HTTPS?|ALL)_PROXY$/i;

/**
 * The part of a program's environment that is passed to a package manager, with the person's own settings of it (`settings`). svc's
 * own setting of a proxy replaces that of the shell; the package manager's settings still come before it.
 */
export function installerEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  settings: RegExp,
): Record<string, string> {
  const given = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const kept = given.filter(([name]) => FOR_INSTALLERS.test(name) || settings.test(name));
  const proxy = env[UPSTREAM_PROXY] ?? '';
  if (proxy === '') return Object.fromEntries(kept);
  const direct = Object.fromEntries(kept.filter(([name]) => !PROXY.test(name)));
  return proxy === 'off' ? direct : { ...direct, HTTPS_PROXY: proxy };
}
