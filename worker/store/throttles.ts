import { eq, lt, sql } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import { throttles } from './tables.ts';

/**
 * Counts one more attempt in a window that starts with the first. Affects a row while there are fewer than `most`, so
 * concurrent attempts cannot exceed the limit, in any number of programs.
 */
export function countAttempt(
  database: Database,
  key: string,
  { most, windowEnds, nowSeconds }: { readonly most: number; readonly windowEnds: number; readonly nowSeconds: number },
): Statement {
  const isOver = sql`${throttles.windowEnds} <= ${nowSeconds}`;
  return database.read
    .insert(throttles)
    .values({ key, count: 1, windowEnds })
    .onConflictDoUpdate({
      target: throttles.key,
      set: {
        count: sql`CASE WHEN ${isOver} THEN 1 ELSE ${throttles.count} + 1 END`,
        windowEnds: sql`CASE WHEN ${isOver} THEN ${windowEnds} ELSE ${throttles.windowEnds} END`,
      },
      setWhere: sql`${throttles.windowEnds} <= ${nowSeconds} OR ${throttles.count} < ${most}`,
    });
}

/** Deletes expired windows. */
export function forgetOldThrottles(database: Database, nowSeconds: number): Statement {
  return database.read.delete(throttles).where(lt(throttles.windowEnds, nowSeconds));
}

/** Resets the count of a key. */
export function clearThrottle(database: Database, key: string): Statement {
  return database.read.delete(throttles).where(eq(throttles.key, key));
}
