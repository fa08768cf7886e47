import { ok, type Result } from '../../shared/model/result.ts';
import type { TokenPair } from '../../shared/wire/device.ts';
import type { ApiError } from '../../shared/wire/errors.ts';
import type { Caller } from '../kernel/caller.ts';
import { commit } from '../kernel/commit.ts';
import { nowSeconds } from '../kernel/service_context.ts';
import { findSwitch } from '../sign_in/switch_enterprise.ts';
import { findLiveFamily } from '../store/refresh_tokens.ts';
import { newProgramSignIn } from './program_sign_ins.ts';
import type { TokenContext } from './token_context.ts';

/**
 * Signs a program in to another enterprise of the caller's person. Its sign-in here stays until the program ends it, so
 * that it can retire its sidecar first. Refuses with the codes of {@link findSwitch}, and `public_url_missing`.
 */
export async function switchProgram(
  context: TokenContext,
  caller: Caller,
  enterpriseId: string,
): Promise<Result<TokenPair, ApiError>> {
  const found = await findSwitch(context, caller, enterpriseId);
  if (!found.ok) return found;
  return commit(context, { enterpriseId, writer: enterpriseId }, async () => {
    const again = await findSwitch(context, caller, enterpriseId);
    if (!again.ok) return again;
    const { account, provider } = again.value;
    const family = await findLiveFamily(context.database, caller.signIn ?? '', nowSeconds(context));
    const made = await newProgramSignIn(context, account, { client: family?.client ?? '', provider });
    if (!made.ok) return made;
    const { statements, tokens } = made.value;
    const data = { 'svc.control.resource': account.user.id, 'svc.control.provider': provider };
    const events = [{ type: 'control.user.signed_in' as const, actor: account.user.id, data }];
    const adds = [{ kind: 'program_sign_ins' as const, holder: account.user.id }];
    return ok({ statements, events, adds, value: tokens });
  });
}
