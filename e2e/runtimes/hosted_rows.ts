import type { Caller } from '../../worker/kernel/caller.ts';
import { freshId, nowText } from '../../worker/kernel/service_context.ts';
import type { InProcess } from './in_process.ts';

// Rows that a provider, a directory of people or an MCP client would have to be asked for.

/** A sign-in of a user at a provider, whose words contain `name`. Returns its id. */
export async function storeIdentity({ context }: InProcess, { userId }: Caller, name: string): Promise<string> {
  const id = freshId(context, 'idn');
  const now = nowText(context);
  await context.database.client.execute({
    sql: `INSERT INTO identities (id, provider, issuer, subject, user_id, email, email_verified, created_at, last_sign_in_at)
      VALUES (?, 'general', 'https://id.example.test', ?, ?, ?, 0, ?, ?)`,
    args: [id, name, userId, `${name}@example.test`, now, now],
  });
  return id;
}

/** The request of a user's person to join an enterprise: by default the user's own. Returns its id. */
export async function storeJoinRequest(
  { context }: InProcess,
  { userId, enterpriseId }: Caller,
  name: string,
  toEnterpriseId = enterpriseId,
): Promise<string> {
  const id = freshId(context, 'jrq');
  await context.database.client.execute({
    sql: `INSERT INTO join_requests (id, enterprise_id, person_id, email, display_name, created_at, ends_at, expires_at)
      SELECT ?, ?, person_id, ?, ?, ?, 9999999999, 9999999999 FROM users WHERE id = ?`,
    args: [id, toEnterpriseId, `${name}@example.test`, name, nowText(context), userId],
  });
  return id;
}

/** A connection of an MCP client for a user. Returns its id. */
export async function storeMcpClient({ context }: InProcess, { userId }: Caller, name: string): Promise<string> {
  const id = freshId(context, 'mcc');
  const now = nowText(context);
  await context.database.client.execute({
    sql: `INSERT INTO mcp_connections (id, user_id, provider, client_id, client_name, redirect_origin, created_at, last_used_at, expires_at)
      VALUES (?, ?, 'general', ?, ?, 'https://client.example.test', ?, ?, ?)`,
    args: [id, userId, name, name, now, now, Math.floor(context.clock.now() / 1000) + 3600],
  });
  return id;
}
