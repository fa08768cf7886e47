import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';

const CATEGORIES = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'];

/** What is read of an event of Chromium's trace. Times are in microseconds; `tdur` is the thread's processor time. */
const traceEvent = z.object({
  name: z.string(),
  ph: z.string(),
  id: z.unknown().optional(),
  pid: z.number(),
  tid: z.number(),
  ts: z.number(),
  dur: z.number().default(0),
  tdur: z.number().default(0),
  args: z.object({ data: z.object({ interactionId: z.number() }).partial().optional() }).catch({}),
});
type TraceEvent = z.infer<typeof traceEvent>;
const trace = z.object({ traceEvents: z.array(traceEvent) });

/**
 * Does something on a page. Returns for each key and click the processor time of the page's main thread, in milliseconds, until it
 * has handed over the picture that answers. What else runs on the machine changes it little.
 */
export async function measureMainThread(
  browser: Browser,
  page: Page,
  act: () => Promise<unknown>,
): Promise<readonly number[]> {
  await browser.startTracing(page, { categories: CATEGORIES });
  await act();
  const { traceEvents } = trace.parse(JSON.parse((await browser.stopTracing()).toString()));
  const inputs = traceEvents.filter(({ name, args }) => name === 'EventTiming' && (args.data?.interactionId ?? 0) > 0);
  return inputs.map((input) => workFor(input, traceEvents));
}

function workFor(input: TraceEvent, events: readonly TraceEvent[]): number {
  const own = events.filter(({ pid, tid, ts, dur }) => pid === input.pid && tid === input.tid && ts + dur >= input.ts);
  const shown = own.filter(({ name, ph, id }) => name === 'EventTiming' && ph === 'e' && id === input.id);
  const handedOver = own.filter(({ name, ts }) => name === 'Commit' && ts > input.ts);
  const end = Math.min(...[...shown, ...handedOver].map(({ ts, dur }) => ts + dur));
  const tasks = own.filter(({ name, ts }) => name === 'ThreadControllerImpl::RunTask' && ts < end);
  return tasks.reduce((sum, { tdur }) => sum + tdur, 0) / 1000;
}
