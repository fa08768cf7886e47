import { z } from 'zod';
import { parseJson } from '../model/json.ts';
import { err, ok, type Result } from '../model/result.ts';
import { isNpmName, isNpmVersion, type PackageSpec } from './package_specs.ts';

/** What npm will install, as its lock file says. */
export interface NpmLock {
  /** The exact release of the package itself. */
  readonly release: string;
  /** Where each package for this machine is fetched, without those that come inside another one. */
  readonly tarballs: readonly string[];
  /** `name@version` of each package that has install scripts. */
  readonly withScripts: readonly string[];
}

const dependencies = z.record(z.string(), z.string()).optional();
const lockedPackage = z.looseObject({
  name: z.string().optional(),
  version: z.string().optional(),
  resolved: z.string().optional(),
  integrity: z.string().optional(),
  link: z.boolean().optional(),
  inBundle: z.boolean().optional(),
  hasInstallScript: z.boolean().optional(),
  hasShrinkwrap: z.boolean().optional(),
  dependencies,
  optionalDependencies: dependencies,
  peerDependencies: dependencies,
  os: z.array(z.string()).optional(),
  cpu: z.array(z.string()).optional(),
});
const lockFile = z.looseObject({ lockfileVersion: z.number(), packages: z.record(z.string(), lockedPackage) });

type Locked = z.output<typeof lockedPackage>;

/** The machine, in npm's words, such as `linux` and `x64`. */
interface LockPlatform {
  readonly os: string;
  readonly cpu: string;
}

const MAX_PACKAGES = 5_000;
const FOLDER = 'node_modules/';
/** SHA-1 is not accepted: two archives with the same SHA-1 can be made. */
const INTEGRITY = /^sha(?:256|384|512)-[A-Za-z0-9+/]{43,86}={0,2}$/;

/**
 * Checks a package-lock.json before anything is fetched by it: the wanted release, every package from a registry's archive
 * with its hash, at a place inside the folder. Repositories, links, local directories and dependencies by URL are refused,
 * because npm runs, reads or fetches other things for them. The error is the rest of a sentence about the package.
 */
export function readNpmLock(text: string, wanted: PackageSpec, platform: LockPlatform): Result<NpmLock, string> {
  const parsed = lockFile.safeParse(parseJson(text));
  if (!parsed.success || parsed.data.lockfileVersion < 2) return err('has a lock file that cannot be read');
  const entries = Object.entries(parsed.data.packages).filter(([path]) => path !== '');
  if (entries.length > MAX_PACKAGES) return err(`has more than ${MAX_PACKAGES} dependencies`);
  for (const [path, locked] of entries) {
    const problem = findProblem(path, locked, parsed.data.packages);
    if (problem !== null) return err(`depends on ${JSON.stringify(path)}, ${problem}`);
  }
  const own = parsed.data.packages[`${FOLDER}${wanted.name}`];
  if (own?.version === undefined) return err('is not in its own lock file');
  if ((own.name ?? wanted.name) !== wanted.name) return err(`is another package: ${JSON.stringify(own.name)}`);
  if (wanted.isExact && own.version !== withoutBuild(wanted.version)) {
    return err(`is not the wanted release, but ${JSON.stringify(own.version)}`);
  }
  const here = entries.filter(([, locked]) => allows(locked.os, platform.os) && allows(locked.cpu, platform.cpu));
  return ok({
    release: own.version,
    tarballs: here.flatMap(([, { resolved }]) => (resolved === undefined ? [] : [resolved])),
    withScripts: here.flatMap(([path, { version = '', hasInstallScript }]) =>
      hasInstallScript === true ? [`${nameOf(path)}@${version}`] : [],
    ),
  });
}

function findProblem(path: string, locked: Locked, all: Readonly<Record<string, Locked>>): string | null {
  if (!isInside(path)) return 'whose place is not inside its folder';
  if (locked.link === true) return 'which is a directory of this machine';
  if (locked.version === undefined || !isNpmVersion(locked.version)) return 'which has no exact version';
  if (!specsOf(locked).every((spec) => FROM_REGISTRY.test(spec))) {
    return 'which has a dependency that is not from a registry';
  }
  if (locked.inBundle === true) {
    return comesInside(path, all) ? null : 'which claims to come inside another package';
  }
  if (!isArchive(locked.resolved)) return 'which is not from a registry';
  if (!isWhereOthersAre(path, locked, all)) return 'which its publisher fetches from elsewhere';
  return INTEGRITY.test(locked.integrity ?? '') ? null : 'which has no SHA-256 or SHA-512 hash';
}

/** `node_modules/a/node_modules/@b/c`: nothing but names of packages. */
function isInside(path: string): boolean {
  if (!path.startsWith(FOLDER)) return false;
  return path
    .slice(FOLDER.length)
    .split(`/${FOLDER}`)
    .every((name) => isNpmName(name));
}

/** A bundled package is covered by the hash of the package that brings it. */
function comesInside(path: string, all: Readonly<Record<string, Locked>>): boolean {
  const at = path.lastIndexOf(`/${FOLDER}`);
  const parent = at < 0 ? undefined : all[path.slice(0, at)];
  if (parent === undefined) return false;
  return parent.inBundle === true ? comesInside(path.slice(0, at), all) : parent.integrity !== undefined;
}

function isArchive(url: string | undefined): url is string {
  if (url === undefined || !URL.canParse(url)) return false;
  const { protocol, username, password } = new URL(url);
  return (protocol === 'https:' || protocol === 'http:') && username === '' && password === '';
}

/** A version, a range, a tag, or another package of a registry: no URL, no path and no repository. */
const FROM_REGISTRY = /^(?:[^:/]*|npm:(?:@[^:/]+\/)?[^:/]+)$/;

/** Unlike the registry, the publisher of a package chooses these texts, and npm fetches the URLs among them. */
function specsOf({ dependencies: needed = {}, optionalDependencies = {}, peerDependencies = {} }: Locked): string[] {
  return [needed, optionalDependencies, peerDependencies].flatMap((each) => Object.values(each));
}

/** A package may bring a lock file for its dependencies, with URLs of its publisher: they have to be where a registry's are. */
function isWhereOthersAre(path: string, { resolved = '' }: Locked, all: Readonly<Record<string, Locked>>): boolean {
  if (!isBelowShrinkwrap(path, all)) return true;
  const { origin } = new URL(resolved);
  return Object.entries(all).some(([other, locked]) => {
    if (!isArchive(locked.resolved) || isBelowShrinkwrap(other, all)) return false;
    return new URL(locked.resolved).origin === origin;
  });
}

function isBelowShrinkwrap(path: string, all: Readonly<Record<string, Locked>>): boolean {
  const at = path.lastIndexOf(`/${FOLDER}`);
  if (at < 0) return false;
  const parent = path.slice(0, at);
  return all[parent]?.hasShrinkwrap === true || isBelowShrinkwrap(parent, all);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf(FOLDER) + FOLDER.length);
}

/** A list of npm's `os` or `cpu`: what it names, or everything but what it names with a `!`. */
function allows(list: readonly string[] | undefined, own: string): boolean {
  if (list === undefined || list.length === 0 || list.includes('any')) return true;
  if (list.includes(`!${own}`)) return false;
  return list.includes(own) || list.every((each) => each.startsWith('!'));
}

/** Registries ignore what follows a plus sign. */
function withoutBuild(version: string | null): string | undefined {
  return version?.split('+')[0];
}
