import { credentialNameOf, namesSecret } from '../../../shared/mcp/install/input_names.ts';
import { hasReference } from '../../../shared/mcp/references.ts';
import { ownReference, withOwnReferences } from '../../../shared/wire/mcp_references.ts';

// Secrets that somebody typed where a configuration is written, told by the names that they stand under. A configuration is
// shown and stored as it is; a secret belongs into the vault.

/** A line at its first mark, without the spaces around it; null when it has none. */
export function cut(line: string, mark: string): readonly [string, string | null] {
  const at = line.indexOf(mark);
  return at < 0 ? [line, null] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/** A line of a form without the secret that was typed into it, and the name that the secret stood under. */
export interface Cleared {
  readonly line: string;
  readonly name: string;
}

type Named = Readonly<Record<string, string>>;

/** `NAME=value`: the name alone. `had`: values that the configuration had before, which nobody typed now. */
export function clearVariable(line: string, had: Named): Cleared | null {
  const [name, value] = cut(line, '=');
  if (value === null || value === '' || !namesSecret(name) || hasReference(value)) return null;
  const isAsBefore = had[name] === value || JSON.stringify(had[name]) === value;
  return isAsBefore ? null : { line: name, name };
}

const SCHEME = /^(?:bearer|basic|token) +(?=\S)/i;

/** `Name: value`: its scheme stays. */
export function clearHeader(line: string, had: Named): Cleared | null {
  const [name, value] = cut(line, ':');
  if (value === null || value === '' || !namesSecret(name) || hasReference(withOwnReferences(value))) return null;
  if (had[name] === value) return null;
  return { line: `${name}: ${SCHEME.exec(value)?.[0] ?? ''}{${credentialNameOf(name, new Set())}}`, name };
}

/** The parameters of a URL. */
export function clearQuery(url: string): Cleared | null {
  const [base = '', ...query] = url.split('?');
  const names: string[] = [];
  const pairs = query
    .join('?')
    .split('&')
    .map((pair) => {
      const [name, value] = cut(pair, '=');
      if (value === null || value === '' || !namesSecret(name) || hasReference(withOwnReferences(value))) return pair;
      names.push(name);
      return `${name}={${credentialNameOf(name, new Set())}}`;
    });
  return names.length === 0 ? null : { line: `${base}?${pairs.join('&')}`, name: names.join(', ') };
}

/** `--api-key=value`, or the value on the line after `--api-key`. */
export function clearArgument(line: string, before: string): Cleared | null {
  const [option = '', ...rest] = line.split('=');
  const isJoined = /^--?\w/.test(option) && rest.length > 0;
  const name = (isJoined ? option : before).replace(/^--?/, '');
  const value = isJoined ? rest.join('=') : line;
  const isOption = isJoined || (/^--?\w[\w-]*$/.test(before) && !line.startsWith('-'));
  if (!isOption || value === '' || hasReference(value) || !namesSecret(name) || OFTEN_PLAIN.test(name)) return null;
  const reference = ownReference(credentialNameOf(name.toUpperCase(), new Set()));
  return { line: isJoined ? `${option}=${reference}` : reference, name };
}

/** Names of options that take a file or a word as often as a secret. */
const OFTEN_PLAIN = /^(?:auth|authentication|cookie|credentials?|key|private-key|dsn)$/i;
