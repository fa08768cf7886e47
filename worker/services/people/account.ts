import type { EnterpriseReply, MeReply } from '../../../shared/wire/account.ts';
import { type Account, findAccount, policyVersionOf } from '../../store/accounts.ts';
import { readInstallation } from '../../store/installation.ts';
import type { Caller } from '../../kernel/caller.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';

/** The product's version. A test compares it with package.json. */
export const VERSION = '4.0.0';

/** Throws if the database does not answer. */
export async function describeHealth(context: ServiceContext) {
  await readInstallation(context.database);
  const mode = context.local === null ? ('hosted' as const) : ('local' as const);
  return { status: 'ok' as const, version: VERSION, time: nowText(context), mode };
}

export async function describeUser(context: ServiceContext, caller: Caller): Promise<MeReply> {
  const found = await account(context, caller);
  const { user } = found;
  return {
    id: user.id,
    enterprise_id: user.enterpriseId,
    email: user.email,
    display_name: user.displayName,
    role: user.role,
    policy_version: policyVersionOf(found),
    created_at: user.createdAt,
  };
}

export async function describeEnterprise(context: ServiceContext, caller: Caller): Promise<EnterpriseReply> {
  const { enterprise } = await account(context, caller);
  return { id: enterprise.id, slug: enterprise.slug, name: enterprise.name, created_at: enterprise.createdAt };
}

/** The signed-in user's name. */
export async function describePerson(context: ServiceContext, caller: Caller) {
  const { user, enterprise } = await account(context, caller);
  const { local } = context;
  return { id: user.id, name: user.displayName, role: user.role, enterprise: enterprise.name, isLocal: local !== null };
}

async function account(context: ServiceContext, caller: Caller): Promise<Account> {
  const found = await findAccount(context.database, caller.userId);
  if (found === null) throw new Error('a signed-in user is not in the database');
  return found;
}
