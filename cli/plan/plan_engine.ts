import { err, type Result } from '../../shared/model/result.ts';
import type { PlanLockContent } from '../../shared/wire/plan/plan_lock.ts';
import type { ContainerRuntime, ImageConfig, RuntimeFailure } from '../../sandbox/engine/container_runtime.ts';
import type { ImageFacts } from '../../sandbox/contract/image_contract_facts.ts';
import type { LaunchProblem } from '../../sandbox/launch/launch_error.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import { checkImageId, verifyPlan, type PlanCheck, type Verification } from '../../sandbox/plan/verify_plan.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import { checkLaunchImage } from '../launch/image/launch_image.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Printer } from '../terminal/output.ts';
import { lockKeyOf, planPaths, readLockFile, readPlanFile } from './plan_files.ts';

/** Checks plan, lock and signature: everything that needs no engine. */
export async function verifyFiles(call: Call): Promise<Verification> {
  const paths = planPaths(call);
  return verifyPlan(readPlanFile(call, paths), readLockFile(call, paths), await lockKeyOf(call));
}

/** Checks that the engine has exactly this image; returns its settings. */
export async function imageCheck(
  runtime: ContainerRuntime,
  lock: Pick<PlanLockContent, 'image'>,
): Promise<{ readonly check: PlanCheck; readonly image: ImageConfig | null }> {
  const found = await inspectImage(runtime, lock.image.id);
  const named = found === null ? await inspectImage(runtime, lock.image.name) : null;
  return { check: checkImageId(lock.image, found?.id ?? null, named?.id ?? null), image: found };
}

/** The facts of an image that can run the steps of plans, or the reasons why it cannot. */
export async function planImage(
  call: Call,
  runtime: ContainerRuntime,
  imageId: string,
): Promise<Result<ImageFacts, LaunchProblem>> {
  const home = homeOf(call.context, call.options);
  const checked = await checkLaunchImage(runtime, imageId, home, (text) => call.print.warn(text));
  if (!checked.ok || checked.value.stepsRefused === null) return checked;
  return err({ message: `the image cannot run the steps of a plan: ${checked.value.stepsRefused}`, fixes: [] });
}

async function inspectImage(runtime: ContainerRuntime, image: string): Promise<ImageConfig | null> {
  const found = await runtime.inspectImage(image);
  if (found.ok) return found.value;
  if (found.error.reason === 'image_missing') return null;
  throw engineError(found.error);
}

export async function imageNamed(runtime: ContainerRuntime, image: string): Promise<ImageConfig> {
  const found = await runtime.inspectImage(image);
  if (found.ok) return found.value;
  throw engineError(found.error);
}

export async function engineOf(call: Call): Promise<ContainerRuntime> {
  const runtime = await openEngine(call.context.env);
  if (runtime.ok) return runtime.value;
  throw engineError(runtime.error);
}

function engineError(problem: RuntimeFailure): CliError {
  return new CliError(EXIT.failed, toPrintable(problem.message), problem.fixes.map(toPrintable));
}

/** One line per check, followed by its problems. */
export function verificationText(checks: readonly PlanCheck[], print: Printer): string {
  const lines = checks.flatMap(({ subject, holds, problems }) => [
    `${holds ? print.paint('green', 'ok') : print.paint('red', 'changed')}\t${subject}`,
    ...problems.map((problem) => `\t${toPrintable(problem)}`),
  ]);
  return lines.map((line) => `${line}\n`).join('');
}
