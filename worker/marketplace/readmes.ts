import { normalPythonName } from '../../shared/mcp/python_command.ts';
import { isOfPublicRegistry } from '../../shared/mcp/public_registry.ts';
import { readmeText, type ReadmeText } from '../../shared/mcp/readme_text.ts';
import type { RegistryEntry, RegistryPackage } from '../../shared/mcp/registry_entry.ts';
import { isNpmName, isPypiName } from '../../shared/mcp/package_specs.ts';
import { parseJsonBytes } from '../../shared/model/json.ts';
import { KeptReplies } from './kept_replies.ts';

/** A README, and what it is the README of. */
export interface Readme extends ReadmeText {
  /** Such as `the npm package @acme/files`. */
  readonly of: string;
  /** The host that sent it. */
  readonly host: string;
}

/** Where a README may be, and how to find it in the reply. */
export interface ReadmePlace {
  readonly url: string;
  readonly of: string;
  readonly read: (body: Uint8Array<ArrayBuffer>) => string | null;
}

/** The READMEs of a registry's entries by URL. */
export const openReadmes = () => new KeptReplies<Readme>(({ text }) => text.length * 2, 60);

/**
 * The places of an entry's README, the best first: its packages, in the registry that the entry names, then its repository. An
 * entry may name no registry, or another one than the public one of its kind, which nothing is installed from.
 */
export function readmePlaces({ packages, repositoryUrl }: RegistryEntry): readonly ReadmePlace[] {
  const ofPackages = packages.map((item) => packagePlace(item));
  return [...ofPackages, repositoryPlace(repositoryUrl)].filter((place) => place !== null);
}

function packagePlace({ registryType, registryBaseUrl, identifier, version }: RegistryPackage): ReadmePlace | null {
  if (registryBaseUrl === null || !isOfPublicRegistry(registryBaseUrl, registryType)) return null;
  const base = new URL(registryBaseUrl).origin;
  if (registryType === 'npm' && isNpmName(identifier)) {
    const url = `${base}/${identifier.replace('/', '%2f')}`;
    return { url, of: `the npm package ${identifier}`, read: (body) => textIn(body, ['readme']) };
  }
  if (registryType !== 'pypi' || !isPypiName(identifier)) return null;
  const release = version === null ? '' : `/${encodeURIComponent(version)}`;
  const url = `${base}/pypi/${normalPythonName(identifier)}${release}/json`;
  return { url, of: `the Python package ${identifier}`, read: (body) => textIn(body, ['info', 'description']) };
}

/** A repository on GitHub; others have no address for the README of their newest state. */
function repositoryPlace(repositoryUrl: string | null): ReadmePlace | null {
  const [, owner = '', name = ''] =
    /^https:\/\/(?:www\.)?github\.com\/([A-Za-z0-9-]{1,39})\/([\w.-]{1,100}?)(?:\.git)?\/?(?:[?#].*)?$/.exec(
      repositoryUrl ?? '',
    ) ?? [];
  if (owner === '' || /^\.+$/.test(name)) return null;
  const url = `https://raw.githubusercontent.com/${owner}/${name}/HEAD/README.md`;
  return { url, of: `the repository github.com/${owner}/${name}`, read: (body) => new TextDecoder().decode(body) };
}

function textIn(body: Uint8Array<ArrayBuffer>, path: readonly string[]): string | null {
  let value: unknown = parseJsonBytes(body);
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return null;
    value = Object.getOwnPropertyDescriptor(value, name)?.value;
  }
  return typeof value === 'string' ? value : null;
}

/** Null if there is nothing to read in it. */
export function readReadme({ url, of, read }: ReadmePlace, body: Uint8Array<ArrayBuffer>): Readme | null {
  const markdown = read(body);
  // What the npm registry has for a package without one.
  if (markdown === null || markdown.startsWith('ERROR: No README data found!')) return null;
  const text = readmeText(markdown);
  return text.text === '' ? null : { ...text, of, host: new URL(url).hostname };
}
