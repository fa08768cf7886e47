import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { z } from 'zod';
import { sha256Hex } from '../../machine/sha256.ts';
import { parseJson } from '../../shared/model/json.ts';
import { BASE_PROBE } from '../../sandbox/contract/mcp_helper_node.ts';
import type { ContainerRuntime, ImageConfig, RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import { homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { AGENT_LABEL } from '../../sandbox/engine/home_volumes.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { makeImageContext } from '../launch/image/image_context.ts';
import { replaceFile } from '../up/replace_file.ts';
import { toolError, trustedNpm, type Ended, type Npm } from './agent_npm.ts';
import { packageOf, type AgentProfile } from './agent_profile.ts';

/** The image that an agent's image is made from unless a person names another one. */
export const DEFAULT_AGENT_BASE = 'node:24';
/** The newest that an agent of the catalog asks for. */
const OLDEST_NODE_MAJOR = 22;
/** Changes with what is done here, so that images of an older svc are not used. */
const RECIPE = 1;
const BASE_LABEL = 'svc.base';
/**
 * Where the packages are in the image. Only root can write there. The agent's command is found there too, and not in a folder of
 * the system: the start as root looks for its own programs in those, and a package must not take the place of one.
 */
const PLACE = '/opt/svc-agent';
/** In the build folder. */
const PACKAGES = 'agent';
/** A registry that does not answer fails after this, tried twice. A slow one that sends needs most of it for a large program. */
const FETCH_TIMEOUT_MS = 300_000;

/** What a build takes from its command. */
interface BuildCall {
  readonly context: Pick<CliContext, 'root' | 'now'>;
  readonly print: Pick<Call['print'], 'note'>;
}

/** The programs of this machine that make an image; tests supply others. */
export interface ImageTools {
  /** Runs `docker` on the engine; resolves with its exit code and its output. */
  readonly docker: (args: readonly string[]) => Promise<Ended>;
  readonly npm: Npm;
  /** The caller's user id; null on systems without one, and for root. */
  readonly uid: string | null;
}

type ImageRuntime = Pick<ContainerRuntime, 'inspectImage' | 'runProbe'>;

interface WantedImage {
  readonly profile: AgentProfile;
  readonly base: string;
  readonly rebuild: boolean;
  /** Where svc keeps the ids of the images that it made. */
  readonly stateHome: string;
}

/** An image that svc made. */
export interface AgentImage {
  readonly tag: string;
  readonly id: string;
}

/** The image with the agent at its pinned version: the one that svc has made, or a new one. Anybody may give an image its tag and labels. */
export async function findOrBuildImage(
  call: BuildCall,
  engine: ImageTools & { readonly runtime: ImageRuntime },
  wanted: WantedImage,
): Promise<AgentImage> {
  const { stateHome } = wanted;
  const source = join(call.context.root, 'sandbox', 'image');
  const tag = imageTag(wanted.profile, { base: wanted.base, uid: engine.uid, stateHome }, source);
  const there = await inspect(engine.runtime, tag);
  const base = await inspect(engine.runtime, wanted.base);
  const isOurs = there !== null && readMadeImages(stateHome)[tag] === there.id;
  // Without its base the image is as good as it was.
  const isCurrent = isOurs && (base === null || there.labels[BASE_LABEL] === base.id);
  if (isCurrent && !wanted.rebuild) return { tag, id: there.id };
  await build(call, engine, { ...wanted, tag, base: { name: wanted.base, config: base }, source });
  const made = await inspect(engine.runtime, tag);
  if (made === null) throw new CliError(EXIT.failed, `the image ${tag} was built, and is not there`);
  await recordMadeImage(stateHome, { tag, id: made.id }, call.context.now());
  // A build that found all its parts makes the same image again. The engine refuses if a container still runs the old one.
  if (there !== null && there.id !== made.id) await engine.docker(['image', 'rm', '--', there.id]);
  return { tag, id: made.id };
}

/** What an image is for, besides its agent. */
interface ImagePlace {
  readonly base: string;
  readonly uid: string | null;
  /** No image is shared with another state directory, whose packages may come from another registry. */
  readonly stateHome: string;
}

/** Says all that the image's content depends on, apart from what the base's name and the package's dependencies stand for today. */
export function imageTag(profile: AgentProfile, { base, uid, stateHome }: ImagePlace, source: string): string {
  const agent = requirePackage(profile);
  const { command, container } = profile;
  const whose = [base, uid, homeLabelOf(stateHome)];
  const parts = [RECIPE, agent, command, container?.program ?? null, container?.integrity ?? null, ...whose];
  const digest = sha256Hex(JSON.stringify([...parts, contentOf(source)])).slice(0, 16);
  return `svc-agent/${profile.name}:${agent.version}-${digest}`;
}

const madeImages = z.object({ images: z.record(z.string(), z.string()) });

/** The ids of images by their tags. */
function readMadeImages(stateHome: string): Readonly<Record<string, string>> {
  const file = madeImagesFile(stateHome);
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return madeImages.safeParse(parseJson(text)).data?.images ?? {};
}

async function recordMadeImage(stateHome: string, { tag, id }: AgentImage, now: number): Promise<void> {
  const images = { ...readMadeImages(stateHome), [tag]: id };
  await replaceFile(madeImagesFile(stateHome), `${JSON.stringify({ images })}\n`, now, { keepsBackup: false });
}

function madeImagesFile(stateHome: string): string {
  return join(stateHome, 'agent_images.json');
}

function requirePackage(profile: AgentProfile): { readonly name: string; readonly version: string } {
  const found = packageOf(profile);
  if (found !== null) return found;
  throw new CliError(EXIT.usage, `svc does not know how to put ${profile.title} into an image`, [
    `With an image of your own that has it: svc launch --image IMAGE ${profile.name}`,
  ]);
}

/** The names and contents of the programs that make an image one for agents. */
function contentOf(folder: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const path = join(folder, name);
    if (lstatSync(path).isFile() && !name.endsWith('.test.ts')) hash.update(`${name}\0`).update(readFileSync(path));
  }
  return hash.digest('hex');
}

/** Null if there is no such image. */
async function inspect(runtime: ImageRuntime, image: string): Promise<ImageConfig | null> {
  const found = await runtime.inspectImage(image);
  if (found.ok) return found.value;
  if (found.error.reason === 'image_missing') return null;
  throw engineError(found.error);
}

interface Build extends Pick<WantedImage, 'profile' | 'rebuild'> {
  readonly tag: string;
  readonly base: { readonly name: string; readonly config: ImageConfig | null };
  readonly source: string;
}

async function build(
  call: BuildCall,
  engine: ImageTools & { readonly runtime: ImageRuntime },
  wanted: Build,
): Promise<void> {
  const { profile, tag, source, rebuild } = wanted;
  const { name, version } = requirePackage(profile);
  const note = (text: string): void => call.print.note(`svc: ${text}`);
  const began = call.context.now();
  note(`making an image with ${profile.title} ${version}, once for this version and base (${wanted.base.name})`);
  const base = await findBase(engine, wanted, note);
  const platform = await platformOf(engine.runtime, wanted.base.name, base);
  const context = await makeImageContext(source, null);
  try {
    note(`fetching ${name} ${version} with npm; no script of a package is run`);
    const npm = await trustedNpm(engine.npm, context.path, note);
    await install(npm, { profile, folder: context.path, platform, isFresh: rebuild });
    await appendFile(join(context.path, 'Dockerfile'), dockerfileLines(profile, base));
    note(`building ${tag}`);
    const built = await engine.docker(
      buildArguments({ tag, base: wanted.base.name, uid: engine.uid, folder: context.path, isFresh: rebuild }),
    );
    if (built.code !== 0) throw toolError(`the image was not built: docker build ended with ${built.code}`, built);
    note(`the image is ready after ${Math.round((call.context.now() - began) / 1000)} s`);
  } finally {
    await context.remove();
  }
}

type BaseEngine = ImageTools & { readonly runtime: ImageRuntime };

/** The base that is here; or the newest of its name, if there is none here or it is all to be made anew. */
async function findBase(
  engine: BaseEngine,
  { base: { name, config }, rebuild }: Build,
  note: (text: string) => void,
): Promise<ImageConfig> {
  if (config !== null && !rebuild) return config;
  note(config === null ? `the engine has no image ${name}: fetching it` : `fetching the newest ${name}`);
  const pulled = await engine.docker(['pull', '--quiet', '--', name]);
  if (pulled.code !== 0) {
    if (config === null) {
      throw toolError(`the base image ${name} could not be fetched`, pulled, [
        'To use one that is here, with Node 22 or newer: svc launch --base IMAGE NAME',
      ]);
    }
    note(`it could not be fetched: the one that is here is used`);
    return config;
  }
  const found = await engine.runtime.inspectImage(name);
  if (found.ok) return found.value;
  throw engineError(found.error);
}

interface Platform {
  readonly cpu: string;
  readonly libc: 'glibc' | 'musl';
}

const CPUS: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** What packages are fetched for. Throws if agents from npm do not run in the base. */
async function platformOf(runtime: ImageRuntime, name: string, base: ImageConfig): Promise<Platform> {
  const cpu = CPUS[base.architecture];
  if (cpu === undefined) throw new CliError(EXIT.failed, `the base image ${name} is for ${base.architecture}`);
  const probe = await runtime.runProbe(base.id, BASE_PROBE);
  if (!probe.ok) throw engineError(probe.error);
  const lines = probe.value.split('\n');
  const major = /^node=v(\d{1,3})\./.exec(lines.find((line) => line.startsWith('node=')) ?? '')?.[1];
  if (Number(major ?? 0) < OLDEST_NODE_MAJOR) {
    const has = major === undefined ? 'no Node' : `Node ${major}`;
    throw new CliError(
      EXIT.failed,
      `the base image ${name} has ${has}, and agents need Node ${OLDEST_NODE_MAJOR} or newer`,
      [`Choose another: svc launch --base ${DEFAULT_AGENT_BASE} NAME`],
    );
  }
  return { cpu, libc: lines.includes('libc=glibc') ? 'glibc' : 'musl' };
}

/**
 * Fetches the packages with the person's npm: its registry, cache, roots and proxies. The folder has no project's settings.
 * There is no `--prefix`, because npm would look for its global settings there.
 */
async function install(
  npm: Npm,
  {
    profile,
    folder,
    platform,
    isFresh,
  }: {
    readonly profile: AgentProfile;
    readonly folder: string;
    readonly platform: Platform;
    readonly isFresh: boolean;
  },
): Promise<void> {
  const { name, version } = requirePackage(profile);
  const packages = join(folder, PACKAGES);
  makeFolder(packages);
  writeFileSync(join(packages, 'package.json'), '{ "private": true }\n', { mode: 0o644 });
  const done = await npm(installArguments(`${name}@${version}`, platform, isFresh), packages);
  if (done.code !== 0) throw toolError(`${name} ${version} could not be fetched: npm ended with ${done.code}`, done);
  checkIntegrity(profile, packages);
  // They name where each package came from, which may be a link with a password.
  for (const file of ['package-lock.json', 'node_modules/.package-lock.json'])
    rmSync(join(packages, file), { force: true });
  const program = programOf(profile, platform);
  if (lstatSync(join(packages, program), { throwIfNoEntry: false }) === undefined) {
    throw new CliError(EXIT.failed, `the package ${name} ${version} has no program ${program}`);
  }
  clearModes(packages);
  makeFolder(join(packages, 'bin'));
  symlinkSync(posix.join('..', program), join(packages, 'bin', profile.command));
}

const npmLock = z.object({ packages: z.record(z.string(), z.looseObject({ integrity: z.string().optional() })) });

/** Another registry, a mirror or a cache could have other packages of this name and version. npm has compared them with its own list. */
function checkIntegrity({ container }: AgentProfile, packages: string): void {
  const expected = Object.entries(container?.integrity ?? {});
  if (expected.length === 0) return;
  const file = join(packages, 'node_modules', '.package-lock.json');
  const listed =
    npmLock.safeParse(existsSync(file) ? parseJson(readFileSync(file, 'utf8')) : null).data?.packages ?? {};
  for (const [name, wanted] of expected) {
    const place = posix.join('node_modules', name);
    const found = Object.entries(listed).filter(([path]) => path === place || path.endsWith(`/${place}`));
    // Packages for other machines are not fetched.
    const isMissing = found.length === 0 && name === container?.package;
    if (isMissing || found.some(([, { integrity }]) => integrity !== wanted)) throw otherPackageError(name);
  }
}

function otherPackageError(name: string): CliError {
  return new CliError(EXIT.failed, `what the registry gives as ${name} is not the package that svc knows: not used`, [
    'Look at the registry and the cache of npm: npm config get registry; npm cache verify',
  ]);
}

/** The packages are root's in the image: no program there may run as root for the agent, or be changed by it. */
function clearModes(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode } = lstatSync(path);
    if ((mode & NOT_IN_IMAGE) !== 0) chmodSync(path, mode & 0o777 & ~NOT_IN_IMAGE);
  }
}

/** Set user id, set group id, sticky; writable for group and others. */
const NOT_IN_IMAGE = 0o7022;

/** The umask of the person may keep others out; the agent has to read what is root's in the image. */
function makeFolder(path: string): void {
  mkdirSync(path);
  chmodSync(path, 0o755);
}

function installArguments(wanted: string, { cpu, libc }: Platform, isFresh: boolean): readonly string[] {
  return [
    'install',
    wanted,
    '--global=false',
    '--ignore-scripts',
    // A package from git is prepared by a second npm, which obeys the settings in it and so starts its programs.
    '--allow-git=none',
    '--allow-directory=none',
    '--allow-file=none',
    '--bin-links=true',
    '--include=optional',
    '--omit=dev',
    ...(isFresh ? [] : ['--prefer-offline']),
    `--fetch-timeout=${FETCH_TIMEOUT_MS}`,
    '--fetch-retries=1',
    '--os=linux',
    `--cpu=${cpu}`,
    `--libc=${libc}`,
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
}

function programOf({ command, container }: AgentProfile, { cpu, libc }: Platform): string {
  const program = container?.program ?? `.bin/${command}`;
  return posix.join(
    'node_modules',
    program.replaceAll('{cpu}', cpu).replaceAll('{musl}', libc === 'musl' ? '-musl' : ''),
  );
}

/** After the lines that make the base an image for agents. */
function dockerfileLines({ name }: AgentProfile, base: ImageConfig): string {
  return [
    'USER root',
    `COPY ${PACKAGES} ${PLACE}`,
    `ENV PATH=${PLACE}/bin:\${PATH}`,
    'USER ${AGENT_USER}',
    `LABEL ${AGENT_LABEL}=${name} ${BASE_LABEL}=${base.id}`,
    '',
  ].join('\n');
}

interface BuildFacts {
  readonly tag: string;
  readonly base: string;
  readonly uid: string | null;
  readonly folder: string;
  readonly isFresh: boolean;
}

function buildArguments({ tag, base, uid, folder, isFresh }: BuildFacts): readonly string[] {
  return [
    'build',
    '--network=none',
    ...(isFresh ? ['--no-cache'] : []),
    `--build-arg=BASE=${base}`,
    ...(uid === null ? [] : [`--build-arg=AGENT_UID=${uid}`]),
    `--tag=${tag}`,
    folder,
  ];
}

function engineError({ message, fixes }: RuntimeFailure): CliError {
  return new CliError(EXIT.failed, toPrintable(message), fixes.map(toPrintable));
}
