import type { Answer } from './run_cli.ts';

const TIMES = { created_at: '2026-01-01T11:59:00.000Z', updated_at: '2026-01-01T11:59:00.000Z' };
const FAILURE = {
  status: 500,
  body: { error: { code: 'internal_error', message: 'the change failed', request_id: 'req_1' } },
};

/** A control plane that keeps secrets and bindings in memory, for commands that make several calls. */
export class FakeVault {
  readonly values: Record<string, string> = {};
  readonly versions = new Map<string, number>();
  readonly bindings: Record<string, unknown>[] = [];
  /** The change, from 1 on in each command, that fails. */
  failAtChange = 0;
  /** The change that takes effect, but whose reply is lost. */
  loseReplyOf = 0;
  failDeletes = false;
  #changes = 0;
  #made = 0;

  hosts(): readonly unknown[] {
    return this.bindings.map((binding) => binding['host']);
  }

  readonly answer: Answer = ({ method, url, body }) => {
    const path = url.pathname;
    const input = typeof body === 'object' && body !== null ? { ...body } : {};
    if (method === 'GET' && path === '/v1/secrets')
      return page(Object.keys(this.values).map((key) => this.#secret(key)));
    if (method === 'GET' && path === '/v1/host-bindings') return page(this.bindings);
    if (method === 'GET') return { status: 404, body: { error: { code: 'not_found', message: path } } };
    if (method === 'POST' && path === '/v1/secrets/check')
      return { status: 200, body: { matches: this.#matches(input) } };
    if (method === 'DELETE') return this.failDeletes ? FAILURE : this.#delete(path);
    this.#changes += 1;
    if (this.#changes === this.failAtChange) return FAILURE;
    const reply = path === '/v1/secrets' ? this.#store(input) : this.#bind(input);
    if (this.#changes === this.loseReplyOf) throw new TypeError('fetch failed');
    return reply;
  };

  /** A new command begins to count its changes. */
  beginCommand(): void {
    this.#changes = 0;
  }

  #matches(input: object): readonly object[] {
    const values: unknown = 'values' in input ? input.values : [];
    return (Array.isArray(values) ? values : []).flatMap((value: unknown, index) =>
      Object.entries(this.values)
        .filter(([, stored]) => stored === value)
        .map(([path]) => ({ index, path, owner: 'personal' })),
    );
  }

  #store(input: object): { status: number; body: object } {
    const path = 'path' in input ? String(input.path) : '';
    this.values[path] = 'value' in input ? String(input.value) : '';
    this.versions.set(path, (this.versions.get(path) ?? 0) + 1);
    return { status: 201, body: this.#secret(path) };
  }

  #secret(path: string): object {
    const id = `sec_${'0'.repeat(26)}`;
    const version = this.versions.get(path) ?? 1;
    return { id, ...TIMES, path, ref: `vault://${path}`, owner: 'personal', description: null, version };
  }

  #bind(input: object): { status: number; body: object } {
    this.#made += 1;
    const id = `bnd_${String(this.#made).padStart(26, '0')}`;
    const record = { id, ...TIMES, ...input };
    this.bindings.push(record);
    return { status: 201, body: record };
  }

  #delete(path: string): { status: number } {
    const at = this.bindings.findIndex((binding) => path.endsWith(String(binding['id'])));
    if (at >= 0) this.bindings.splice(at, 1);
    return { status: at < 0 ? 404 : 204 };
  }
}

function page(items: readonly unknown[]): { status: number; body: object } {
  return { status: 200, body: { items, next_cursor: null } };
}
