import { basename, resolve } from 'node:path';
import { planLockReply, type PlanLockContent, type SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import { contentOf, parseLock } from '../../sandbox/plan/lock_file.ts';
import { freezePlan } from '../../sandbox/plan/freeze_plan.ts';
import { openEngine } from '../../sandbox/engine/open_engine.ts';
import { planTemplate } from '../../sandbox/plan/plan_template.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Column, Printer } from '../terminal/output.ts';
import { exists, lockKeyOf, planOf, planPaths, readLockFile, readPlanFile, writeWhole } from './plan_files.ts';
import { engineOf, imageCheck, imageNamed, planImage, verificationText, verifyFiles } from './plan_engine.ts';
import { commandText } from '../terminal/cell_text.ts';

/** The options of `svc plan init`. */
export interface InitOptions {
  readonly image?: string;
}

/** The tags of `svc image build` in the documentation, which most people type as they are. */
const DOCUMENTED_IMAGE = 'agent-tools:1';
const USUAL_IMAGES = ['my-agent', DOCUMENTED_IMAGE];

export async function initPlan(call: Call<InitOptions>): Promise<undefined> {
  const { plan } = planPaths(call);
  if (exists(call, plan)) {
    throw new CliError(EXIT.failed, `${plan} already exists and was not changed`, [
      'Choose another file: svc plan init FILE',
    ]);
  }
  const name = basename(resolve(call.context.workingDirectory, plan, '..')).toLowerCase();
  const usual = call.options.image === undefined ? await usualImage(call) : null;
  const image = call.options.image ?? usual ?? DOCUMENTED_IMAGE;
  if (!/^[\w./:@-]{1,255}$/.test(image)) throw new CliError(EXIT.usage, '--image is not the name of an image');
  writeWhole(call, plan, planTemplate(/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name) ? name : 'my-plan', image));
  call.print.data(
    { plan, image },
    () =>
      `wrote ${plan} for the image ${image}: edit it, then run \`svc plan freeze${plan === 'plan.yaml' ? '' : ` ${plan}`}\`\n`,
  );
  if (call.options.image === undefined && usual === null) {
    call.print.note(`svc: there is no such image on this machine yet: svc image build --base node:24 --tag ${image}`);
  }
}

/** The usual image that this machine has; null without one, or without an engine. */
async function usualImage(call: Call): Promise<string | null> {
  const runtime = await openEngine(call.context.env);
  if (runtime.ok) {
    for (const image of USUAL_IMAGES) if ((await runtime.value.inspectImage(image)).ok) return image;
  }
  return null;
}

export async function freezeCommand(call: Call): Promise<undefined> {
  const paths = planPaths(call);
  const file = readPlanFile(call, paths);
  const plan = planOf(file);
  const runtime = await engineOf(call);
  const image = await imageNamed(runtime, plan.image);
  const fit = await planImage(call, runtime, image.id);
  if (!fit.ok) throw new CliError(EXIT.failed, toPrintable(fit.error.message), fit.error.fixes.map(toPrintable));
  const sidecar = sidecarClient(call.context, call.options);
  const sign = async (content: PlanLockContent): Promise<string> =>
    (await sidecar.call('POST', '/v1/sandbox-proxy/plan-locks', planLockReply, { body: { content } })).lock;
  const frozen = await freezePlan(plan, file.bytes, image.id, { key: await lockKeyOf(call), sign });
  if (!frozen.ok) throw new CliError(EXIT.failed, `${paths.lock} was not written: ${frozen.error}`);
  writeWhole(call, paths.lock, frozen.value.text);
  const { content } = frozen.value;
  call.print.data(
    { lock: paths.lock, ...content },
    () => `wrote ${paths.lock} for ${plan.image} (${shortId(image.id)})\n`,
  );
  if (!call.print.json) printSteps(call.print, content);
}

export interface VerifyOptions {
  readonly offline?: boolean;
}

export async function verifyCommand(call: Call<VerifyOptions>): Promise<number> {
  const paths = planPaths(call);
  const verification = await verifyFiles(call);
  const image =
    verification.lock === null || call.options.offline === true
      ? null
      : await imageCheck(await engineOf(call), verification.lock.payload);
  const checks = [...verification.checks, ...(image === null ? [] : [image.check])];
  const holds = checks.every((check) => check.holds);
  call.print.data({ ok: holds, checks }, () => verificationText(checks, call.print));
  if (!holds) call.print.note(`Review the changes, then seal them with \`svc plan freeze ${paths.plan}\`.`);
  return holds ? EXIT.ok : EXIT.failed;
}

export async function showPlan(call: Call): Promise<undefined> {
  const lock = readLockFile(call, planPaths(call));
  const parsed = parseLock(new TextDecoder().decode(lock.bytes));
  if (!parsed.ok) throw new CliError(EXIT.failed, `${lock.name} cannot be read:`, parsed.error.map(toPrintable));
  const { checks } = await verifyFiles(call);
  const verified = checks.every((check) => check.holds);
  const content = contentOf(parsed.value);
  call.print.data({ ...content, verified }, () => '');
  if (!call.print.json) printSteps(call.print, content);
  if (!verified) call.print.warn('the plan or its lock was changed: `svc plan verify` lists the changes');
}

const COLUMNS: readonly Column<SealedStep>[] = [
  { title: 'STEP', cell: (step) => step.id },
  { title: 'EFFECT', cell: (step) => step.effect ?? '-' },
  { title: 'REACH', cell: (step) => (step.hosts.length === 0 ? 'no host' : step.hosts.join(' ')) },
  { title: 'TIMEOUT', cell: (step) => `${step.timeout_seconds} s` },
  { title: 'COMMAND', cell: (step) => commandText(step.command) },
];

function printSteps(print: Printer, content: PlanLockContent): void {
  print.rows(content, content.steps, COLUMNS, 'No steps.');
}

/** `sha256:0123456789ab`. */
function shortId(imageId: string): string {
  return imageId.slice(0, 'sha256:'.length + 12);
}
