import { isDatabaseFailure } from '../store/database.ts';
import { WRITE_CONTENTION } from './commit.ts';

/** Whether it is the database that failed, or that could not be written for all the others who write: worth another try. */
export function isWorthRetrying(error: unknown): boolean {
  return isDatabaseFailure(error) || (error instanceof Error && 'code' in error && error.code === WRITE_CONTENTION);
}
