import { eq, lt, sql } from 'drizzle-orm';
import type { Database, Statement } from './database.ts';
import { throttles } from './tables.ts';

/**
 * Counts one more in a window that begins with its first. It affects a row as long as there are fewer than `most`, and none
 * after that: of many who ask at once, as many get on as may, whichever program they ask.
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

/** Forgets the windows that are over. */
export function forgetOldThrottles(database: Database, nowSeconds: number): Statement {
  return database.read.delete(throttles).where(lt(throttles.windowEnds, nowSeconds));
}

/** Begins anew for a key. */
export function clearThrottle(database: Database, key: string): Statement {
  return database.read.delete(throttles).where(eq(throttles.key, key));
}
