import type { Caller } from './caller.ts';
import { findDeviceFlow, type OAuthFlowRow, postponePoll, takeFlow } from '../store/oauth_flows.ts';
import { granteeOf, nowSeconds, openFlow } from './oauth_authorisation.ts';
import { deviceGrant } from './oauth_grants.ts';
import { readHeld, storeTokens } from './oauth_tokens.ts';
import type { ServiceContext } from './service_context.ts';

/** RFC 8628 section 3.5. */
const SLOW_DOWN_SECONDS = 5;

/**
 * Redeems the code of a device that the caller is authorising for a connector, when it is time. It happens while somebody
 * looks, for a worker does nothing between its calls on every runtime.
 */
export async function advanceDevice(context: ServiceContext, caller: Caller, connectorId: string): Promise<void> {
  const now = nowSeconds(context);
  const flow = await findDeviceFlow(context.database, { connectorId, userId: caller.userId }, now);
  if (flow === null || flow.nextPollAt > now) return;
  const next = { intervalSeconds: flow.intervalSeconds, nextPollAt: now + flow.intervalSeconds };
  const isMine = (await context.database.write(postponePoll(context.database, flow, next))).ok;
  if (isMine) await redeem(context, { ...flow, ...next });
}

async function redeem(context: ServiceContext, flow: OAuthFlowRow): Promise<void> {
  const held = await readHeld(context, flow.connectorId);
  if (!held.ok) return;
  const granted = await deviceGrant(granteeOf(context, held.value), await openFlow(context, flow));
  if (granted.ok) {
    const more = takeFlow(context.database, flow.id);
    const by = { type: 'control.connector.credential_stored' as const, actor: flow.userId, more };
    const bundle = { ...held.value.bundle, accessToken: null, refreshToken: null };
    await storeTokens(context, { ...held.value, bundle }, granted.value, by);
    return;
  }
  if (granted.error.reason === 'revoked') await context.database.write(takeFlow(context.database, flow.id));
  if (granted.error.reason !== 'slow_down') return;
  const intervalSeconds = flow.intervalSeconds + SLOW_DOWN_SECONDS;
  const slower = { intervalSeconds, nextPollAt: nowSeconds(context) + intervalSeconds };
  await context.database.write(postponePoll(context.database, flow, slower));
}
