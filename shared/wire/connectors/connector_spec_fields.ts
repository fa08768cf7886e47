import type { z } from 'zod';
import { MAX_PATH_SEGMENTS } from '../../model/connector.ts';
import { normaliseHost, normaliseHostOnPort } from '../../net/host.ts';
import { nameOfHost, PLAIN_PORT } from '../../net/host_port.ts';
import { isIpLiteral } from '../../net/ip_literal.ts';
import { canonicalPath } from '../../net/http/target.ts';
import { checkedText } from '../checked_text.ts';
import { findSteering } from '../../model/shown_text.ts';

/** An exact upstream host: a credential is sent there, so neither a pattern nor an address is allowed. */
export const hostText = checkedText(260, 'write a host such as api.example.com', hostProblem).overwrite((text) => {
  const host = normaliseHostOnPort(text);
  return host.ok ? host.value : text;
});

/** A path, exact or with `{name}` for whole segments. */
export const pathText = checkedText(2_000, 'write a path such as /items/{id}', pathProblem);

/** The URL of a token endpoint. Its host is checked again when it is called. */
export const httpsUrlText = checkedText(2_000, 'write an https URL', (text) => urlProblem(text) ?? portProblem(text));

/** The URL of a server that people run themselves, at any port. Its host and port are checked again when it is called. */
export const httpsServerText = checkedText(2_000, 'write an https URL', urlProblem);

/** A word that names an input, an operation or an audit field. */
export function nameText(what: string): z.ZodString {
  return checkedText(128, `write ${what}`, (text) =>
    /^[A-Za-z0-9_][A-Za-z0-9_.$:[\]-]*$/.test(text)
      ? null
      : `is ${JSON.stringify(text.slice(0, 40))}: write ${what}, of letters, digits, "_", ".", "-"`,
  );
}

/** The name of a GraphQL field. Every document may have `__typename`, which tells nothing about its effect. */
export const graphqlFieldText = checkedText(100, 'write the name of a field, such as mergePullRequest', (text) => {
  if (text === '__typename') return 'is "__typename", which belongs to every operation: leave it out';
  return /^[_A-Za-z][_0-9A-Za-z]*$/.test(text)
    ? null
    : 'is not a field name: write one such as mergePullRequest, without arguments';
});

const MAX_POINTER_NAMES = 5;

/** A JSON pointer (RFC 6901) through members of objects. A list has no place that stays the same. */
export const pointerText = checkedText(200, 'write a JSON pointer such as /amount', (text) => {
  if (!text.startsWith('/')) return 'must begin with "/", such as /amount';
  const names = text.slice(1).split('/');
  if (names.length > MAX_POINTER_NAMES) return `has more than ${MAX_POINTER_NAMES} names`;
  if (names.some((name) => name === '-' || /^[0-9]+$/.test(name)))
    return 'has an index of a list: only members of objects can be ruled';
  return names.every((name) => /^[A-Za-z0-9_.:$@-]+$/.test(name) && /[A-Za-z0-9]/.test(name))
    ? null
    : 'is not a pointer of names of letters, digits, "_", "-", ".", ":", "$" and "@"';
});

/** Text for people; it may have line breaks, but nothing that controls a terminal or reverses the text direction. */
export function proseText(maxCharacters: number): z.ZodString {
  return checkedText(maxCharacters, 'write plain text', (text) => proseProblem(text));
}

function proseProblem(text: string): string | null {
  const found = findSteering(text, true);
  return found === null ? null : `contains a control character (${found}): write plain text`;
}

function hostProblem(text: string): string | null {
  if (text.includes('*')) return 'has a "*" in it: a connector names each host exactly';
  const host = normaliseHostOnPort(text);
  if (!host.ok) return host.error.message;
  return isIpLiteral(nameOfHost(host.value))
    ? 'is an address: a connector names hosts, whose certificates can be checked'
    : null;
}

function pathProblem(text: string): string | null {
  if (!text.startsWith('/')) return 'must begin with "/"';
  if (/[?#\s\\\p{Cc}]/u.test(text)) return 'has a query, a fragment, a space or a backslash: write only the path';
  if (!/^[!-~]*$/.test(text)) return 'contains a non-ASCII character: percent-encode it';
  const segments = text.slice(1).split('/');
  if (segments.length > MAX_PATH_SEGMENTS) return `has more than ${MAX_PATH_SEGMENTS} segments`;
  const odd = segments.find((segment) => /[{}]/.test(segment) && !/^\{[A-Za-z0-9_][A-Za-z0-9_.$:-]*\}$/.test(segment));
  if (odd !== undefined) return `has ${JSON.stringify(odd.slice(0, 40))} in it: "{name}" stands for a whole segment`;
  const literal = text.replaceAll(/\{[^}]*\}/g, 'x');
  return canonicalPath(literal) === literal
    ? null
    : 'is not in its canonical form: no "//", no dot segments, no ";" parameters, no needless escapes';
}

function urlProblem(text: string): string | null {
  if (!URL.canParse(text)) return 'is not a URL: write it in full, such as https://auth.example.com/token';
  const url = new URL(text);
  if (url.protocol !== 'https:') return 'is not https';
  if (url.username !== '' || url.password !== '') return 'holds a user name or password: write it without';
  if (url.hash !== '') return 'has a fragment: write it without';
  if (['0', String(PLAIN_PORT)].includes(url.port)) return 'names a port that no https server has';
  const host = normaliseHost(url.hostname);
  if (!host.ok) return `names a host that ${host.error.message}`;
  return isIpLiteral(host.value) ? 'names an address: write a host' : null;
}

function portProblem(text: string): string | null {
  return new URL(text).port === '' ? null : 'names a port: only 443 is used';
}
