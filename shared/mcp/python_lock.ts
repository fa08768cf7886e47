import { z } from 'zod';
import { parseJson } from '../model/json.ts';
import { err, ok, type Result } from '../model/result.ts';
import { isPypiName, isPypiVersion } from './package_specs.ts';
import { normalPythonName, type PythonSpec } from './python_command.ts';

/** The Python that packages are installed for: compiled ones work with no other. */
const pythonVersion = z.strictObject({
  /** Its program, without links. */
  executable: z.string().startsWith('/'),
  /** Such as `3.11`. */
  version: z.string().regex(/^3\.\d{1,2}$/),
  /** Such as `linux-x86_64`. */
  platform: z.string(),
  /** Where its standard modules are. */
  prefix: z.string().startsWith('/'),
});

const lockedWheel = z.strictObject({
  name: z.string().refine(isPypiName),
  version: z.string().refine(isPypiVersion),
  url: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

/** Everything that is installed: each wheel with its hash, and the Python that they are for. */
const pythonLock = z.strictObject({
  version: z.literal(1),
  python: pythonVersion,
  packages: z.array(lockedWheel).min(1).max(5_000),
});

export type PythonVersion = z.output<typeof pythonVersion>;
export type PythonLock = z.output<typeof pythonLock>;

const archiveInfo = z.looseObject({
  hash: z.string().optional(),
  hashes: z.record(z.string(), z.string()).optional(),
});
const pipReport = z.looseObject({
  version: z.literal('1'),
  install: z.array(
    z.looseObject({
      download_info: z.looseObject({ url: z.string(), archive_info: archiveInfo.optional() }),
      is_direct: z.boolean(),
      metadata: z.looseObject({ name: z.string(), version: z.string() }),
    }),
  ),
});

/**
 * Makes the lock of what pip would install, from its report (`pip install --dry-run --report`). Only wheels of an index, each with
 * its SHA-256: a package by a URL or from a repository is its publisher's choice of another server, and a source archive runs
 * code while it is built. The error is the rest of a sentence about the package.
 */
export function lockOfReport(report: string, spec: PythonSpec, python: PythonVersion): Result<string, string> {
  const parsed = pipReport.safeParse(parseJson(report));
  if (!parsed.success) return err('has a report of pip that cannot be read');
  const packages: z.output<typeof lockedWheel>[] = [];
  for (const { download_info: download, is_direct: isDirect, metadata } of parsed.data.install) {
    const shown = JSON.stringify(metadata.name);
    if (isDirect) return err(`depends on ${shown}, which its publisher fetches from elsewhere`);
    const { pathname } = URL.canParse(download.url) ? new URL(download.url) : { pathname: '' };
    if (!pathname.endsWith('.whl')) return err(`depends on ${shown}, which has no wheel`);
    const { hash, hashes } = download.archive_info ?? {};
    const sha256 = hashes?.['sha256'] ?? /^sha256=(.*)$/.exec(hash ?? '')?.[1] ?? '';
    const name = normalPythonName(metadata.name);
    const locked = lockedWheel.safeParse({ name, version: metadata.version, url: download.url, sha256 });
    if (!locked.success) return err(`depends on ${shown}, whose name, version or SHA-256 cannot be read`);
    packages.push(locked.data);
  }
  packages.sort((a, b) => (a.name < b.name ? -1 : 1));
  const lock = JSON.stringify({ version: 1, python, packages });
  const read = readPythonLock(lock, spec);
  return read.ok ? ok(lock) : read;
}

/** Reads a lock again. The wanted package must be in it, and nothing twice. That it is the wanted release, pip decides (PEP 440). */
export function readPythonLock(
  text: string,
  spec: PythonSpec,
): Result<PythonLock & { readonly release: string }, string> {
  const parsed = pythonLock.safeParse(parseJson(text));
  if (!parsed.success) return err('has a lock file that cannot be read');
  const { packages } = parsed.data;
  if (new Set(packages.map(({ name }) => name)).size !== packages.length)
    return err('has a package twice in its lock file');
  const own = packages.find(({ name }) => name === spec.name);
  if (own === undefined) return err('is not in its own lock file');
  return ok({ ...parsed.data, release: own.version });
}

/** The lock as pip's list of requirements, each with its only hash. */
export function requirementsOf({ packages }: PythonLock): string {
  return packages.map(({ name, version, sha256 }) => `${name}==${version} --hash=sha256:${sha256}\n`).join('');
}
