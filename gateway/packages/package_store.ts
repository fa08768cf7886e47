import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { canonicalJson } from '../../shared/audit/canonical_json.ts';
import { installKey, type InstallSpec, packageText } from '../../shared/mcp/package_command.ts';
import { errorCode } from '../../shared/model/error_code.ts';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { identify, type ProcessIdentity } from '../../machine/process_identity.ts';
import { serversInUse } from '../../machine/process_records.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { npmInstaller } from './npm_installer.ts';
import { type Npm, npmOnPath } from './npm_program.ts';
import { hasAllFiles, listPackageFiles, watchSize } from './package_folder.ts';
import type { LockedInstall, PackageInstaller, PackageStart } from './package_installer.ts';
import { type Pip, pipOnPath } from './pip_program.ts';
import { pythonInstaller } from './python_installer.ts';
import { counted } from '../../shared/model/sentence.ts';

/**
 * The record of an installed package. Replacing this file is the one step that installs a package or replaces it: before that
 * rename the earlier folder is used, after it the new one.
 */
const releaseRecord = z.strictObject({
  version: z.literal(1),
  spec: z.string(),
  release: z.string(),
  /** The name of the folder beside this file. */
  folder: z.string().regex(/^[\w.-]+$/),
  program: z.string(),
  /** SHA-256 of `svc-files.json` in the folder. */
  files: z.string(),
  bytes: z.number(),
  /** The whole lock file: a repair installs exactly this again, also if the folder is gone. */
  lock: z.string(),
  /** The packages whose install scripts a person agreed to, and the hash of what the person agreed to. */
  scripts: z.strictObject({ names: z.array(z.string()), consent: z.string() }).optional(),
});
const packageRecord = releaseRecord.extend({
  /** The release before this one, which has not started yet: it is used again if this one does not start. */
  previous: releaseRecord.optional(),
  /** A newer release that did not start, and why. */
  failed: z.strictObject({ release: z.string(), why: z.string() }).optional(),
});
type ReleaseRecord = z.output<typeof releaseRecord>;
type PackageRecord = z.output<typeof packageRecord>;

const fileList = z.array(z.tuple([z.string(), z.number()]));

/** A package that can be started. */
export interface InstalledPackage {
  readonly release: string;
  /** Absolute path of everything that was installed. */
  readonly folder: string;
  readonly start: PackageStart;
  readonly packages: number;
  readonly bytes: number;
  readonly withScripts: readonly string[];
  /** Those of `withScripts` whose scripts ran. */
  readonly ranScripts: readonly string[];
  /** The release to go back to if this one does not start; null once it has started. */
  readonly previousRelease: string | null;
}

/** What an install would bring. */
export interface PackagePlan extends LockedInstall {
  readonly lock: string;
}

interface FailedRelease {
  readonly release: string;
  readonly why: string;
  /** The release that is used. */
  readonly used: string;
}

interface InstallOptions {
  readonly signal: AbortSignal;
  /** Takes short lines for a person. */
  readonly tell: (text: string) => void;
  /** What the person has seen; without it the dependencies are decided now. */
  readonly plan?: PackagePlan;
  /** Installs the plan also if another release is there, which is used until the new one is whole. */
  readonly replaces?: boolean;
  /** `name@version` of the packages whose install scripts the person agreed to; by default no script runs. */
  readonly scripts?: readonly string[];
}

interface PackageStoreOptions {
  /** `$SVC_HOME/mcp`. */
  readonly mcpHome: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  readonly npm?: Npm;
  readonly pip?: Pip;
  /** Of one package with its dependencies, unpacked. */
  readonly maxBytes?: number;
}

const RECORD = /^(?:npm|pypi)-[0-9a-f]{24}\.json$/;
const FILES = 'svc-files.json';
const INSTALL_MS = 600_000;
/** The registry's word about the size of an archive is a stranger's, and says nothing about what is in it. */
const MAX_BYTES = 2 * 1024 * 1024 * 1024;
/** Of the reason why a release did not start, which a server's output is part of. */
const MAX_WHY_CHARACTERS = 500;
const TOO_LARGE = 'it is larger than an install may be';

/**
 * The packages of this machine's MCP servers, in `$SVC_HOME/mcp/packages`. A package is installed once for all servers
 * that name the same release. Everything is prepared in a folder of its own; whatever ends this program at whatever moment,
 * a package is installed whole or not at all.
 */
export class PackageStore {
  readonly #options: PackageStoreOptions;
  readonly #directory: string;
  readonly #npm: PackageInstaller;
  readonly #pypi: PackageInstaller;
  readonly #installing = new Map<string, Promise<Result<InstalledPackage, string>>>();

  constructor(options: PackageStoreOptions) {
    this.#options = options;
    this.#directory = join(options.mcpHome, 'packages');
    this.#npm = npmInstaller(options.npm ?? npmOnPath(options.env));
    this.#pypi = pythonInstaller(options.pip ?? pipOnPath(options.env));
  }

  /** The installed package if it is complete; null if it has to be installed. */
  find(spec: InstallSpec): InstalledPackage | null {
    const record = this.#read(spec);
    return record === null ? null : this.#findWhole(record, spec);
  }

  /**
   * What would be installed: that of the record for a damaged package, else what the registry has. Nothing is
   * installed. The error is a sentence.
   */
  async plan(spec: InstallSpec, signal: AbortSignal): Promise<Result<PackagePlan, string>> {
    const kept = this.#read(spec);
    return this.#inFolder(spec, signal, async (folder, both) => {
      const repair = kept === null ? null : await this.#installerOf(spec).checkRepair(kept.lock, spec, folder, both);
      return kept !== null && repair?.ok === true ? this.#readPlan(kept.lock, spec) : this.#resolve(spec, folder, both);
    });
  }

  /** What the newest release would bring, whatever is installed. Nothing is installed. */
  planNewest(spec: InstallSpec, signal: AbortSignal): Promise<Result<PackagePlan, string>> {
    return this.#inFolder(spec, signal, (folder, both) => this.#resolve(spec, folder, both));
  }

  /** Installs a package, or repairs it. The error is a sentence for a person. */
  install(spec: InstallSpec, options: InstallOptions): Promise<Result<InstalledPackage, string>> {
    const key = keyOf(spec);
    const running = this.#installing.get(key);
    if (running !== undefined) return running;
    const installed = this.#install(spec, options).finally(() => this.#installing.delete(key));
    this.#installing.set(key, installed);
    return installed;
  }

  /** A newer release of a package that did not start, so that the earlier one is used. */
  findFailed(spec: InstallSpec): FailedRelease | null {
    const record = this.#read(spec);
    return record?.failed === undefined ? null : { ...record.failed, used: record.release };
  }

  /** The release in this folder has started: it is not replaced by the one before any more. */
  async keepStarted(spec: InstallSpec, folder: string): Promise<void> {
    const record = this.#read(spec);
    if (record?.previous === undefined || join(this.#directory, record.folder) !== folder) return;
    const { previous: _previous, ...kept } = record;
    await this.#write(spec, kept);
  }

  /** The release in this folder has not started: uses the one before again. Null if there is none, or it is not whole. */
  async goBack(spec: InstallSpec, folder: string, why: string): Promise<FailedRelease | null> {
    const record = this.#read(spec);
    if (record?.previous === undefined || join(this.#directory, record.folder) !== folder) return null;
    if (this.#findWhole(record.previous, spec) === null) return null;
    const failed = { release: record.release, why: why.slice(0, MAX_WHY_CHARACTERS) };
    await this.#write(spec, { ...record.previous, failed });
    return { ...failed, used: record.previous.release };
  }

  #write(spec: InstallSpec, record: PackageRecord): Promise<void> {
    return writePrivateFile(join(this.#directory, `${keyOf(spec)}.json`), `${JSON.stringify(record)}\n`);
  }

  /** Removes every package but those of existing servers. */
  async keepOnly(specs: readonly InstallSpec[]): Promise<void> {
    if (lstatSync(this.#directory, { throwIfNoEntry: false })?.isDirectory() !== true) return;
    const kept = new Set(specs.map((spec) => `${keyOf(spec)}.json`));
    const records = readdirSync(this.#directory).filter((name) => RECORD.test(name) && !kept.has(name));
    for (const name of records) await remove(join(this.#directory, name));
    await this.sweep();
  }

  /** Removes what ended programs left behind: unfinished installs, and replaced packages once no server runs. */
  async sweep(): Promise<void> {
    if (lstatSync(this.#directory, { throwIfNoEntry: false })?.isDirectory() !== true) return;
    const names = readdirSync(this.#directory);
    const inUse = serversInUse(this.#options.mcpHome);
    const isQuiet = inUse !== null && inUse.size === 0;
    const left = names.filter((name) => {
      // No server runs from an install that was not finished.
      const mayGo = isQuiet || !existsSync(join(this.#directory, name, FILES));
      return mayGo && !name.endsWith('.json') && !isOwnerAlive(name);
    });
    // Read after the owners have ended: the last thing that an install does is to write the record that names its folder.
    for (const name of left) if (!this.#isUsed(name)) await remove(join(this.#directory, name));
  }

  #isUsed(folder: string): boolean {
    const records = readdirSync(this.#directory).filter((name) => name.endsWith('.json'));
    return records.some((name) => {
      const record = this.#readFile(name);
      return record?.folder === folder || record?.previous?.folder === folder;
    });
  }

  async #install(spec: InstallSpec, options: InstallOptions): Promise<Result<InstalledPackage, string>> {
    const { signal, tell } = options;
    await this.sweep();
    const kept = options.replaces === true ? null : this.#read(spec);
    if (kept !== null) tell(`${packageText(spec)} is damaged and is installed again`);
    return this.#inFolder(spec, signal, async (folder, both) => {
      const repair = kept === null ? null : await this.#installerOf(spec).checkRepair(kept.lock, spec, folder, both);
      // Other archives than those of the record are installed only if a person has seen them.
      if (repair?.ok === false && options.plan === undefined) return repair;
      const first = repair?.ok === true ? kept : null;
      const lock = first?.lock ?? options.plan?.lock;
      const planned = lock === undefined ? await this.#resolve(spec, folder, both) : this.#readPlan(lock, spec);
      if (!planned.ok) return planned;
      const scripts = first === null ? (options.scripts ?? []) : consentedScripts(first, spec);
      const unknown = scripts.find((name) => !planned.value.withScripts.includes(name));
      if (unknown !== undefined) return err(`has no install scripts of ${unknown}`);
      tell(`installing ${packageText(spec)}: ${counted(planned.value.tarballs.length, 'package')}`);
      const record = await this.#fetch(spec, { ...planned.value, scripts }, folder, both);
      if (!record.ok) return record;
      const previous = this.#previousOf(spec, record.value);
      const written = { ...record.value, ...(previous !== undefined && { previous }) };
      await this.#write(spec, written);
      const installed = this.#findWhole(written, spec);
      return installed === null ? err('cannot be used after its install') : ok(installed);
    });
  }

  /** What a new record goes back to: the last release that started, unless it is the same one. */
  #previousOf(spec: InstallSpec, { lock }: ReleaseRecord): ReleaseRecord | undefined {
    const before = this.#read(spec);
    if (before === null) return undefined;
    const { previous, failed: _failed, ...own } = before;
    const started = previous ?? own;
    return started.lock === lock || this.#findWhole(started, spec) === null ? undefined : started;
  }

  /** The package manager decides the dependencies, and the lock that it made is checked. */
  async #resolve(spec: InstallSpec, folder: string, signal: AbortSignal): Promise<Result<PackagePlan, string>> {
    const done = await this.#installerOf(spec).resolve(spec, folder, signal);
    return done.ok ? this.#readPlan(done.value, spec) : err(`could not be resolved: ${done.error}`);
  }

  #installerOf({ kind }: InstallSpec): PackageInstaller {
    return kind === 'npm' ? this.#npm : this.#pypi;
  }

  #readPlan(lock: string, spec: InstallSpec): Result<PackagePlan, string> {
    const read = this.#installerOf(spec).read(lock, spec);
    return read.ok ? ok({ ...read.value, lock }) : read;
  }

  /** Fetches exactly what the lock file says, and runs the agreed scripts. */
  async #fetch(
    spec: InstallSpec,
    plan: PlannedScripts,
    folder: string,
    signal: AbortSignal,
  ): Promise<Result<ReleaseRecord, string>> {
    const installer = this.#installerOf(spec);
    const size = watchSize(folder, this.#options.maxBytes ?? MAX_BYTES);
    const both = AbortSignal.any([signal, size.tooLarge]);
    const done = await installer.fetch(plan.lock, spec, { folder, signal: both, scripts: plan.scripts });
    size.stop();
    if (size.tooLarge.aborted) return err(`could not be installed: ${TOO_LARGE}`);
    if (!done.ok) return err(`could not be installed: ${done.error}`);
    if (readFileSync(join(folder, installer.lockFile), 'utf8') !== plan.lock) {
      return err('has another lock file after its install');
    }
    const files = listPackageFiles(folder);
    if (!files.ok) return files;
    const bytes = files.value.reduce((sum, [, each]) => sum + Math.max(0, each), 0);
    if (bytes > (this.#options.maxBytes ?? MAX_BYTES)) return err(`could not be installed: ${TOO_LARGE}`);
    const program = installer.findProgram(folder, spec);
    if (!program.ok) return program;
    const list = JSON.stringify(files.value);
    writeFileSync(join(folder, FILES), list, { flag: 'wx' });
    return ok({
      version: 1,
      spec: installKey(spec),
      release: plan.release,
      folder: folder.slice(this.#directory.length + 1),
      program: program.value,
      files: sha256Hex(list),
      bytes,
      lock: plan.lock,
      ...(plan.scripts.length > 0 && {
        scripts: { names: [...plan.scripts], consent: scriptsConsent(spec, plan.lock, plan.scripts) },
      }),
    });
  }

  /** Gives a folder of its own to `work`, and removes it unless a record names it. */
  async #inFolder<T>(
    spec: InstallSpec,
    signal: AbortSignal,
    work: (folder: string, signal: AbortSignal) => Promise<Result<T, string>>,
  ): Promise<Result<T, string>> {
    const problem = this.#openDirectory();
    if (problem !== null) return err(problem);
    const folder = join(this.#directory, folderName(this.#options.pid));
    const both = AbortSignal.any([signal, AbortSignal.timeout(INSTALL_MS)]);
    try {
      mkdirSync(folder, { mode: 0o700 });
      const done = await work(folder, both);
      return done.ok ? done : err(`the package ${packageText(spec)} ${done.error}`);
    } catch (error) {
      return err(`the package ${packageText(spec)} could not be installed in ${this.#directory}: ${whyOf(error)}`);
    } finally {
      if (this.#read(spec)?.folder !== folder.slice(this.#directory.length + 1)) await remove(folder);
    }
  }

  /** Another user of this machine must not be able to put code there. */
  #openDirectory(): string | null {
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      const found = lstatSync(this.#directory);
      const isOwn = process.getuid === undefined || found.uid === process.getuid();
      if (found.isDirectory() && isOwn && (found.mode & 0o022) === 0) return null;
      return `${this.#directory} must be a directory that only you can write: chmod 700 it, or move it away`;
    } catch (error) {
      return `${this.#directory} cannot be created: ${whyOf(error)}`;
    }
  }

  #findWhole(record: PackageRecord, spec: InstallSpec): InstalledPackage | null {
    const folder = join(this.#directory, record.folder);
    const installer = this.#installerOf(spec);
    const plan = this.#readPlan(record.lock, spec);
    const start = installer.startOf(folder, record.program, record.lock, spec);
    if (!plan.ok || start === null || this.#openDirectory() !== null) return null;
    try {
      const list = readFileSync(join(folder, FILES), 'utf8');
      if (sha256Hex(list) !== record.files) return null;
      if (readFileSync(join(folder, installer.lockFile), 'utf8') !== record.lock) return null;
      if (!hasAllFiles(folder, fileList.parse(parseJson(list)))) return null;
    } catch {
      return null;
    }
    return {
      release: record.release,
      folder,
      start,
      packages: plan.value.tarballs.length,
      bytes: record.bytes,
      withScripts: plan.value.withScripts,
      ranScripts: consentedScripts(record, spec),
      previousRelease: record.previous?.release ?? null,
    };
  }

  #read(spec: InstallSpec): PackageRecord | null {
    const record = this.#readFile(`${keyOf(spec)}.json`);
    return record?.spec === installKey(spec) ? record : null;
  }

  #readFile(name: string): PackageRecord | null {
    const text = readPrivateFile(join(this.#directory, name));
    const parsed = packageRecord.safeParse(text.ok && text.value !== null ? parseJson(text.value) : undefined);
    return parsed.success ? parsed.data : null;
  }
}

interface PlannedScripts extends PackagePlan {
  readonly scripts: readonly string[];
}

/** SHA-256 of what a person agrees to: these scripts, of archives with exactly the hashes that the lock file has. */
function scriptsConsent(spec: InstallSpec, lock: string, names: readonly string[]): string {
  return sha256Hex(canonicalJson({ package: installKey(spec), lock: sha256Hex(lock), scripts: names }));
}

/** The scripts of a record that the person agreed to; none if the agreement was to another lock file or other scripts. */
function consentedScripts({ scripts, lock }: ReleaseRecord, spec: InstallSpec): readonly string[] {
  if (scripts === undefined) return [];
  return scripts.consent === scriptsConsent(spec, lock, scripts.names) ? scripts.names : [];
}

function keyOf(spec: InstallSpec): string {
  return `${spec.kind}-${sha256Hex(installKey(spec)).slice(0, 24)}`;
}

/** The name says which process prepares the folder, so that it is removed only after that process has ended. */
function folderName(pid: number): string {
  return `${ownerText(identify(pid) ?? { pid, started: null })}.${randomBytes(8).toString('hex')}`;
}

function ownerText({ pid, started }: ProcessIdentity): string {
  return `${pid}.${(started ?? '').replaceAll(/[^\w]/g, '-')}`;
}

function isOwnerAlive(name: string): boolean {
  const [pid = ''] = name.split('.');
  const found = /^\d{1,10}$/.test(pid) ? identify(Number(pid)) : null;
  return found !== null && name.startsWith(`${ownerText(found)}.`);
}

/** What cannot be removed now is removed by a later sweep. */
async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => undefined);
}

function whyOf(error: unknown): string {
  const code = errorCode(error);
  if (code === 'ENOSPC') return 'there is no space left on the disk (ENOSPC)';
  return code || 'unknown error';
}
