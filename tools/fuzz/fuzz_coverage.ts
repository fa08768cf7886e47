import { Session } from 'node:inspector';

/** The blocks of our own code that ran, from V8's counters. */
export class BlockCoverage {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    this.take();
  }

  /** The blocks that ran since the last call. Synchronous, because the inspector session is in this process. */
  take(): ReadonlySet<string> {
    const ran = new Set<string>();
    this.#session.post('Profiler.takePreciseCoverage', (_error, taken) => {
      for (const script of taken.result) {
        if (!/\/(?:shared|sidecar\/connector)\//.test(script.url)) continue;
        for (const { ranges } of script.functions) {
          for (const { startOffset, endOffset, count } of ranges) {
            if (count > 0) ran.add(`${script.scriptId}:${startOffset}:${endOffset}`);
          }
        }
      }
    });
    return ran;
  }

  stop(): void {
    this.#session.disconnect();
  }
}
