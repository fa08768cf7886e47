import { isId } from '../../shared/wire/ids.ts';
import type { Caller } from '../kernel/caller.ts';
import { nowSeconds, type ServiceContext } from '../kernel/service_context.ts';
import { listIdentities } from '../store/enterprise_settings.ts';
import { findProviderOfSignIn } from '../store/sign_ins.ts';

/** The enterprise that vouches for identities of this provider: itself if the provider is its own, otherwise none. */
export function voucherOfProvider(provider: string): string | null {
  return isId('ent', provider) ? provider : null;
}

/**
 * The enterprise whose provider vouches for the sign-in of a call; null if the person proved themselves. Whoever runs an
 * enterprise's provider can sign in as its users. Such a sign-in must not reach what belongs to the person, because that
 * leads to the person's users in other enterprises. A personal token says nothing about its sign-in.
 */
export async function voucherOf(
  context: ServiceContext,
  caller: Pick<Caller, 'userId' | 'enterpriseId' | 'signIn'>,
): Promise<string | null> {
  if (context.local?.userId === caller.userId) return null;
  const provider = await findProviderOfSignIn(context.database, caller.signIn ?? '', nowSeconds(context));
  const identities = await listIdentities(context.database, caller.userId);
  const used = identities.filter((identity) => identity.provider === provider);
  const isOwn = used.length > 0 && used.every(({ vouchedBy }) => vouchedBy === null);
  return isOwn ? null : caller.enterpriseId;
}
