import { isDatabaseFailure } from '../store/database.ts';
import { WRITE_CONTENTION } from './commit.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** Whether it is the database that failed, or that could not be written for all the others who write: worth another try. */
export function isWorthRetrying(error: unknown): boolean {
  return isDatabaseFailure(error) || errorCode(error) === WRITE_CONTENTION;
}
