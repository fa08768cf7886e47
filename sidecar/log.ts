import type { Clock } from '../shared/model/clock.ts';
import type { Log } from '../machine/ports.ts';
import { toShownJson } from '../shared/model/shown_text.ts';

/** Operational messages as JSON lines. Of a request only reason codes and places in the code are logged. */
export function jsonLog(write: (line: string) => void, clock: Clock): Log {
  const line = (level: string, message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    write(`${toShownJson(JSON.stringify({ time: new Date(clock.now()).toISOString(), level, message, ...fields }))}\n`);
  };
  return {
    info: (message, fields) => line('info', message, fields),
    error: (message, fields) => line('error', message, fields),
  };
}
