import { createHash } from 'node:crypto';
import {
  chmodSync,
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
import { BASE_PROBE } from '../../sandbox/contract/mcp_helper_node.ts';
import type { ContainerRuntime, ImageConfig, RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import { AGENT_LABEL } from '../../sandbox/engine/docker_volumes.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { makeImageContext } from '../launch/image_context.ts';
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
}

/** The image with the agent at its pinned version: the one that is there, or a new one. */
export async function findOrBuildImage(
  call: BuildCall,
  engine: ImageTools & { readonly runtime: ImageRuntime },
  wanted: WantedImage,
): Promise<string> {
  const source = join(call.context.root, 'sandbox', 'image');
  const tag = imageTag(wanted.profile, wanted.base, engine.uid, source);
  const there = await inspect(engine.runtime, tag);
  const base = await inspect(engine.runtime, wanted.base);
  // Without its base the image is as good as it was.
  const isCurrent = there !== null && (base === null || there.labels[BASE_LABEL] === base.id);
  if (isCurrent && !wanted.rebuild) return tag;
  await build(call, engine, { ...wanted, tag, base: { name: wanted.base, config: base }, source });
  if (there !== null) await removeOld(engine, there.id, tag);
  return tag;
}

/** Says all that the image's content depends on, apart from what the base's name and the package's dependencies stand for today. */
export function imageTag(profile: AgentProfile, base: string, uid: string | null, source: string): string {
  const agent = requirePackage(profile);
  const parts = [RECIPE, agent, profile.command, profile.container?.program ?? null, base, uid, contentOf(source)];
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
  return `svc-agent/${profile.name}:${agent.version}-${digest}`;
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

interface Build extends Pick<WantedImage, 'profile'> {
  readonly tag: string;
  readonly base: { readonly name: string; readonly config: ImageConfig | null };
  readonly source: string;
}

async function build(
  call: BuildCall,
  engine: ImageTools & { readonly runtime: ImageRuntime },
  wanted: Build,
): Promise<void> {
  const { profile, tag, source } = wanted;
  const { name, version } = requirePackage(profile);
  const note = (text: string): void => call.print.note(`svc: ${text}`);
  const began = call.context.now();
  note(`making an image with ${profile.title} ${version}, once for this version and base (${wanted.base.name})`);
  const base = wanted.base.config ?? (await pull(engine, wanted.base.name, note));
  const platform = await platformOf(engine.runtime, wanted.base.name, base);
  const context = await makeImageContext(source, null);
  try {
    note(`fetching ${name} ${version} with npm; no script of a package is run`);
    await install(await trustedNpm(engine.npm, context.path, note), { profile, folder: context.path, platform });
    await appendFile(join(context.path, 'Dockerfile'), dockerfileLines(profile, base));
    note(`building ${tag}`);
    const built = await engine.docker(
      buildArguments({ tag, base: wanted.base.name, uid: engine.uid, folder: context.path }),
    );
    if (built.code !== 0) throw toolError(`the image was not built: docker build ended with ${built.code}`, built);
    note(`the image is ready after ${Math.round((call.context.now() - began) / 1000)} s`);
  } finally {
    await context.remove();
  }
}

async function pull(
  engine: ImageTools & { readonly runtime: ImageRuntime },
  base: string,
  note: (text: string) => void,
): Promise<ImageConfig> {
  note(`the engine has no image ${base}: fetching it`);
  const pulled = await engine.docker(['pull', '--quiet', '--', base]);
  if (pulled.code !== 0) {
    throw toolError(`the base image ${base} could not be fetched`, pulled, [
      'To use one that is here, with Node 22 or newer: svc launch --base IMAGE NAME',
    ]);
  }
  const found = await engine.runtime.inspectImage(base);
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
  }: { readonly profile: AgentProfile; readonly folder: string; readonly platform: Platform },
): Promise<void> {
  const { name, version } = requirePackage(profile);
  const packages = join(folder, PACKAGES);
  makeFolder(packages);
  writeFileSync(join(packages, 'package.json'), '{ "private": true }\n', { mode: 0o644 });
  const done = await npm(installArguments(`${name}@${version}`, platform), packages);
  if (done.code !== 0) throw toolError(`${name} ${version} could not be fetched: npm ended with ${done.code}`, done);
  // They name where each package came from, which may be a link with a password.
  for (const file of ['package-lock.json', 'node_modules/.package-lock.json'])
    rmSync(join(packages, file), { force: true });
  const program = programOf(profile, platform);
  if (lstatSync(join(packages, program), { throwIfNoEntry: false }) === undefined) {
    throw new CliError(EXIT.failed, `the package ${name} ${version} has no program ${program}`);
  }
  makeFolder(join(packages, 'bin'));
  symlinkSync(posix.join('..', program), join(packages, 'bin', profile.command));
}

/** The umask of the person may keep others out; the agent has to read what is root's in the image. */
function makeFolder(path: string): void {
  mkdirSync(path);
  chmodSync(path, 0o755);
}

function installArguments(wanted: string, { cpu, libc }: Platform): readonly string[] {
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
    '--prefer-offline',
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
}

function buildArguments({ tag, base, uid, folder }: BuildFacts): readonly string[] {
  return [
    'build',
    '--network=none',
    `--build-arg=BASE=${base}`,
    ...(uid === null ? [] : [`--build-arg=AGENT_UID=${uid}`]),
    `--tag=${tag}`,
    folder,
  ];
}

/** The image that had the tag before, unless the build found all its parts and made it again. The engine refuses if a container still runs it. */
async function removeOld(
  engine: ImageTools & { readonly runtime: ImageRuntime },
  id: string,
  tag: string,
): Promise<void> {
  const now = await inspect(engine.runtime, tag);
  if (now !== null && now.id !== id) await engine.docker(['image', 'rm', '--', id]);
}

function engineError({ message, fixes }: RuntimeFailure): CliError {
  return new CliError(EXIT.failed, toPrintable(message), fixes.map(toPrintable));
}
