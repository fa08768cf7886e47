/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Headers that frame or route the message, or are hop-by-hop: a credential written there would break the request. */
const NOT_FOR_CREDENTIALS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-version',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
]);

/** Variables that control the loader, the shell or the proxy setup itself; a sentinel there would break or subvert the agent. */
const ENV_NOT_FOR_SENTINELS =
  /^(?:SVC_.*|LD_.*|DYLD_.*|.*_PROXY|PATH|HOME|SHELL|ENV|BASH_ENV|IFS|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|PYTHONPATH|PYTHONSTARTUP|JAVA_TOOL_OPTIONS|SSL_CERT_FILE|SSL_CERT_DIR|.*_CA_BUNDLE|GIT_SSH.*|GIT_SSL_CAINFO)$/i;

/** Why a header name cannot hold a credential, or null. */
export function headerNameProblem(name: string): string | null {
  if (name === '') return 'is empty: write the name of the header, such as X-Api-Key';
  if (name.includes(':')) return 'has a ":" in it: write the name alone, and the value as the template';
  if (!TOKEN.test(name)) return 'has a character that no header name may have (RFC 9110): use letters, digits and "-"';
  const lower = name.toLowerCase();
  if (!NOT_FOR_CREDENTIALS.has(lower) && !lower.startsWith('proxy-')) return null;
  return `is "${name}", which frames or routes the message and cannot hold a credential: use the header the service documents`;
}

/** What is wrong with a header-template, or null. The template is not quoted, because it may contain the secret by mistake. */
export function templateProblem(template: string): string | null {
  if (/[\r\n]/.test(template)) return 'has a line break in it: a header value is one line';
  if (!/^[ -~]*$/.test(template)) return 'has a character that is not printable ASCII: a header value has none';
  if (template.trim() !== template) return 'begins or ends with a space: remove it';
  if (/\$\{token\}|\{\{\s*token\s*\}\}/.test(template))
    return 'has more than {token} itself: write {token} without "$" or a second pair of braces';
  const other = /\{(?!token\})[A-Za-z_]+\}/.exec(template)?.[0];
  if (other !== undefined) return `has a part in braces other than {token}: only {token} is replaced`;
  const count = template.split('{token}').length - 1;
  if (count === 1) return null;
  return count === 0
    ? 'has no {token}: write {token} in place of the credential, and never the credential itself'
    : 'has {token} more than once: write it exactly once';
}

/** Why a query parameter's name is invalid, or null. */
export function queryParamProblem(name: string): string | null {
  if (name === '') return 'is empty: write the name of the query-string parameter, such as api_key';
  if (!/^[!-~]+$/.test(name)) return 'has a space or a character that is not printable ASCII: write the parameter name';
  return /[&=#?%+;]/.test(name) ? 'has one of & = # ? % + ; in it: write the name alone, not encoded' : null;
}

/** Why a sentinel's environment variable is invalid, or null. */
export function envNameProblem(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    return 'is not a valid name of an environment variable: use letters, digits and "_", and do not begin with a digit';
  }
  if (!ENV_NOT_FOR_SENTINELS.test(name)) return null;
  return `is "${name}", which controls the program or the proxy itself: name the variable from which the client reads its credential`;
}
