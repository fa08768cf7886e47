import { isDatabaseFailure } from '../store/database.ts';
import { MASTER_KEY_CHANGED } from '../store/installation.ts';
import { WRITE_CONTENTION } from './commit.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** Whether the database failed, a write conflicted too often or the key changed, so that retrying may help. */
export function isWorthRetrying(error: unknown): boolean {
  return isDatabaseFailure(error) || errorCode(error) === WRITE_CONTENTION || isKeyChange(error);
}

/** Whether a write was refused because another master key seals now. */
export function isKeyChange(error: unknown): boolean {
  return errorCode(error) === MASTER_KEY_CHANGED;
}
