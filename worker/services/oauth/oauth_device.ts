import { readClocks } from '../../../shared/model/clock.ts';
import { twoClocks } from '../../kernel/clock.ts';
import type { Caller } from '../../kernel/caller.ts';
import { findDeviceFlow, type OAuthFlowRow, postponePoll, takeFlow } from '../../store/oauth_flows.ts';
import { granteeOf } from './oauth_bundle.ts';
import { resumeFlow } from './oauth_flow.ts';
import { deviceGrant } from './oauth_grants.ts';
import { storeTokens } from './oauth_tokens.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';

/** RFC 8628 section 3.5. */
const SLOW_DOWN_SECONDS = 5;

/**
 * Redeems the code of a device authorisation that the caller started, when the polling interval allows it. This happens
 * when somebody reads the connector, because not every runtime lets a worker do something between calls.
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
  const resumed = await resumeFlow(context, flow);
  if (!resumed.ok) {
    await context.database.write(takeFlow(context.database, flow.id));
    return;
  }
  const { by, held, secret } = resumed.value;
  const asked = readClocks(twoClocks(context.clock));
  const granted = await deviceGrant(granteeOf(context, held), secret);
  if (granted.ok) {
    const more = takeFlow(context.database, flow.id);
    const stored = { change: 'stored' as const, by, asked, more };
    const bundle = { ...held.bundle, accessToken: null, refreshToken: null };
    await storeTokens(context, { ...held, bundle }, granted.value, stored);
    return;
  }
  if (granted.error.reason === 'revoked') await context.database.write(takeFlow(context.database, flow.id));
  if (granted.error.reason !== 'slow_down') return;
  const intervalSeconds = flow.intervalSeconds + SLOW_DOWN_SECONDS;
  const slower = { intervalSeconds, nextPollAt: nowSeconds(context) + intervalSeconds };
  await context.database.write(postponePoll(context.database, flow, slower));
}
