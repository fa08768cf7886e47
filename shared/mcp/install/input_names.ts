import { MCP_CREDENTIAL_NAME } from '../../model/mcp_server.ts';

/** Suffixes of names whose values are secrets; publishers often do not mark them. */
const SECRET_NAME =
  /(?:^|[_.-])(?:api[_-]?key|app[_-]?key|key[_-]?secret|access[_-]?key|private[_-]?key|secret[_-]?key|secret|token|password|passwd|pwd|passphrase|passcode|credentials?|authorization|authentication|auth|pat|bearer|cookie|session[_-]?key|connection[_-]?string|dsn|(?<!(?:public|primary|foreign|partition|sort|ssh)[_-])key)$/i;
const CAMEL_SECRET_NAME = /(?:[a-z]|^)(?:ApiKey|AccessKey|Secret|Token|Password|apiKey|apikey|Passcode)$/;

/** True if the name means a secret, whatever the entry says. */
export function namesSecret(name: string): boolean {
  return SECRET_NAME.test(name) || CAMEL_SECRET_NAME.test(name);
}

const PLACEHOLDERS = [
  /^<[^<>]*>$/,
  /^\[[^[\]]*\]$/,
  /^\.{3}$/,
  /^x{3,}$/i,
  /^(?:your|insert|enter|replace|change)[\w -]*(?:key|token|secret|password|id|name|url|path|here|me|this)$/i,
  /^your[-_ ]/i,
  /\$\{(?:input|env|workspaceFolder|userHome)[:}]/,
  /\/path\/to(?:\/|$)|[\\/]YourName[\\/]|YOUR_[A-Z]+/,
  /^(?:todo|tbd|changeme|placeholder|example|none|null|undefined)$/i,
];

/** True for a placeholder text, which is never used as a value. */
export function isPlaceholder(text: string): boolean {
  return PLACEHOLDERS.some((pattern) => pattern.test(text.trim()));
}

/** A credential name made from a publisher's name, distinct from the ones in use. */
export function credentialNameOf(name: string, taken: ReadonlySet<string>): string {
  const plain = name
    .replaceAll(/[^A-Za-z0-9_]+/g, '_')
    .replace(/^_+(?=[A-Za-z])/, '')
    .slice(0, 100);
  const named = MCP_CREDENTIAL_NAME.test(plain) ? plain : `CREDENTIAL_${plain.replace(/^svc_/i, '')}`;
  const usable = MCP_CREDENTIAL_NAME.test(named) ? named : 'CREDENTIAL';
  return makeUnique(usable, '_', taken);
}

/** The name, or the name with the first number that makes it unique. */
export function makeUnique(name: string, separator: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  let number = 2;
  while (taken.has(name + separator + String(number))) number += 1;
  return name + separator + String(number);
}
