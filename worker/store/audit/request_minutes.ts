import { and, eq, gte, sql } from 'drizzle-orm';
import { KEPT_MINUTES, type RequestMinute } from '../../../shared/report/request_minutes.ts';
import { type Database, type Statement, statement } from '../database.ts';
import { requestMinutes } from '../tables.ts';

/** Adds to the requests of minutes, and forgets those that nothing shows any more. */
export function addRequestMinutes(
  database: Database,
  enterpriseId: string,
  minutes: readonly RequestMinute[],
  nowMinute: number,
): Statement[] {
  if (minutes.length === 0) return [];
  const rows = minutes.map(({ minute, decision, requests }) => [minute, decision, requests]);
  const { enterpriseId: enterprise, minute } = requestMinutes;
  return [
    statement(sql`INSERT INTO request_minutes (enterprise_id, minute, decision, requests)
      SELECT ${enterpriseId}, value ->> 0, value ->> 1, value ->> 2 FROM json_each(${JSON.stringify(rows)}) WHERE true
      ON CONFLICT (enterprise_id, minute, decision) DO UPDATE SET requests = requests + excluded.requests`),
    database.read
      .delete(requestMinutes)
      .where(and(eq(enterprise, enterpriseId), sql`${minute} < ${nowMinute - 2 * KEPT_MINUTES}`)),
  ];
}

/** The requests of an enterprise since a minute. */
export async function listRequestMinutes(
  database: Database,
  enterpriseId: string,
  sinceMinute: number,
): Promise<RequestMinute[]> {
  const { minute, decision, requests } = requestMinutes;
  return database.read
    .select({ minute, decision, requests })
    .from(requestMinutes)
    .where(and(eq(requestMinutes.enterpriseId, enterpriseId), gte(minute, sinceMinute)));
}
