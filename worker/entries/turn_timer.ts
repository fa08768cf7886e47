import { clearInterval, setInterval } from 'node:timers';
import type { Lifetime } from '../kernel/lifetime.ts';
import type { ProgramContext } from '../installation/program_context.ts';
import type { PeriodicTurn } from './periodic_turns.ts';

/** How often a program tries its turns; the database says whether one is due. */
const ASK_EVERY_MS = 60_000;

interface Timed {
  readonly turns: readonly PeriodicTurn[];
  readonly context: () => ProgramContext | Promise<ProgramContext>;
  readonly lifetime: Lifetime;
}

/**
 * Takes each turn periodically, one of a kind at a time, until the program is asked to stop. The timer does not keep
 * the program running.
 */
export function startTurnTimer({ turns, context, lifetime }: Timed): void {
  for (const { title: what, take } of turns) {
    let isRunning = false;
    const ask = () => {
      if (isRunning) return;
      isRunning = true;
      lifetime.defer(what, async () => {
        try {
          await take(await context());
        } finally {
          isRunning = false;
        }
      });
    };
    const timer = setInterval(ask, ASK_EVERY_MS);
    timer.unref();
    lifetime.stopping.addEventListener('abort', () => clearInterval(timer), { once: true });
    ask();
  }
}
