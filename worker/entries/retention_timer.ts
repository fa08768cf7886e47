import { clearInterval, setInterval } from 'node:timers';
import type { LogEntry } from '../routes/app_env.ts';
import type { Lifetime } from '../services/lifetime.ts';
import type { ServiceContext } from '../services/service_context.ts';
import { retainOnce } from './retain_once.ts';

/** How often a program asks for its turn; the turns themselves are an hour apart, or follow one another while there is more. */
const ASK_EVERY_MS = 60_000;

interface Retention {
  /** Undefined: all events are kept. */
  readonly days: number | undefined;
  readonly context: () => ServiceContext | Promise<ServiceContext>;
  readonly lifetime: Lifetime;
  readonly log: (entry: LogEntry) => void;
}

/** Removes audit events whose time is up, now and then, until the program is asked to stop. It does not keep it running. */
export function startRetention({ days, context, lifetime, log }: Retention): void {
  if (days === undefined) return;
  let isRunning = false;
  const ask = () => {
    if (isRunning) return;
    isRunning = true;
    lifetime.defer('removing old audit events', async () => {
      try {
        await retainOnce(await context(), days, log);
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
