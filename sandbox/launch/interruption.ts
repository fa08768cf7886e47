import { constants } from 'node:os';
import { LaunchError } from './launch_error.ts';
import type { SignalSource } from '../engine/run_child.ts';

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Defers signals that end a program, so that a launch is undone first. */
export interface Interruption {
  /** Throws if a signal has arrived. */
  readonly check: () => void;
  readonly stop: () => void;
}

export function holdBackSignals(signals: SignalSource): Interruption {
  let first: NodeJS.Signals | null = null;
  const listeners = ENDING.map((name) => [name, () => (first ??= name)] as const);
  for (const [name, listener] of listeners) signals.on(name, listener);
  return {
    check: () => {
      if (first === null) return;
      throw new LaunchError({ message: `stopped by ${first}`, fixes: [] }, 128 + constants.signals[first]);
    },
    stop: () => {
      for (const [name, listener] of listeners) signals.off(name, listener);
    },
  };
}
