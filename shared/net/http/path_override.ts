/** Headers in which a proxy tells a server the original path, and by which some servers route. */
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

/** True for a header that may tell a server another path than the request's own, in any spelling. */
export function isPathOverrideHeader(name: string): boolean {
  return PATH_OVERRIDE_HEADERS.has(name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-'));
}
