import { credentialNameOf, namesSecret } from '../../../shared/mcp/install/input_names.ts';
import { hasReference } from '../../../shared/mcp/references.ts';
import { ownReference, withOwnReferences } from '../../../shared/wire/mcp/mcp_references.ts';

// Finds secrets typed into a configuration, by their names. A configuration is shown and stored as it is; a secret
// belongs in the vault.

/** Splits a line at its first separator and trims the parts; null if there is none. */
export function cutAtMark(line: string, mark: string): readonly [string, string | null] {
  const at = line.indexOf(mark);
  return at < 0 ? [line, null] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/** A form line without its secret, and the secret's name. */
export interface Cleared {
  readonly line: string;
  readonly name: string;
}

type Named = Readonly<Record<string, string>>;

/** `NAME=value`: only the name stays. `had`: values that were in the configuration before. */
export function clearVariable(line: string, had: Named): Cleared | null {
  const [name, value] = cutAtMark(line, '=');
  if (value === null || value === '' || !namesSecret(name) || hasReference(value)) return null;
  const isAsBefore = had[name] === value || JSON.stringify(had[name]) === value;
  return isAsBefore ? null : { line: name, name };
}

const SCHEME = /^(?:bearer|basic|token) +(?=\S)/i;

/** `Name: value`: its scheme stays. */
export function clearHeader(line: string, had: Named): Cleared | null {
  const [name, value] = cutAtMark(line, ':');
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
      const [name, value] = cutAtMark(pair, '=');
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

/** Names of options that are often not secrets but file names or words. */
const OFTEN_PLAIN = /^(?:auth|authentication|cookie|credentials?|key|private-key|dsn)$/i;
