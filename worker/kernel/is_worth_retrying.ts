import { isDatabaseFailure } from '../store/database.ts';
import { WRITE_CONTENTION } from './commit.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** Whether the database failed or a write conflicted too often, so that retrying may help. */
export function isWorthRetrying(error: unknown): boolean {
  return isDatabaseFailure(error) || errorCode(error) === WRITE_CONTENTION;
}
