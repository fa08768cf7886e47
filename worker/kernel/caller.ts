import type { AuditEventData } from '../../shared/model/audit_event.ts';
import type { Owner } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { hasRole, type Role } from '../../shared/model/role.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { Scope } from '../../shared/wire/tokens.ts';

/** The user that a call is made for. */
export interface Caller {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly role: Role;
  /** The sign-in of the call: the hash of a browser's session token, or the id of a program's sign-in. */
  readonly signIn?: string;
  /** The id of the personal token that made the call. */
  readonly personalToken?: string;
  /** The scopes of the personal token that made the call; absent for a signed-in user, who may do everything. */
  readonly scopes?: readonly Scope[];
  /** The service account whose rows an admin manages: in this call "personal" means its own. */
  readonly managed?: string;
}

type OwnerOf = Pick<Caller, 'userId' | 'enterpriseId' | 'managed'>;

/** Whose rows "personal" means in a call. */
export function personalOwner({ userId, managed }: Pick<Caller, 'userId' | 'managed'>): string {
  return managed ?? userId;
}

/** Refuses a personal token without a scope that the route does not ask of every call. */
export function requireScope({ scopes }: Caller, scope: Scope, why: string): Result<void, ApiError> {
  if (scopes === undefined || scopes.includes(scope)) return ok(undefined);
  const message = `this personal token lacks the scope ${scope}, which is needed because ${why}: create one with it at POST /v1/tokens`;
  return err(apiError('insufficient_scope', message, { scope }));
}

/** Whether the caller's role includes this one. Services compare roles only with this. */
export function mayActAs(caller: Pick<Caller, 'role'>, needed: Role): boolean {
  return hasRole(caller.role, needed);
}

/** The owners whose rows a caller sees: itself and its enterprise, or itself alone. */
export function visibleOwners(caller: OwnerOf & { readonly ownOnly?: boolean }, owner?: Owner): string[] {
  if (caller.ownOnly === true) return owner === 'enterprise' ? [] : [personalOwner(caller)];
  if (owner === undefined) return [caller.enterpriseId, personalOwner(caller)];
  return [ownerId(caller, owner)];
}

/** The owner id of rows with this owner. */
export function ownerId(caller: OwnerOf, owner: Owner): string {
  return owner === 'enterprise' ? caller.enterpriseId : personalOwner(caller);
}

/** For the audit log: the service account whose rows an admin changes. */
export function managedData({ managed }: Pick<Caller, 'managed'>): AuditEventData {
  return managed === undefined ? {} : { 'svc.control.service_account': managed };
}

/** The owner that a row's owner id stands for. */
export function ownerName(id: string): Owner {
  return id.startsWith('ent_') ? 'enterprise' : 'personal';
}

/** The owner id to write rows with. Writing the enterprise's rows requires the role admin. */
export function writableOwner(caller: Caller, owner: Owner): Result<string, ApiError> {
  if (owner === 'enterprise' && !mayActAs(caller, 'admin')) {
    return err(
      apiError(
        'admin_required',
        'changing what the enterprise owns needs the role admin: ask an admin, or use owner "personal"',
      ),
    );
  }
  return ok(ownerId(caller, owner));
}
