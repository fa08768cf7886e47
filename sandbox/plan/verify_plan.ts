import type { Plan } from '../../shared/model/plan.ts';
import { differences, type Difference } from '../../shared/plan/differences.ts';
import { lockDigest, planDigests, sealPlan } from '../../shared/plan/seal.ts';
import type { PlanLockContent, PlanLockFile, PlanLockPayload } from '../../shared/wire/plan/plan_lock.ts';
import { contentOf, formatLock, parseLock } from './lock_file.ts';
import { openLock, type LockKey } from './lock_key.ts';
import { parsePlan, planProblemText } from './plan_file.ts';

/** A check and its problems, as sentences; none if it passed. */
export interface PlanCheck {
  readonly subject: 'lock' | 'signature' | 'plan' | 'image';
  readonly holds: boolean;
  readonly problems: readonly string[];
}

export interface Verification {
  readonly checks: readonly PlanCheck[];
  /** The signed content and the signature; null unless every check passed. */
  readonly lock: { readonly payload: PlanLockPayload; readonly jws: string } | null;
}

/** A file and its text. */
export interface ReadFile {
  /** For messages. */
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const MAX_DIFFERENCES = 20;

/** Checks a lock and its plan against the sidecar's key, without the network. The image is checked by {@link checkImageId}. */
export async function verifyPlan(plan: ReadFile, lock: ReadFile, key: LockKey): Promise<Verification> {
  const parsed = parseLock(textOf(lock));
  if (!parsed.ok)
    return refusalOf([
      check(
        'lock',
        parsed.error.map((problem) => `${lock.name}: ${problem}`),
      ),
    ]);
  const opened = await openLock(key, parsed.value.jws);
  if (!opened.ok) return refusalOf([check('signature', [`${lock.name}: its signature ${opened.error}`])]);
  const payload = opened.value;
  const checks = [
    check('signature', []),
    check('lock', await lockProblems(lock, parsed.value, payload)),
    check('plan', await planProblems(plan, payload)),
  ];
  const holds = checks.every((one) => one.holds);
  return { checks, lock: holds ? { payload, jws: parsed.value.jws } : null };
}

/** Checks the engine's image against the sealed id. A name is not compared, because it can be moved to another image. */
export function checkImageId(sealed: PlanLockContent['image'], found: string | null, named: string | null): PlanCheck {
  if (found === sealed.id) return check('image', []);
  const gone = `the image ${sealed.id} that the plan was frozen with is not in the engine`;
  if (named === null) return check('image', [`${gone}, nor is any under the name ${sealed.name}`]);
  return check('image', [`${gone}: ${sealed.name} is ${named} now`]);
}

/** The differences between the lock's text and its signature. */
async function lockProblems(file: ReadFile, lock: PlanLockFile, payload: PlanLockPayload): Promise<readonly string[]> {
  const { sidecar_id: _signer, issued_at: _time, ...sealed } = payload;
  const changed = differences(sealed, contentOf(lock));
  if (changed.length > 0)
    return changed.slice(0, MAX_DIFFERENCES).map((one) => differenceText(file.name, one, 'was signed'));
  const digest = await lockDigest(sealed);
  if (digest !== sealed.lock_sha256) return [`${file.name}: lock_sha256 is not the digest of the lock (${digest})`];
  if (textOf(file) === formatLock(sealed, lock.jws)) return [];
  return [`${file.name}: its layout was changed by hand, though it says the same`];
}

/** The differences between the plan and its lock. */
async function planProblems(file: ReadFile, payload: PlanLockPayload): Promise<readonly string[]> {
  const parsed = parsePlan(textOf(file));
  if (!parsed.ok) return parsed.error.map((problem) => planProblemText(file.name, problem));
  const digests = await planDigests(parsed.value, file.bytes);
  const said = await findChangedMeaning(parsed.value, payload, digests);
  if (said.length > 0) return said.slice(0, MAX_DIFFERENCES).map((one) => differenceText(file.name, one, 'is frozen'));
  if (digests.plan_sha256 !== payload.plan_sha256) return [`${file.name}: what it says is not what was frozen`];
  if (digests.plan_file_sha256 === payload.plan_file_sha256) return [];
  return [`${file.name}: only its layout or comments were changed since it was frozen; what it says is the same`];
}

async function findChangedMeaning(
  plan: Plan,
  payload: PlanLockPayload,
  digests: Awaited<ReturnType<typeof planDigests>>,
): Promise<readonly Difference[]> {
  const now = await sealPlan(plan, digests, payload.image.id);
  const { name, image, steps } = payload;
  return differences({ name, image, steps }, { name: now.name, image: now.image, steps: now.steps });
}

function differenceText(file: string, { place, from, to }: Difference, was: string): string {
  if (from === undefined) return `${file}: ${place} was added: ${formatValue(to)}`;
  if (to === undefined) return `${file}: ${place} is gone: ${formatValue(from)} ${was}`;
  return `${file}: ${place} is ${formatValue(to)}, and ${formatValue(from)} ${was}`;
}

const MAX_SHOWN = 120;

function formatValue(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}...`;
}

function check(subject: PlanCheck['subject'], problems: readonly string[]): PlanCheck {
  return { subject, holds: problems.length === 0, problems };
}

function refusalOf(checks: readonly PlanCheck[]): Verification {
  return { checks, lock: null };
}

/** Invalid UTF-8 is shown as such, and fails the digests. */
function textOf(file: ReadFile): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(file.bytes);
}
