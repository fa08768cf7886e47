import type { PushSubscriptionRow } from '../../store/people/push_subscriptions.ts';

const AT_A_TIME = 8;
/** The addresses of one user that do not answer leave room for everybody else's. */
const AT_A_TIME_OF_USER = 2;

type OfUser = Pick<PushSubscriptionRow, 'userId'>;

/** Runs something for each browser. The users take turns, at most two at once of each. A failure stops nothing; the first is thrown at the end. */
export async function inTurn<T extends OfUser>(
  browsers: readonly T[],
  { run, isStopped }: { readonly run: (browser: T) => Promise<void>; readonly isStopped: () => boolean },
): Promise<void> {
  const waiting = orderByTurn(browsers);
  const running = new Map<string, number>();
  const failures: unknown[] = [];
  const isFree = ({ userId }: T) => (running.get(userId) ?? 0) < AT_A_TIME_OF_USER;
  const take = (): T | undefined => {
    const at = waiting.findIndex(isFree);
    return at === -1 || isStopped() ? undefined : waiting.splice(at, 1)[0];
  };
  // What waits when a worker ends is of users with others at work, which take it.
  const work = async () => {
    for (let next = take(); next !== undefined; next = take()) {
      const { userId } = next;
      running.set(userId, (running.get(userId) ?? 0) + 1);
      await run(next).catch((error: unknown) => failures.push(error));
      running.set(userId, (running.get(userId) ?? 0) - 1);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, () => work()));
  if (failures.length > 0) throw failures[0];
}

/** The first browser of each user, then the second of each, and so on. */
function orderByTurn<T extends OfUser>(browsers: readonly T[]): T[] {
  const seen = new Map<string, number>();
  const turns = browsers.map((browser) => {
    const turn = seen.get(browser.userId) ?? 0;
    seen.set(browser.userId, turn + 1);
    return { browser, turn };
  });
  return turns.toSorted((a, b) => a.turn - b.turn).map(({ browser }) => browser);
}
