import type { Mutation } from '../mutation.ts';

const SCIM = 'worker/scim/scim.test.ts';
const PATCHES = 'shared/scim/patch.test.ts';
const USERS = 'worker/scim/directory_users.ts';

/** Checks of what a directory may do by SCIM (decision 0108). */
export const SCIM_MUTATIONS: readonly Mutation[] = [
  {
    row: 'SCIM',
    holds: 'a token that has ended is refused',
    file: 'worker/scim/scim_tokens.ts',
    text: 'if (row === null || row.revokedAt !== null || row.expiresAt <= now) return null;\n  if (row.lastUsedAt',
    replacement: 'if (row === null || row.revokedAt !== null) return null;\n  if (row.lastUsedAt',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'only owners create tokens',
    file: 'worker/scim/scim_tokens.ts',
    text: "if (!mayActAs(caller, 'owner')) return err(ownersOnly());",
    replacement: "if (!mayActAs(caller, 'admin')) return err(ownersOnly());",
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'a revocation is not overtaken by a call that was authenticated before',
    file: 'worker/scim/directory_change.ts',
    text: '...whileScimToken(tokenId), ',
    replacement: '',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'addresses are of proven domains',
    file: USERS,
    text: 'if (domains.includes(email.domain)) return ok(email);',
    replacement: 'if (domains.length >= 0) return ok(email);',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'an account elsewhere is not taken over',
    file: 'worker/sign_in/sign_in_identity.ts',
    text: 'if (waiting !== null) return {',
    replacement: 'if (false && waiting !== null) return {',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'an address signs in only while nobody has',
    file: 'worker/store/people/scim_users.ts',
    text: 'isNull(users.leftAt), IS_WAITING)',
    replacement: 'isNull(users.leftAt))',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'only members who have proven the address are linked',
    file: 'worker/store/people/scim_users.ts',
    text: 'or(eq(people.verifiedEmail, address), proves)',
    replacement: 'or(eq(users.email, address), eq(people.verifiedEmail, address), proves)',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'deactivation ends every access',
    file: USERS,
    text: ', ...endAccess(database, onlyUser(member.id), now)]',
    replacement: ']',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'the directory lifts only its own suspension',
    file: USERS,
    text: 'suspendedAt !== null && suspendedAt === deactivatedAt',
    replacement: 'suspendedAt !== null',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'the last owner stays',
    file: USERS,
    text: '    if (refusal !== null) return err(refusal);\n    return ok(await planDeparture(',
    replacement: '    return ok(await planDeparture(',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'a group that a directory manages is not changed by hand',
    file: 'worker/services/sharing/groups.ts',
    text: 'return group.isManaged === 1 ? err(managedByDirectory()) : ok(group);',
    replacement: 'return ok(group);',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'only users of the directory are members of its groups',
    file: 'worker/scim/directory_groups.ts',
    text: 'const unknown = added.find((id) => !known.has(id));',
    replacement: 'const unknown = added.find((id) => known === null);',
    tests: [SCIM],
  },
  {
    row: 'SCIM',
    holds: 'a removal that names nobody removes nobody',
    file: 'shared/scim/patch.ts',
    text: "if (op === 'remove' && (value === undefined || value === null)) return ok([]);",
    replacement: "if (op === 'remove' && !(Array.isArray(value) && value.length > 0)) return ok([]);",
    tests: [PATCHES],
  },
];
