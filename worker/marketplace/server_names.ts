import { replaceHidden } from '../../shared/model/shown_text.ts';
const MAX_NAME = 48;

/** A server's name made of its entry's: the part after the slash, as a name of a server is written. */
export function serverName(registryId: string): string {
  const [namespace = '', tail = ''] = registryId.split(/\/(?=[^/]*$)/);
  const own = slug(tail === '' ? namespace : tail);
  // A name such as `server` says nothing; the publisher's does.
  return /^(?:mcp|server|mcp-server|server-mcp)?$/.test(own)
    ? slug(`${namespace.split('.').at(-1) ?? ''}-${own}`)
    : own;
}

/** The same name with a number. */
export function numbered(name: string, number: number): string {
  const suffix = `-${number}`;
  return name.slice(0, MAX_NAME - suffix.length).replace(/-+$/, '') + suffix;
}

function slug(text: string): string {
  const plain = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return plain.slice(0, MAX_NAME).replace(/-+$/, '') || 'server';
}

/** A publisher's text as one line that shows what it is. */
export function plainLine(text: string, maxCharacters: number): string {
  return replaceHidden(text, { keepsLines: false, write: () => ' ' })
    .trim()
    .slice(0, maxCharacters)
    .toWellFormed();
}
