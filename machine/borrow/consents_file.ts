import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../shared/model/json.ts';
import type { Problem } from '../../shared/model/problem.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { type BorrowConsent, borrowConsent } from '../../shared/borrow/borrow_calls.ts';
import { corruptStateFile, readPrivateFile, type StateFileProblemReason } from '../state_file.ts';

export const consentsFile = z.strictObject({ version: z.literal(1), consents: z.array(borrowConsent) });

/** Only the sidecar writes this file. */
export function borrowConsentsPath(home: string): string {
  return join(home, 'borrow', 'consents.json');
}

/** The consents in the file; none if there is no file. */
export function readBorrowConsents(path: string): Result<readonly BorrowConsent[], Problem<StateFileProblemReason>> {
  const text = readPrivateFile(path);
  if (!text.ok) return text;
  if (text.value === null) return ok([]);
  const parsed = consentsFile.safeParse(parseJson(text.value));
  if (parsed.success) return ok(parsed.data.consents);
  return err(
    corruptStateFile(path, 'it does not contain consents', 'Delete it and consent again: svc secret borrow add'),
  );
}

/** Differs once the file was replaced or changed. */
export function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? 'absent' : `${stats.ino}.${stats.mtimeNs}.${stats.ctimeNs}.${stats.size}.${stats.mode}`;
}
