import { type DueSink, listDueSinks, listSinks } from '../../store/audit/audit_sinks.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { SINK_KIND_TABLE } from './sink_kinds.ts';
import { DELIVERY_LIMITS, runSink, sinkTimes } from './sink_delivery.ts';

/** The limits of one turn; the rest is for the next. */
const MOST_SINKS = 100;
/** How many sinks are sent to at a time: a slow receiver delays few others. */
const AT_A_TIME = 8;
/** How many of these are of one enterprise: its slow receivers delay the sinks of others little. */
const OF_ENTERPRISE = 3;

/** Sends to the sinks of all enterprises that have something to send. Several workers may do so at once. */
export async function deliverToSinks(context: ServiceContext, limits = DELIVERY_LIMITS): Promise<void> {
  const due = await listDueSinks(context.database, sinkTimes(context), MOST_SINKS);
  const busy = new Map<string, number>();
  const takeNext = (): DueSink | null => {
    const at = due.findIndex(({ enterpriseId }) => (busy.get(enterpriseId) ?? 0) < OF_ENTERPRISE);
    return at === -1 ? null : (due.splice(at, 1)[0] ?? null);
  };
  // One that finds only sinks of busy enterprises ends; those that serve these enterprises take them.
  const work = async () => {
    for (let sink = takeNext(); sink !== null && !context.stopping.aborted; sink = takeNext()) {
      const { id, enterpriseId } = sink;
      busy.set(enterpriseId, (busy.get(enterpriseId) ?? 0) + 1);
      await runSink(context, id, limits).finally(() => busy.set(enterpriseId, (busy.get(enterpriseId) ?? 1) - 1));
    }
  };
  const done = await Promise.allSettled(Array.from({ length: AT_A_TIME }, () => work()));
  const failed = done.find((each) => each.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** Tells the people of an enterprise at once of what waits for them. What fails is sent again by the timer. */
export async function sendAlerts(context: ServiceContext, enterpriseId: string): Promise<void> {
  const sinks = await listSinks(context.database, enterpriseId);
  const alerts = sinks.filter(({ kind, disabledAt }) => SINK_KIND_TABLE[kind].isAlert && disabledAt === null);
  for (const { id } of alerts) await runSink(context, id);
}
