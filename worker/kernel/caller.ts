import type { Owner } from '../../shared/model/host_binding.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { hasRole, type Role } from '../../shared/model/role.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';

/** The user a call is made for. */
export interface Caller {
  readonly userId: string;
  readonly enterpriseId: string;
  readonly role: Role;
  /** The sign-in that the call came with: the hash of a browser's session token, or the id of a program's sign-in. */
  readonly signIn?: string;
}

/** Whether a caller may do what this role may: the one place that knows how roles compare. */
export function mayActAs(caller: Pick<Caller, 'role'>, needed: Role): boolean {
  return hasRole(caller.role, needed);
}

/** Whose rows a caller sees: its own and its enterprise's. */
export function visibleOwners(caller: Pick<Caller, 'userId' | 'enterpriseId'>, owner?: Owner): string[] {
  if (owner === undefined) return [caller.enterpriseId, caller.userId];
  return [ownerId(caller, owner)];
}

/** The id that rows of this owner carry. */
export function ownerId(caller: Pick<Caller, 'userId' | 'enterpriseId'>, owner: Owner): string {
  return owner === 'enterprise' ? caller.enterpriseId : caller.userId;
}

/** Which owner a row's id stands for. */
export function ownerName(id: string): Owner {
  return id.startsWith('ent_') ? 'enterprise' : 'personal';
}

/** The id to write rows under; the enterprise's rows are for admins. */
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
