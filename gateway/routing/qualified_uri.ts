const SCHEME = 'svc-mcp://';
const QUALIFIED = /^svc-mcp:\/\/([a-z0-9][a-z0-9-]{0,47})\/([^/?#]+)$/;

/** A resource's URI with the name of its server in it: `svc-mcp://<server>/<URI, percent-encoded>`. */
export function qualifyUri(server: string, uri: string): string {
  return `${SCHEME}${server}/${encodeURIComponent(uri)}`;
}

/** The server and the URI of a qualified URI; null if it is not one. */
export function readQualifiedUri(text: string): { readonly server: string; readonly uri: string } | null {
  const [, server, encoded] = QUALIFIED.exec(text) ?? [];
  if (server === undefined || encoded === undefined) return null;
  try {
    return { server, uri: decodeURIComponent(encoded) };
  } catch {
    return null;
  }
}
