import { programOfLogin } from '../model/connector.ts';
import type { FieldProblem } from '../model/problem.ts';
import { hasRole, type Role } from '../model/role.ts';

/** What a binding's owner must have fixed. */
interface FixedBinding {
  readonly owner: string;
  readonly host: string;
  readonly credential_ref: string;
  readonly allowed_hosts: readonly string[];
  readonly effect?: string | undefined;
}

/**
 * Why a binding cannot be shared; null if it can. Whoever chooses the host could read the secret, so the owner fixes hosts
 * by name, the scheme and the effect. A login is the person's own.
 */
export function bindingShareProblem(binding: FixedBinding): FieldProblem | null {
  if (binding.owner !== 'personal') {
    return problem('owner', 'is "enterprise": everybody in the enterprise uses this binding already');
  }
  if (binding.credential_ref.startsWith('vault://connectors/')) {
    return problem(
      'credential_ref',
      'is the login of a program, which is for its own person only: share another binding',
    );
  }
  if (binding.host.startsWith('*') && binding.allowed_hosts.length === 0) {
    return problem('host', 'is a wildcard without allowed_hosts: name the hosts there, so that they are fixed');
  }
  if (binding.effect === undefined) {
    return problem('effect', 'is missing: set it, such as "read", so that what others may do with the secret is fixed');
  }
  return null;
}

/** What a connector's owner must have. Its spec fixes the hosts and the operations. */
interface FixedConnector {
  readonly owner: string;
  readonly fqn: string;
  readonly isActive: boolean;
}

/** Why a connector cannot be shared; null if it can. */
export function connectorShareProblem({ owner, fqn, isActive }: FixedConnector): FieldProblem | null {
  if (owner !== 'personal') {
    return problem('owner', 'is "enterprise": everybody in the enterprise uses this connector already');
  }
  if (programOfLogin(fqn) !== null) {
    return problem('fqn', 'is the login of a program, which is for its own person only');
  }
  return isActive ? null : problem('credential', 'is missing: store one first, so that there is something to use');
}

/** What an MCP server's owner must have fixed. */
interface FixedServer {
  readonly owner: string;
  readonly mode: string;
  /** The credentials that it refers to. */
  readonly credentials: readonly string[];
}

/**
 * Why an MCP server cannot be shared; null if it can. A program decides by itself where it sends a credential, and would get it
 * on the machine of each receiver. The URL of a remote server is fixed by its owner.
 */
export function serverShareProblem({ owner, mode, credentials }: FixedServer): FieldProblem | null {
  if (owner !== 'personal') {
    return problem('owner', 'is "enterprise": everybody in the enterprise uses this MCP server already');
  }
  if (mode !== 'local' || credentials.length === 0) return null;
  const message = `is "local", and its program would get ${credentials.join(', ')} on the machine of each receiver: share a remote server, or let each of them add their own`;
  return problem('mode', message);
}

function problem(field: string, message: string): FieldProblem {
  return { field, message };
}

/** A person who acts in an enterprise. */
interface Actor {
  readonly userId: string;
  readonly role: Role;
}

/** Everybody in the enterprise sees its groups, to know with whom something is shared; admins change them. */
export function mayManageGroups({ role }: Pick<Actor, 'role'>): boolean {
  return hasRole(role, 'admin');
}

/** Whoever shared something ends the share, and so does an admin. */
export function mayEndShare(actor: Actor, share: { readonly ownerId: string }): boolean {
  return share.ownerId === actor.userId || hasRole(actor.role, 'admin');
}

/** What a share is to somebody that it is with. `paused`: whoever shares is suspended, or changed the binding to one that cannot be shared. */
export type ShareStanding = 'in_force' | 'to_accept' | 'paused';

/** A share as one person has it. */
export interface HeldShare {
  /** Whoever shares, as of now. */
  readonly sharer: { readonly role: Role; readonly suspendedAt: string | null };
  /** Why what is shared could not be shared now; null if it could: its owner may have changed it since. */
  readonly problem: FieldProblem | null;
  /** The state of what is shared; it changes with every change of it. */
  readonly revision: string;
  /** The revision that the person accepted; null if none. */
  readonly acceptedRevision: string | null;
}

/**
 * What is shared sends the requests of its users under an account that somebody else chose, who then could read what they
 * send. Admins may decide that for everybody, as they do by what the enterprise owns. Of a colleague, each person accepts
 * it first, in exactly this revision. A change of it cannot get around the checks of sharing: otherwise a login, with its
 * refresh token, could take the place of the secret.
 */
export function standingOf({ sharer, problem: found, revision, acceptedRevision }: HeldShare): ShareStanding {
  if (sharer.suspendedAt !== null || found !== null) return 'paused';
  return !needsAcceptance(sharer) || acceptedRevision === revision ? 'in_force' : 'to_accept';
}

/** Whether what somebody shares is used only by those who accept it. */
export function needsAcceptance({ role }: Pick<Actor, 'role'>): boolean {
  return !hasRole(role, 'admin');
}

/** What tells bindings of one pattern apart. */
export interface BindingSlot {
  readonly id: string;
  readonly host: string;
  /** Empty without one. */
  readonly sentinel: string;
}

/**
 * The shared bindings that a person's requests use, beside those of the person and of the enterprise (`own`). A personal
 * binding replaces all others of its pattern. Where a request could not tell two apart, the enterprise's wins, then the one
 * that was shared first.
 */
export function admitShared<T extends BindingSlot>(
  own: readonly (BindingSlot & { readonly owner: string })[],
  shared: readonly T[],
): readonly T[] {
  const replaced = new Set(own.filter(({ owner }) => owner === 'personal').map(({ host }) => host));
  const taken = new Set(own.map(slotOf));
  const ids = new Set<string>();
  return shared.filter((each) => {
    if (replaced.has(each.host) || taken.has(slotOf(each)) || ids.has(each.id)) return false;
    taken.add(slotOf(each));
    ids.add(each.id);
    return true;
  });
}

/** What tells connectors apart. */
interface ConnectorPlace {
  readonly fqn: string;
  readonly hosts: readonly string[];
}

/**
 * The shared connectors that a person's requests use, beside those of the person and of the enterprise (`own`). Connectors of one
 * host decide together which operation a request is, and could make it ambiguous; so of two on one host only the first is used:
 * one's own, the enterprise's, then the one that was shared first. The same is so for two of one name.
 */
export function admitSharedConnectors<T extends ConnectorPlace>(
  own: readonly (ConnectorPlace & { readonly isActive: boolean })[],
  shared: readonly T[],
): readonly T[] {
  const names = new Set(own.map(({ fqn }) => fqn));
  const taken = new Set(own.filter(({ isActive }) => isActive).flatMap(({ hosts }) => hosts));
  return shared.filter(({ fqn, hosts }) => {
    if (names.has(fqn) || hosts.some((host) => taken.has(host))) return false;
    names.add(fqn);
    for (const host of hosts) taken.add(host);
    return true;
  });
}

/** The same for MCP servers, which their names tell apart. */
export function admitSharedServers<T extends { readonly name: string }>(
  own: readonly string[],
  shared: readonly T[],
): readonly T[] {
  const names = new Set(own);
  return shared.filter(({ name }) => {
    if (names.has(name)) return false;
    names.add(name);
    return true;
  });
}

function slotOf({ host, sentinel }: BindingSlot): string {
  return JSON.stringify([host, sentinel]);
}
