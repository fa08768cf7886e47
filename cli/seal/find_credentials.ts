import { isStandIn, serviceOfShape } from '../../shared/model/credential_shapes.ts';
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
const same = (placeholder: string): string => placeholder;

/** Every credential in a text. Never throws: what cannot be read has none. */
export function findCredentials(format: FileFormat, text: string, names: KnownNames): readonly FoundCredential[] {
  const parts: Part[] = [];
  for (const part of [...READERS[format](text, names), ...findShapes(text)]) {
    const isTaken = parts.some(({ start, end }) => part.start < end && start < part.end);
    if (!isTaken && isCredential(part.value)) parts.push(part);
  }
  return parts
    .toSorted((a, b) => a.start - b.start)
    .map((part) => ({ ...part, line: text.slice(0, part.start).split('\n').length }));
}

function isCredential(value: string): boolean {
  return value.length >= SHORTEST && !isStandIn(value) && !/^\$|^<|\s/.test(value);
}

const READERS: { readonly [F in FileFormat]: Reader } = {
  any: () => [],
  dotenv: (text, { serviceOfVariable }) =>
    matchesOf(/^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w{0,127})[ \t]*=[ \t]*["']?([^\s"'#]+)/dgm, text, (name, value) => {
      const service = serviceOfShape(value) ?? serviceOfVariable(name);
      return service === null ? null : { service, name };
    }),
  npmrc: (text) =>
    matchesOf(/^[ \t]*\/\/([^\s/:=]+)[^\s=]*:_authToken[ \t]*=[ \t]*["']?([^\s"']+)/dgm, text, (host, value) => {
      const service = serviceOfShape(value) ?? 'npm';
      const write = service === 'npm' ? (): string => '${NPM_TOKEN}' : same;
      return { service, name: host, values: { host }, write };
    }),
  netrc: (text, { serviceOfHost }) =>
    matchesOf(/\bmachine\s+(\S+)(?:\s+(?:login|account)\s+\S+){0,2}\s+password\s+(\S+)/dg, text, (host, value) => ({
      service: serviceOfShape(value) ?? serviceOfHost(host),
      name: host,
    })),
  'git-credentials': (text, { serviceOfHost }) =>
    matchesOf(/^https?:\/\/[^\s:@/]*:([^\s@]+)@([^\s/]+)/dgm, text, (value, host) => {
      return { service: serviceOfShape(value) ?? serviceOfHost(host), name: host, group: 1 };
    }),
  aws: (text) =>
    matchesOf(/^[ \t]*(aws_secret_access_key)[ \t]*=[ \t]*(\S+)/dgm, text, (name) => {
      const [keyId] = [...text.matchAll(/^[ \t]*aws_access_key_id[ \t]*=[ \t]*(AKIA\w{12,124})/gm)];
      return { service: 'aws', name, values: keyId?.[1] === undefined ? {} : { access_key_id: keyId[1] } };
    }),
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
  /** The group with the value; by default the second. */
  readonly group?: 1 | 2;
}

function matchesOf(
  pattern: RegExp,
  text: string,
  read: (first: string, second: string) => Read | null,
): readonly Part[] {
  return [...text.matchAll(pattern)].flatMap((match): readonly Part[] => {
    const found = read(match[1] ?? '', match[2] ?? '');
    const group = found?.group ?? 2;
    const span = match.indices?.[group];
    if (found === null || span === undefined) return [];
    const { service, name, value = match[group] ?? '', values = {}, write = same } = found;
    return [{ service, name, value, values, write, start: span[0], end: span[1] }];
  });
}

/** Words with the shape of a credential, wherever they are. */
function findShapes(text: string): readonly Part[] {
  return [...text.matchAll(/[^\s"'`:;,@/?&=|<>()[\]{}]+/g)].flatMap((match): readonly Part[] => {
    const [value] = match;
    const service = serviceOfShape(value);
    if (service === null) return [];
    const before = text.slice(Math.max(0, match.index - 80), match.index);
    const name = /([\w.-]{1,64})["']?[ \t]*[:=][ \t]*["']?$/.exec(before)?.[1] ?? service;
    return [{ service, value, name, values: {}, write: same, start: match.index, end: match.index + value.length }];
  });
}
