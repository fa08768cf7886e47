/** Headers by which a proxy tells a server which path the request had, and which servers then route by. */
const PATH_OVERRIDE_HEADERS: ReadonlySet<string> = new Set(
  [
    'original',
    'rewrite',
    'rewritten',
    'forwarded',
    'override',
    'request',
    'replaced',
    'envoy-original',
    'http-destination',
  ]
    .flatMap((kind) => ['url', 'uri', 'path', 'prefix'].map((part) => `x-${kind}-${part}`))
    .concat(
      'x-http-destinationurl',
      'x-waws-unencoded-url',
      'unencoded-url',
      'x-script-name',
      'script-name',
      'path-info',
    ),
);

/** True for a header by which a server may be told that a request has another path than its own, however its name is spelled. */
export function isPathOverrideHeader(name: string): boolean {
  return PATH_OVERRIDE_HEADERS.has(name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-'));
}
