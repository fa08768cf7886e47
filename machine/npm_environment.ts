import { UPSTREAM_PROXY } from '../shared/net/upstream_proxy.ts';

/** What npm needs to reach its registry: no other credential of the shell, and none of svc's own settings and keys. */
const FOR_NPM =
  /^(?:PATH|HOME|USER|LOGNAME|TMPDIR|LANG|LC_\w+|XDG_(?:CACHE|CONFIG)_HOME|(?:HTTPS?|ALL|NO)_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|NPM_TOKEN|NODE_AUTH_TOKEN|npm_config_.*)$/i;

const PROXY = /^(?:HTTPS?|ALL)_PROXY$/i;

/**
 * The part of a program's environment that is passed to npm, with the person's own settings of npm. svc's own setting of a proxy
 * replaces that of the shell; npm's settings still come before it.
 */
export function npmEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const given = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const kept = given.filter(([name]) => FOR_NPM.test(name));
  const proxy = env[UPSTREAM_PROXY] ?? '';
  if (proxy === '') return Object.fromEntries(kept);
  const direct = Object.fromEntries(kept.filter(([name]) => !PROXY.test(name)));
  return proxy === 'off' ? direct : { ...direct, HTTPS_PROXY: proxy };
}
