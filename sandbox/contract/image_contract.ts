import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime, ImageConfig, RuntimeFailure } from '../engine/container_runtime.ts';
import { readFacts, type ImageFacts } from './image_contract_facts.ts';
import { agentUserOf, isPlainUserName, probeScript, readProbe } from './image_contract_probe.ts';
import { fixesFor, problemsOf, type ImageProblem } from './image_contract_problems.ts';

/** Why an image cannot run behind the proxy: each missing part, and a message. */
export interface ImageProblems {
  readonly reason: 'image_contract_not_met';
  readonly problems: readonly ImageProblem[];
  readonly message: string;
  readonly fixes: readonly string[];
}

/** A cache of images that meet the contract, by id. */
export interface ImageChecks {
  find(imageId: string): ImageFacts | null;
  keep(facts: ImageFacts): Promise<void>;
}

/** An empty cache, for callers that want every image probed. */
const NO_IMAGE_CHECKS: ImageChecks = { find: () => null, keep: () => Promise.resolve() };

/**
 * Checks if an image meets the contract for images behind the proxy (docs/image-contract.md). `svc image check`, `svc launch`
 * and plans all use this check. It reads the image's settings and runs one container of it without a network. An image id never
 * changes its content, so a passed check is cached; failed ones are not.
 */
export async function checkImage(
  runtime: Pick<ContainerRuntime, 'inspectImage' | 'runProbe'>,
  image: string,
  checks: ImageChecks = NO_IMAGE_CHECKS,
): Promise<Result<ImageFacts, ImageProblems | RuntimeFailure>> {
  const config = await runtime.inspectImage(image);
  if (!config.ok) return config;
  const known = checks.find(config.value.id);
  if (known !== null) return ok(known);
  const checked = await probe(runtime, image, config.value);
  if (checked.ok) await checks.keep(checked.value);
  return checked;
}

async function probe(
  runtime: Pick<ContainerRuntime, 'runProbe'>,
  image: string,
  config: ImageConfig,
): Promise<Result<ImageFacts, ImageProblems | RuntimeFailure>> {
  const agentUser = agentUserOf(config);
  if (!isPlainUserName(agentUser)) return err(refusal(image, [oddUser(agentUser)]));
  const output = await runtime.runProbe(config.id, probeScript(agentUser));
  if (!output.ok)
    return output.error.reason === 'engine_refused' ? err(refusal(image, [noShellProblem(output.error)])) : output;
  const report = readProbe(output.value);
  const problems = problemsOf(report, agentUser);
  if (problems.length > 0) return err(refusal(image, problems));
  const facts = readFacts(config.id, report);
  return facts.ok ? facts : err(refusal(image, [helpersSpeakOtherwise(facts.error)]));
}

function refusal(image: string, problems: readonly ImageProblem[]): ImageProblems {
  const list = problems.map((problem) => problem.message).join('; ');
  const message = `the image ${JSON.stringify(image)} cannot run behind the proxy: ${list}`;
  return { reason: 'image_contract_not_met', problems, message, fixes: fixesFor(image, problems) };
}

function oddUser(user: string): ImageProblem {
  const message = `the image's user ${JSON.stringify(user)} is not a plain user name`;
  return { missing: 'agent_user', message, dockerfile: ['RUN useradd --create-home agent', 'USER agent'] };
}

function noShellProblem(problem: RuntimeFailure): ImageProblem {
  const message = `/bin/sh cannot be run in it, which the helpers need (${problem.message})`;
  return { missing: 'shell', message, dockerfile: ["FROM a base that has /bin/sh, for this machine's architecture"] };
}

function helpersSpeakOtherwise(fact: string): ImageProblem {
  const message = `its helpers' check printed no valid value for "${fact}"`;
  return { missing: 'helper', message, dockerfile: [] };
}
