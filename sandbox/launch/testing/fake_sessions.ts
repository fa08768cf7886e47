import type { SandboxSession, SandboxSessions } from '../launch_ports.ts';

const SESSION: SandboxSession = {
  sessionId: 'ses_1',
  token: 'tok',
  proxyUrl: 'http://127.0.0.1:7421',
  listener: 'namespace',
  caPemPath: '/state/sessions/ses_1/ca.pem',
  sentinels: [],
};

/** The sidecar's local API, which writes down what it was asked; the calls named in `failing` are refused. */
export class FakeSessions implements SandboxSessions {
  readonly calls: string[] = [];
  readonly #failing: ReadonlySet<string>;
  readonly #session: SandboxSession;

  constructor(failing: readonly string[] = [], session: Partial<SandboxSession> = {}) {
    this.#failing = new Set(failing);
    this.#session = { ...SESSION, ...session };
  }

  readonly create: SandboxSessions['create'] = async () => {
    await this.#call('create');
    return this.#session;
  };

  readonly recordContainer: SandboxSessions['recordContainer'] = (id, containerId) =>
    this.#call('recordContainer', id, containerId.slice(0, 4));

  readonly openListener: SandboxSessions['openListener'] = (id, pid, relay) =>
    this.#call('openListener', id, String(pid), ...(relay ? ['relay'] : []));

  readonly unseal: SandboxSessions['unseal'] = async (id, credential) => {
    await this.#call('unseal', id, credential.reference);
    return `value of ${credential.reference}`;
  };

  readonly recordDisabled: SandboxSessions['recordDisabled'] = (reason, mode) =>
    this.#call('recordDisabled', reason, mode);

  readonly end: SandboxSessions['end'] = (id) => this.#call('end', id);

  async #call(name: string, ...rest: readonly string[]): Promise<void> {
    this.calls.push([name, ...rest].join(' '));
    if (this.#failing.has(name)) throw new Error(`${name} refused`);
    await Promise.resolve();
  }
}
