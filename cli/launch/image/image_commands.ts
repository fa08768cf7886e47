import { join } from 'node:path';
import { z } from 'zod';
import type { Result } from '../../../shared/model/result.ts';
import { checkImage, type ImageProblems } from '../../../sandbox/contract/image_contract.ts';
import { imageChecksIn } from '../../../sandbox/contract/image_contract_cache.ts';
import type { ImageFacts } from '../../../sandbox/contract/image_contract_facts.ts';
import type { ContainerRuntime, RuntimeFailure } from '../../../sandbox/engine/container_runtime.ts';
import { openEngine } from '../../../sandbox/engine/open_engine.ts';
import { engineProgramAt } from '../../../sandbox/engine/engine_cli.ts';
import { BASE_PROBE, mcpHelperNode, type OwnNode } from '../../../sandbox/contract/mcp_helper_node.ts';
import { handle, type Call, type CommandLine } from '../../command_line.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { homeOf } from '../../up/home.ts';
import { makeImageContext } from './image_context.ts';
import { toPrintable } from '../../../shared/model/shown_text.ts';

interface BuildOptions {
  readonly base: string;
  readonly tag: string;
  readonly agentUser?: string;
  readonly agentUid?: string;
  readonly svcMcp: boolean;
}

type ImageRuntime = Pick<ContainerRuntime, 'endpoint' | 'inspectImage' | 'runProbe'>;

/** What the commands need from an engine; tests supply a fake. */
export interface ImageEngine {
  readonly openRuntime: (env: Call['context']['env']) => Promise<Result<ImageRuntime, RuntimeFailure>>;
  readonly build: typeof buildImage;
  readonly makeContext: typeof makeImageContext;
  /** The caller's user id; null on systems without one. */
  readonly uid: number | null;
  /** The Node that runs this program, and its path. */
  readonly ownNode: OwnNode & { readonly path: string };
}

/** The engine of this machine. */
function ownEngine(): ImageEngine {
  const { platform, arch: architecture, execPath: path } = process;
  return {
    openRuntime: openEngine,
    build: buildImage,
    makeContext: makeImageContext,
    uid: process.getuid?.() ?? null,
    get ownNode() {
      return { platform, architecture, path, isGlibc: isLinkedToGlibc() };
    },
  };
}

const processReport = z.object({ header: z.object({ glibcVersionRuntime: z.string().optional() }) });

function isLinkedToGlibc(): boolean {
  const report = processReport.safeParse(process.report.getReport());
  return report.success && report.data.header.glibcVersionRuntime !== undefined;
}

/** `svc image check` and `svc image build`. */
export function addImageCommands(line: CommandLine, engine: ImageEngine = ownEngine()): void {
  const image = line.program.command('image').description('build and check images for agents');
  const check = image
    .command('check')
    .description('check if an image can run behind the proxy, and list what is missing')
    .argument('<image>', 'name or id of an image in the engine');
  handle(line, check, (call) => checkCommand(call, engine));
  const build = image
    .command('build')
    .description('build an image that can run behind the proxy from a base image; needs no network')
    .requiredOption('--base <image>', 'the base image')
    .requiredOption('--tag <name>', 'the name of the new image')
    .option('--agent-user <name>', 'the user that commands run as (default: agent)')
    .option('--agent-uid <number>', "that user's id (default: yours, so that it can write what you mount)")
    .option('--no-svc-mcp', 'leave out svc-mcp and the Node that it may need (about 120 MB)');
  handle<BuildOptions>(line, build, (call) => buildCommand(call, engine));
}

async function checkCommand(call: Call, engine: ImageEngine): Promise<number> {
  const [image = ''] = call.args;
  const runtime = await open(call, engine);
  const checked = await checkImage(runtime, image, checksOf(call));
  if (checked.ok) {
    call.print.data({ ok: true, image, ...factsJson(checked.value) }, () => factsText(image, checked.value));
    return EXIT.ok;
  }
  if (!call.print.json || !isNotMet(checked.error)) throw refusalError(checked.error);
  const { problems, message, fixes } = checked.error;
  call.print.data({ ok: false, image, problems, message, fixes }, () => '');
  return EXIT.failed;
}

async function buildCommand(call: Call<BuildOptions>, engine: ImageEngine): Promise<undefined> {
  const { base, tag } = call.options;
  const runtime = await open(call, engine);
  const code = await buildFromContext(call, engine, runtime);
  if (code !== 0) {
    throw new CliError(EXIT.failed, `the image was not built: docker build ended with ${code}`, [
      `The engine must have the base image (docker pull ${base}), and the base must have /bin/sh.`,
    ]);
  }
  const checked = await checkImage(runtime, tag, checksOf(call));
  if (!checked.ok) throw refusalError(checked.error);
  const facts = checked.value;
  call.print.data({ ok: true, image: tag, ...factsJson(facts) }, () => factsText(tag, facts));
}

async function buildFromContext(call: Call<BuildOptions>, engine: ImageEngine, runtime: ImageRuntime): Promise<number> {
  const uid = agentUid(call.options.agentUid, engine.uid);
  const node = await mcpNode(call, engine, runtime);
  const context = await engine.makeContext(join(call.context.root, 'sandbox', 'image'), node);
  try {
    return await engine.build(call, runtime.endpoint, buildArguments(call, uid, context.path));
  } finally {
    await context.remove();
  }
}

/** The Node to copy into the image for svc-mcp; null if none is needed or none would run there. */
async function mcpNode(call: Call<BuildOptions>, engine: ImageEngine, runtime: ImageRuntime): Promise<string | null> {
  const { base, svcMcp } = call.options;
  if (!svcMcp) return null;
  const config = await runtime.inspectImage(base);
  const probe = config.ok ? await runtime.runProbe(config.value.id, BASE_PROBE) : config;
  // The build reports what is wrong with the base.
  if (!config.ok || !probe.ok) return null;
  const node = mcpHelperNode(probe.value, config.value, engine.ownNode);
  if (node.kind === 'none') call.print.warn(`the image will have no svc-mcp: ${node.reason}`);
  return node.kind === 'of_svc' ? engine.ownNode.path : null;
}

function buildArguments(call: Call<BuildOptions>, uid: string | null, context: string): readonly string[] {
  const { base, tag, agentUser, svcMcp } = call.options;
  return [
    'build',
    '--network=none',
    `--build-arg=BASE=${base}`,
    ...(agentUser === undefined ? [] : [`--build-arg=AGENT_USER=${agentUser}`]),
    ...(uid === null ? [] : [`--build-arg=AGENT_UID=${uid}`]),
    ...(svcMcp ? [] : ['--build-arg=SVC_MCP=no']),
    `--tag=${tag}`,
    context,
  ];
}

/** Agents must not run as root: for the root user, the image picks a free user id. */
function agentUid(asked: string | undefined, ownUid: number | null): string | null {
  if (asked === undefined) return ownUid === null || ownUid === 0 ? null : String(ownUid);
  if (/^[1-9]\d{0,8}$/.test(asked)) return asked;
  throw new CliError(EXIT.usage, `--agent-uid is ${JSON.stringify(asked)}: give a user id above 0, such as 1000`);
}

/** Runs a build to its end and returns its exit code; its output goes to stderr. */
function buildImage(call: Call, endpoint: string, args: readonly string[]): Promise<number> {
  const { env, stderr } = call.context;
  const buildkit = env['DOCKER_BUILDKIT'];
  const add = buildkit === undefined ? {} : { DOCKER_BUILDKIT: buildkit };
  const child = engineProgramAt(env, endpoint).spawn(args, { stdio: 'pipe', add });
  child.stdin?.end();
  for (const output of [child.stdout, child.stderr]) output?.on('data', (chunk: Buffer) => stderr.write(chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? EXIT.failed));
  });
}

async function open(call: Call, engine: ImageEngine): Promise<ImageRuntime> {
  const runtime = await engine.openRuntime(call.context.env);
  if (runtime.ok) return runtime.value;
  throw refusalError(runtime.error);
}

function checksOf(call: Call): ReturnType<typeof imageChecksIn> {
  return imageChecksIn(homeOf(call.context, call.options), (text) => call.print.warn(text));
}

function isNotMet(error: ImageProblems | RuntimeFailure): error is ImageProblems {
  return error.reason === 'image_contract_not_met';
}

function refusalError(error: ImageProblems | RuntimeFailure): CliError {
  return new CliError(EXIT.failed, toPrintable(error.message), error.fixes.map(toPrintable));
}

function factsJson(facts: ImageFacts): Readonly<Record<string, unknown>> {
  return {
    image_id: facts.imageId,
    contract_version: facts.contractVersion,
    agent_user: facts.agentUser,
    uid: facts.uid,
    gid: facts.gid,
    home: facts.home,
    layout: facts.layout,
    java: facts.hasJava,
    nss: facts.hasCertutil,
    svc_mcp_node: facts.mcpNode,
    steps_refused: facts.stepsRefused,
  };
}

const NO_MCP = 'is not in the image (optional): programs can use $SVC_URL/v1/mcp with the token in SVC_TOKEN';

function factsText(image: string, facts: ImageFacts): string {
  const stores = [facts.layout, ...(facts.hasJava ? ['Java'] : []), ...(facts.hasCertutil ? ['NSS'] : [])];
  const lines = [
    `${image} can run behind the proxy (${facts.imageId.slice(0, 19)})`,
    `  user         ${facts.agentUser} (${facts.uid}:${facts.gid}), home ${facts.home}`,
    `  trust stores ${stores.join(', ')}`,
    `  svc-mcp      ${facts.mcpNode === null ? NO_MCP : `runs with Node ${facts.mcpNode}`}`,
    `  plan steps   ${facts.stepsRefused ?? 'can run in this image'}`,
  ];
  return lines.map((text) => `${toPrintable(text)}\n`).join('');
}
