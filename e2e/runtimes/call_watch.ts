/** One sent call without an answer yet. */
interface OpenCall {
  readonly what: string;
  readonly begunMs: number;
}

/** A program under test, and its output. */
interface Witness {
  readonly name: string;
  readonly output: () => string;
}

const MOST_LINES = 5;

/**
 * Tracks which calls of a load wait, and how the earlier ones were answered, so that a load that hangs can say what it waits
 * for.
 */
export class CallWatch {
  readonly #open = new Set<OpenCall>();
  readonly #answers = new Map<string, number>();

  /** Makes a call. `what` contains no codes or tokens; the answer is counted under `answerOf`. */
  async watch<T>(what: string, call: () => Promise<T>, answerOf: (answer: T) => string | number): Promise<T> {
    const open = { what, begunMs: performance.now() };
    this.#open.add(open);
    try {
      const answer = await call();
      const kind = `${what}: ${answerOf(answer)}`;
      this.#answers.set(kind, (this.#answers.get(kind) ?? 0) + 1);
      return answer;
    } finally {
      this.#open.delete(open);
    }
  }

  /** Does `work` within a time limit. After that it fails, with what it waited for and the programs' output. */
  async inTime<T>(work: Promise<T>, withinMs: number, witnesses: readonly Witness[]): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error(this.#report(withinMs, witnesses))), withinMs);
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #report(withinMs: number, witnesses: readonly Witness[]): string {
    const now = performance.now();
    const waiting = Array.from(
      this.#open,
      ({ what, begunMs }) => `${what}, for ${Math.round((now - begunMs) / 1000)} s`,
    );
    const answers = Array.from(this.#answers, ([kind, times]) => `${kind} (${times})`);
    return [
      `not done within ${withinMs / 1000} s. Calls without an answer:`,
      ...waiting.map((line) => `  ${line}`),
      'Answers until then:',
      ...answers.map((line) => `  ${line}`),
      ...witnesses.flatMap(({ name, output }) => [`${name} said last:`, ...lastProblems(output())]),
    ].join('\n');
  }
}

/** The last lines that are not about an answered request. */
function lastProblems(output: string): string[] {
  const lines = output.split('\n').filter((line) => line !== '' && !line.includes('"message":"request"'));
  return lines.slice(-MOST_LINES).map((line) => `  ${line}`);
}
