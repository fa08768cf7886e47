import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { WebSocket } from 'undici';
import { z } from 'zod';

const FIREFOX = 'firefox-esr';
const PATIENCE_MS = 600_000;

/** Why Firefox cannot be driven; null if it can. */
export function firefoxProblem(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.some((folder) => existsSync(join(folder, FIREFOX))) ? null : 'apt-get install firefox-esr';
}

export interface FirefoxOptions {
  /** Settings of the profile, such as `javascript.enabled`. */
  readonly preferences?: Readonly<Record<string, boolean | number | string>>;
}

const PREFERENCES = {
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'app.update.enabled': false,
  // Nothing but this machine: names other than those of localhost lead to a port where nothing listens.
  'network.proxy.type': 1,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.no_proxies_on': 'localhost, .localhost, 127.0.0.1',
  'ui.prefersReducedMotion': 1,
} as const;

const reply = z.looseObject({
  id: z.number().optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  error: z.string().optional(),
  message: z.string().optional(),
  result: z.unknown().optional(),
});
const evaluated = z.union([
  z.object({ type: z.literal('success'), result: z.looseObject({ value: z.unknown().optional() }) }),
  z.object({ type: z.literal('exception'), exceptionDetails: z.looseObject({ text: z.string() }) }),
]);

/** The system's Firefox with its own profile, driven by WebDriver BiDi. It reaches nothing outside of this machine. */
export class Firefox {
  readonly #process: ChildProcess;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: z.output<typeof reply>) => void>();
  /** Errors of pages, such as those of scripts and of the content security policy. */
  readonly errors: string[] = [];
  #sent = 0;

  private constructor(program: ChildProcess, profile: string, socket: WebSocket) {
    this.#process = program;
    this.#profile = profile;
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#receive(reply.parse(JSON.parse(String(data)))));
  }

  static async start({ preferences = {} }: FirefoxOptions = {}): Promise<Firefox> {
    const profile = mkdtempSync(join(tmpdir(), 'svc-firefox-'));
    const settings = Object.entries({ ...PREFERENCES, ...preferences });
    const lines = settings.map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`);
    writeFileSync(join(profile, 'user.js'), lines.join('\n'));
    const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'];
    const program = spawn(FIREFOX, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    // A run that ends early, or whose start fails, leaves no browser behind.
    process.once('exit', () => program.kill());
    const socket = new WebSocket(`${await addressOf(program)}/session`);
    await once(socket, 'open');
    const firefox = new Firefox(program, profile, socket);
    await firefox.send('session.new', { capabilities: {} });
    await firefox.send('session.subscribe', { events: ['log.entryAdded'] });
    return firefox;
  }

  #receive(message: z.output<typeof reply>): void {
    if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    else if (message.method === 'log.entryAdded') {
      const entry = z.looseObject({ level: z.string(), text: z.string().nullable() }).parse(message.params);
      if (entry.level === 'error') this.errors.push(entry.text ?? '');
    }
  }

  /** Sends a command of WebDriver BiDi; throws if it fails. */
  async send(method: string, params: object): Promise<unknown> {
    const id = (this.#sent += 1);
    const answered = new Promise<z.output<typeof reply>>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${method} was not answered`)), PATIENCE_MS);
      this.#waiting.set(id, (answer) => {
        clearTimeout(late);
        resolve(answer);
      });
    });
    this.#socket.send(JSON.stringify({ id, method, params }));
    const answer = await answered;
    this.#waiting.delete(id);
    if (answer.error !== undefined) throw new Error(`${method}: ${answer.error}: ${answer.message ?? ''}`);
    return answer.result;
  }

  /** A tab with its own cookies. */
  async open(width: number): Promise<FirefoxTab> {
    const { userContext } = z
      .object({ userContext: z.string() })
      .parse(await this.send('browser.createUserContext', {}));
    const made = await this.send('browsingContext.create', { type: 'tab', userContext });
    const { context } = z.looseObject({ context: z.string() }).parse(made);
    const tab = new FirefoxTab(this, context);
    await tab.resize(width);
    return tab;
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'exit');
    await this.send('browser.close', {});
    this.#socket.close();
    await ended;
    rmSync(this.#profile, { recursive: true, force: true });
  }
}

/** Where it listens. Its output is read on, because a full pipe would stop it. */
function addressOf(program: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    program.once('error', reject);
    program.once('exit', () => reject(new Error(`Firefox did not start: ${text}`)));
    program.stderr?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString('utf8')).slice(-10_000);
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
}

const KEYS = { Enter: '\uE007', Tab: '\uE004' } as const;

/** A tab that a person uses by mouse or by keyboard. */
export class FirefoxTab {
  readonly #firefox: Firefox;
  readonly #context: string;

  constructor(firefox: Firefox, context: string) {
    this.#firefox = firefox;
    this.#context = context;
  }

  async resize(width: number): Promise<void> {
    await this.#firefox.send('browsingContext.setViewport', {
      context: this.#context,
      viewport: { width, height: 900 },
    });
  }

  async goto(url: string): Promise<void> {
    await this.#firefox.send('browsingContext.navigate', { context: this.#context, url, wait: 'complete' });
  }

  /** The value of an expression in the page. */
  async evaluate(expression: string): Promise<unknown> {
    const target = { context: this.#context };
    const answer = await this.#firefox.send('script.evaluate', {
      expression: `JSON.stringify((${expression}) ?? null)`,
      target,
      awaitPromise: true,
    });
    const parsed = evaluated.parse(answer);
    if (parsed.type === 'exception') throw new Error(`${expression}: ${parsed.exceptionDetails.text}`);
    return JSON.parse(String(parsed.result.value));
  }

  text(): Promise<string> {
    return this.evaluate('document.querySelector("main")?.innerText').then(String);
  }

  /** Waits until an expression is true, also over a navigation. */
  async until(expression: string): Promise<void> {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const isTrue = await this.evaluate(expression).catch(() => false);
      if (isTrue === true) return;
      if (Date.now() > end) throw new Error(`never true: ${expression}; the page says: ${await this.text()}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  untilText(text: string): Promise<void> {
    return this.until(`document.querySelector("main")?.innerText.includes(${JSON.stringify(text)})`);
  }

  /** Clicks the middle of the element that an expression gives, once it is there. */
  async click(element: string): Promise<void> {
    await this.until(`(${element}) !== null && (${element}) !== undefined`);
    const place = await this.evaluate(`(() => {
      const element = ${element};
      element.scrollIntoView({ block: 'center', behavior: 'instant' });
      const { left, top, width, height } = element.getBoundingClientRect();
      return [Math.round(left + width / 2), Math.round(top + height / 2)];
    })()`);
    const [x, y] = z.tuple([z.number(), z.number()]).parse(place);
    const actions = [
      { type: 'pointerMove', x, y },
      { type: 'pointerDown', button: 0 },
      { type: 'pointerUp', button: 0 },
    ];
    await this.#perform({ type: 'pointer', id: 'mouse', actions });
  }

  /** Presses keys, or types a text. */
  async press(...keys: readonly string[]): Promise<void> {
    const actions = keys.flatMap((value) => [
      { type: 'keyDown', value },
      { type: 'keyUp', value },
    ]);
    await this.#perform({ type: 'key', id: 'keyboard', actions });
  }

  type(text: string): Promise<void> {
    return this.press(...Array.from(text));
  }

  key(name: keyof typeof KEYS): Promise<void> {
    return this.press(KEYS[name]);
  }

  /** Goes on with Tab until the focus is on what has this name. */
  async tabTo(name: string): Promise<void> {
    for (let count = 0; count < 120; count += 1) {
      await this.key('Tab');
      const focused = await this.evaluate(`(() => {
        const element = document.activeElement;
        return [element?.textContent?.trim(), element?.labels?.[0]?.textContent?.trim(), element?.value];
      })()`);
      const names = z.array(z.unknown()).parse(focused);
      if (names.some((each) => typeof each === 'string' && each.startsWith(name))) return;
    }
    throw new Error(`Tab never comes to ${name}`);
  }

  async #perform(source: object): Promise<void> {
    await this.#firefox.send('input.performActions', { context: this.#context, actions: [source] });
  }
}
