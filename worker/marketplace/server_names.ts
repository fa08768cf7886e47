import { replaceHidden } from '../../shared/model/shown_text.ts';
const MAX_NAME = 48;

/** Makes a server's name from its entry's: the part after the slash, in the form of server names. */
export function serverName(registryId: string): string {
  const [namespace = '', tail = ''] = registryId.split(/\/(?=[^/]*$)/);
  const own = slug(tail === '' ? namespace : tail);
  // A name such as `server` is too general, so the publisher's is used.
  return /^(?:mcp|server|mcp-server|server-mcp)?$/.test(own)
    ? slug(`${namespace.split('.').at(-1) ?? ''}-${own}`)
    : own;
}

/** The same name with a number. */
export function addNumber(name: string, number: number): string {
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

/** A publisher's text on one line, with hidden characters made visible. */
export function plainLine(text: string, maxCharacters: number): string {
  return replaceHidden(text, { keepsLines: false, write: () => ' ' })
    .trim()
    .slice(0, maxCharacters)
    .toWellFormed();
}
