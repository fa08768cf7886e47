import { placeText } from './plan_file.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { planLockFile, type PlanLockContent, type PlanLockFile } from '../../shared/wire/plan/plan_lock.ts';

/** A lock contains the content of a plan and one signature. */
export const MAX_LOCK_FILE_BYTES = 8 * 1024 * 1024;

/** Formats a lock for reading and review; the same lock always has the same text. */
export function formatLock(content: PlanLockContent, jws: string): string {
  const { version, name, plan_file_sha256, plan_sha256, image, steps, lock_sha256 } = content;
  const ordered = { version, name, plan_file_sha256, plan_sha256, image, steps, lock_sha256, jws };
  return `${JSON.stringify(ordered, null, 2)}\n`;
}

/** Reads `plan.lock`. Its content is untrusted until its signature is verified. */
export function parseLock(text: string): Result<PlanLockFile, readonly string[]> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return err(['is not JSON any more']);
  }
  const parsed = planLockFile.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  return err(parsed.error.issues.map((issue) => `${placeText(issue.path) || 'the lock'}: ${issue.message}`));
}

/** The content of a lock file, without its signature. */
export function contentOf({ jws: _jws, ...content }: PlanLockFile): PlanLockContent {
  return content;
}
