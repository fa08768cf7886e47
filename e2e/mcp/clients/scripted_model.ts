import type { ModelReply } from '../../agents/replies.ts';
import type { ModelRequest, OfferedTool } from '../../agents/services.ts';

const WAIT = 'WaitForMcpServers';

/** A request of a client's model that offers the gateway's tools, until it is answered. */
export interface Turn {
  readonly tools: readonly OfferedTool[];
  readonly body: string;
  answer(reply: ModelReply): void;
  /** Answers with a call of the tool that the gateway calls `name`, by the name that the client offers it by. */
  call(name: string, args: Readonly<Record<string, unknown>>): void;
}

/** A model whose answers a test gives one by one. A request without the gateway's tools (a title, a route) is answered at once. */
export class ScriptedModel {
  readonly #waiting: Turn[] = [];
  #wake: (() => void) | null = null;
  #calls = 0;
  readonly #server: string;

  /** The tools of the gateway are known by the name of the server behind it; Kimi Code writes `__` as `_`. */
  constructor(server: string) {
    this.#server = server;
  }

  readonly answer = (request: ModelRequest): Promise<ModelReply> => {
    const tools = request.tools.filter(({ name }) => name.includes(`${this.#server}_`));
    // Codex sends its first request twice: the first wants no answer.
    if (request.body.includes('"generate":false')) return Promise.resolve('');
    if (tools.length === 0) return Promise.resolve(this.#withoutGateway(request));
    return new Promise((resolve) => {
      const call = (name: string, args: Readonly<Record<string, unknown>>): void => {
        const tool = tools.find((one) => one.name.endsWith(name));
        if (tool === undefined) throw new Error(`${name} is not offered: ${tools.map((one) => one.name).join(', ')}`);
        resolve({ id: this.#nextId(), ...tool, args });
      };
      this.#waiting.push({ tools, body: request.body, answer: resolve, call });
      this.#wake?.();
    });
  };

  /** Claude Code sends its first request while its servers still start, with a tool that waits for them. */
  #withoutGateway({ tools }: ModelRequest): ModelReply {
    const isEarly = tools.some(({ name }) => name === WAIT);
    return isEarly ? { id: this.#nextId(), name: WAIT, args: {} } : 'a note';
  }

  #nextId(): string {
    this.#calls += 1;
    return `call_${this.#calls}`;
  }

  /** The next request. Fails if the client ends before, with what it wrote. */
  async next(client: Promise<{ readonly stdout: string; readonly stderr: string }>): Promise<Turn> {
    const ended = client.then(({ stdout, stderr }): never => {
      throw new Error(`the client ended: ${stdout}${stderr}`);
    });
    // The client ends in time after the last request.
    ended.catch(() => undefined);
    for (;;) {
      const turn = this.#waiting.shift();
      if (turn !== undefined) return turn;
      await Promise.race([new Promise<void>((resolve) => (this.#wake = resolve)), ended]);
    }
  }
}
