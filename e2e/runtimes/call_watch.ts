/** One call that was sent and has no answer yet. */
interface OpenCall {
  readonly what: string;
  readonly begunMs: number;
}

/** Where a program under test says what went wrong with it. */
export interface Witness {
  readonly name: string;
  readonly output: () => string;
}

const MOST_LINES = 5;

/**
 * Knows which calls of a load wait, and how those before them were answered: a load that stands still can then say what it
 * stands still for.
 */
export class CallWatch {
  readonly #open = new Set<OpenCall>();
  readonly #answers = new Map<string, number>();

  /** Makes a call. `what` has no codes or tokens in it; `answerOf` is what the answer is counted as. */
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

  /** Does `work`, which has so long: after that it fails, with what it waited for and what the programs said. */
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

/** The last lines that tell of something else than a request that was answered. */
function lastProblems(output: string): string[] {
  const lines = output.split('\n').filter((line) => line !== '' && !line.includes('"message":"request"'));
  return lines.slice(-MOST_LINES).map((line) => `  ${line}`);
}
