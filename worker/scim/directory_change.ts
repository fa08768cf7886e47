import { err, type Result } from '../../shared/model/result.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import { type AuditDraft, type Change, commit } from '../kernel/commit.ts';
import { nowText, type ServiceContext } from '../kernel/service_context.ts';
import { findScimToken, whileScimToken } from '../store/people/scim_tokens.ts';
import { directoryGone } from './scim_refusals.ts';
import type { Directory } from './scim_tokens.ts';

/**
 * Commits a change that a directory asks for, while its token is valid: a revocation cannot be overtaken by a call that
 * was authenticated before. Its events name the token.
 */
export function commitDirectory<T>(
  context: ServiceContext,
  { tokenId, enterpriseId }: Directory,
  decide: () => Promise<Result<Change<T>, ApiError>>,
): Promise<Result<T, ApiError>> {
  return commit(context, { enterpriseId, writer: enterpriseId }, async () => {
    const token = await findScimToken(context.database, enterpriseId, tokenId);
    if (token === null || token.revokedAt !== null || token.expiresAt <= nowText(context)) return err(directoryGone());
    const change = await decide();
    if (!change.ok || change.value.statements.length === 0) return change;
    const { statements, events } = change.value;
    const named = events.map((event) =>
      'id' in event ? event : { ...event, data: { ...event.data, 'svc.control.scim_token': tokenId } },
    );
    return {
      ok: true,
      value: { ...change.value, statements: [...whileScimToken(tokenId), ...statements], events: named },
    };
  });
}

/** An event of a change that a directory makes. */
export function directoryEvent(type: AuditDraft['type'], resource: string, user?: string): AuditDraft {
  const data = { 'svc.control.resource': resource, ...(user !== undefined && { 'svc.control.user': user }) };
  return { type, actor: null, data };
}
