import { PassThrough, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { printerFor } from '../terminal/output.ts';
import { TestHome } from '../testing/run_cli.ts';
import { type StopKind, waitForStop } from './stop_question.ts';
import { LIVE_SESSION } from '../testing/session_samples.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

/** A terminal whose keys and signals the test sends. */
class Terminal {
  readonly stdin = new PassThrough();
  text = '';
  stopped = false;
  isInForeground = true;
  nowMs = 0;
  /** What the sidecar answers instead of its list. */
  answer: ((signal: AbortSignal) => Promise<Response>) | null = null;
  kind: StopKind | null = null;
  #stop = new AbortController();
  readonly #waiting = new Set<() => void>();

  start(items: readonly object[], isTerminal = true): Promise<void> {
    const context = this.#context(items, isTerminal);
    const call: Call = { context, args: [], options: { home: home.path }, print: printerFor(context, {}) };
    return waitForStop(call).then((kind) => {
      this.stopped = true;
      this.kind = kind;
      return undefined;
    });
  }

  signal(name: 'SIGINT' | 'SIGTERM'): void {
    this.#stop.abort(name);
  }

  async says(words: string): Promise<void> {
    while (!this.text.includes(words)) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #context(items: readonly object[], isTerminal: boolean): CliContext {
    const shown = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.text += chunk.toString('utf8');
        for (const resume of this.#waiting) resume();
        this.#waiting.clear();
        done();
      },
    });
    const output = Object.assign(shown, { isTTY: isTerminal });
    const currentStop = (): AbortSignal => this.#stop.signal;
    return {
      env: {},
      stdin: this.stdin,
      interactive: isTerminal,
      stdout: output,
      stderr: output,
      userHome: home.path,
      workingDirectory: home.path,
      root: home.path,
      version: '4.0.0',
      compileCache: home.path,
      isInForeground: () => this.isInForeground,
      fetch: (input, init) =>
        this.answer?.(new Request(input, init).signal) ?? Promise.resolve(Response.json({ items })),
      now: () => this.nowMs,
      pause: () => Promise.resolve(),
      get stop() {
        return currentStop();
      },
      renewStop: () => {
        this.#stop = new AbortController();
      },
    };
  }
}

describe('Ctrl-C in svc up', () => {
  test('stops at once if no session is live', async () => {
    const terminal = new Terminal();
    const waiting = terminal.start([{ ...LIVE_SESSION, state: 'ended' }]);
    terminal.signal('SIGINT');
    await waiting;
    expect([terminal.text, terminal.kind]).toEqual(['', 'end_sessions']);
  });

  test('with live sessions names them and asks; no keeps it running, and the next Ctrl-C asks again', async () => {
    const terminal = new Terminal();
    const waiting = terminal.start([LIVE_SESSION]);
    terminal.signal('SIGINT');
    await terminal.says('[y/N]');
    expect(terminal.text).toContain('ses_1 (work)');
    terminal.stdin.write('n\n');
    await terminal.says('still running');
    expect(terminal.stopped).toBe(false);
    terminal.text = '';
    terminal.signal('SIGINT');
    await terminal.says('[y/N]');
    terminal.stdin.write('y\n');
    await waiting;
    expect(terminal.kind).toBe('end_sessions');
  });

  test('a second time, as a key at the question, stops at once', async () => {
    const terminal = new Terminal();
    const waiting = terminal.start([LIVE_SESSION]);
    terminal.signal('SIGINT');
    await terminal.says('[y/N]');
    terminal.stdin.write('\u0003');
    await waiting;
    expect(terminal.stopped).toBe(true);
  });

  test('that npm delivers twice still asks', async () => {
    const terminal = new Terminal();
    const waiting = terminal.start([LIVE_SESSION]);
    terminal.signal('SIGINT');
    terminal.signal('SIGINT');
    await terminal.says('[y/N]');
    terminal.signal('SIGINT');
    terminal.stdin.write('n\n');
    await terminal.says('still running');
    terminal.signal('SIGTERM');
    await waiting;
    expect(terminal.stopped).toBe(true);
  });

  test('a second time, while the sidecar does not answer, stops at once', async () => {
    const terminal = new Terminal();
    const asked = Promise.withResolvers<void>();
    terminal.answer = (signal) => {
      asked.resolve();
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
      });
    };
    const waiting = terminal.start([LIVE_SESSION]);
    terminal.signal('SIGINT');
    await asked.promise;
    terminal.signal('SIGINT');
    terminal.nowMs = 499;
    terminal.signal('SIGINT');
    expect(terminal.stopped).toBe(false);
    terminal.nowMs = 500;
    terminal.signal('SIGINT');
    await waiting;
    expect(terminal.text).toBe('');
  });

  test('as a signal to a background job of the terminal stops at once, without a question', async () => {
    const terminal = new Terminal();
    terminal.isInForeground = false;
    const waiting = terminal.start([LIVE_SESSION]);
    terminal.signal('SIGINT');
    await waiting;
    expect(terminal.text).toBe('');
  });

  test.each([
    ['SIGTERM at a terminal', 'SIGTERM', true, 'keep_sessions'],
    ['SIGINT without a terminal', 'SIGINT', false, 'end_sessions'],
  ] as const)('%s stops at once', async (_title, signal, isTerminal, kind) => {
    const terminal = new Terminal();
    const waiting = terminal.start([LIVE_SESSION], isTerminal);
    terminal.signal(signal);
    await waiting;
    expect([terminal.text, terminal.kind]).toEqual(['', kind]);
  });

  test('SIGTERM during the question stops at once', async () => {
    const terminal = new Terminal();
    const waiting = terminal.start([LIVE_SESSION]);
    terminal.signal('SIGINT');
    await terminal.says('[y/N]');
    terminal.signal('SIGTERM');
    await waiting;
    expect(terminal.kind).toBe('keep_sessions');
  });
});
