import { credentialWithin, isStandIn, serviceOfShape } from '../../shared/model/credential_shapes.ts';
import type { ServiceValues } from '../../shared/wire/sealed_service.ts';

/** How a file is read, besides looking for the shapes of credentials. */
export type FileFormat = 'dotenv' | 'npmrc' | 'netrc' | 'git-credentials' | 'aws' | 'docker' | 'any';

/** A credential in a text. */
export interface FoundCredential {
  /** The name for `svc seal`; null if no service of the catalog is known for it. */
  readonly service: string | null;
  readonly value: string;
  /** What it is called there: a variable, a key or a host. */
  readonly name: string;
  /** From 1 on. */
  readonly line: number;
  /** The part of the text that is replaced. */
  readonly start: number;
  readonly end: number;
  /** What the text says about it, such as the host of the registry. */
  readonly values: ServiceValues;
  /** Writes a placeholder in place of the part. */
  readonly write: (placeholder: string) => string;
}

/** Which service a variable or a host belongs to. */
export interface KnownNames {
  readonly serviceOfVariable: (name: string) => string | null;
  readonly serviceOfHost: (host: string) => string | null;
}

type Part = Omit<FoundCredential, 'line'>;
type Reader = (text: string, names: KnownNames) => readonly Part[];

/** Shorter values are no credentials, but examples. */
const SHORTEST = 8;
/** A file with more is no configuration; the search says that it has not listed all. */
export const MAX_FOUND = 100;
/** No setting is longer. */
const MAX_LINE = 4096;
const same = (placeholder: string): string => placeholder;

/** The credentials in a text, `MAX_FOUND` at most. Never throws: what cannot be read has none. */
export function findCredentials(format: FileFormat, text: string, names: KnownNames): readonly FoundCredential[] {
  const parts: Part[] = [];
  for (const part of [...READERS[format](text, names), ...findShapes(text)]) {
    const isTaken = parts.some(({ start, end }) => part.start < end && start < part.end);
    if (!isTaken && isCredential(part.value)) parts.push(part);
    if (parts.length === MAX_FOUND) break;
  }
  let line = 1;
  let counted = 0;
  return parts
    .toSorted((a, b) => a.start - b.start)
    .map((part) => {
      line += text.slice(counted, part.start).split('\n').length - 1;
      counted = part.start;
      return { ...part, line, name: nameOf(part) };
    });
}

/** In a file that is not what it seems, the name's place may hold a credential too. */
function nameOf({ name, service }: Part): string {
  return credentialWithin(name) === null ? name : (service ?? 'unknown');
}

function isCredential(value: string): boolean {
  return value.length >= SHORTEST && !isStandIn(value) && !/^\$|^<|\s/.test(value);
}

const READERS: { readonly [F in FileFormat]: Reader } = {
  any: () => [],
  dotenv: (text, { serviceOfVariable }) =>
    matchesOfLines(
      /^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w{0,127})[ \t]*=[ \t]*["']?([^\s"'#]+)/d,
      text,
      (name, value) => {
        const service = serviceOfShape(value) ?? serviceOfVariable(name);
        return service === null ? null : { service, name };
      },
    ),
  npmrc: (text) =>
    matchesOfLines(
      /^[ \t]*\/\/([^\s/:=]+(?::\d+)?)(?:[/:][^\s=]*)?:_authToken[ \t]*=[ \t]*["']?([^\s"']+)/d,
      text,
      (host, value) => {
        const service = serviceOfShape(value) ?? 'npm';
        const write = service === 'npm' ? (): string => '${NPM_TOKEN}' : same;
        return { service, name: host, values: { host }, write };
      },
    ),
  netrc: (text, { serviceOfHost }) =>
    matchesOf(/\bmachine\s+(\S+)(?:\s+(?:login|account)\s+\S+){0,2}\s+password\s+(\S+)/dg, text, (host, value) => ({
      service: serviceOfShape(value) ?? serviceOfHost(host),
      name: host,
    })),
  'git-credentials': (text, { serviceOfHost }) =>
    matchesOfLines(/^https?:\/\/([^\s:@/]*):([^\s@]+)@([^\s/]+)/d, text, (user, value, host) => {
      // A token may stand in the user's place, with a filler as the password. Its shape is found anyway.
      if (value === 'x-oauth-basic' || serviceOfShape(user) !== null) return null;
      return { service: serviceOfShape(value) ?? serviceOfHost(host), name: host };
    }),
  aws: (text) => {
    const keyId = /^[ \t]*aws_access_key_id[ \t]*=[ \t]*(AKIA\w{12,124})/m.exec(text)?.[1];
    const values = keyId === undefined ? {} : { access_key_id: keyId };
    return matchesOfLines(/^[ \t]*(aws_secret_access_key)[ \t]*=[ \t]*(\S+)/d, text, (name) => {
      return { service: 'aws', name, values };
    });
  },
  docker: (text, { serviceOfHost }) =>
    matchesOf(/"([^"\s]{1,255})"\s*:\s*\{\s*"auth"\s*:\s*"([A-Za-z0-9+/]+={0,2})"/dg, text, (key, encoded) => {
      const [username = '', ...rest] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
      const value = rest.join(':');
      const host = key.replace(/^https?:\/\//, '').split('/')[0] ?? key;
      const service = serviceOfShape(value) ?? serviceOfHost(host);
      const write = (placeholder: string): string => Buffer.from(`${username}:${placeholder}`).toString('base64');
      return { service, name: host, value, values: { username }, write };
    }),
};

interface Read {
  readonly service: string | null;
  readonly name: string;
  readonly value?: string;
  readonly values?: ServiceValues;
  readonly write?: (placeholder: string) => string;
}

/** Reads the groups of a match, the second of which is the value. */
type ReadGroups = (first: string, second: string, third: string) => Read | null;

function matchesOf(pattern: RegExp, text: string, read: ReadGroups): readonly Part[] {
  return [...text.matchAll(pattern)].flatMap((match) => partOf(match, read, 0));
}

/** A line has one credential at most. */
function matchesOfLines(pattern: RegExp, text: string, read: ReadGroups): readonly Part[] {
  const parts: Part[] = [];
  let start = 0;
  for (const line of text.split('\n')) {
    const match = line.length > MAX_LINE ? null : pattern.exec(line);
    if (match !== null) parts.push(...partOf(match, read, start));
    start += line.length + 1;
  }
  return parts;
}

function partOf(match: RegExpExecArray, read: ReadGroups, offset: number): readonly Part[] {
  const found = read(match[1] ?? '', match[2] ?? '', match[3] ?? '');
  const span = match.indices?.[2];
  if (found === null || span === undefined) return [];
  const { service, name, value = match[2] ?? '', values = {}, write = same } = found;
  return [{ service, name, value, values, write, start: offset + span[0], end: offset + span[1] }];
}

/** What is in front of a value: a name at the start of its line, or a key of JSON. Other text may be a secret too. */
const NAMES = [/\n[ \t]*["']?([\w.-]{1,64})["']?[ \t]*[:=][ \t]*["']?$/, /"([\w.-]{1,64})"[ \t]*:[ \t]*"$/];
const MAX_BEFORE = 160;

/** Words with the shape of a credential, wherever they are. */
function findShapes(text: string): readonly Part[] {
  return [...text.matchAll(/[^\s"'`:;,@/?&=|<>()[\]{}]+/g)].flatMap((match): readonly Part[] => {
    const [value] = match;
    const service = serviceOfShape(value);
    if (service === null) return [];
    const isFirst = match.index <= MAX_BEFORE;
    const before = (isFirst ? '\n' : '') + text.slice(isFirst ? 0 : match.index - MAX_BEFORE, match.index);
    const name = NAMES.map((pattern) => pattern.exec(before)?.[1]).find((each) => each !== undefined) ?? service;
    return [{ service, value, name, values: {}, write: same, start: match.index, end: match.index + value.length }];
  });
}
