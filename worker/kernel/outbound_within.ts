import { leftUntil, momentAt, readClocks } from '../../shared/model/clock.ts';
import { err } from '../../shared/model/result.ts';
import { type Clock, twoClocks } from './clock.ts';
import { CALL_LIMITS, type Outbound } from './outbound.ts';

/** Calls that together take at most this time: each has what the earlier ones left, and none is made when nothing is left. */
export function withinTime(
  { outbound, clock }: { readonly outbound: Outbound; readonly clock: Clock },
  totalMs: number,
): Pick<Outbound, 'call'> {
  const clocks = twoClocks(clock);
  const begun = readClocks(clocks);
  const end = momentAt(begun.wall + totalMs, begun);
  return {
    call(request) {
      const limits = request.limits ?? CALL_LIMITS;
      // One of the clocks has fractions of a millisecond, which no timer takes.
      const timeoutMs = Math.floor(Math.min(limits.timeoutMs, leftUntil(end, clocks)));
      if (timeoutMs >= 1) return outbound.call({ ...request, limits: { ...limits, timeoutMs } });
      const message = `${new URL(request.url).host} was not called: the calls before took ${totalMs / 1000} s, which is all that they may together`;
      return Promise.resolve(err({ reason: 'upstream_unreachable', message }));
    },
  };
}
