import {
  isSpecType,
  type Prompt,
  type Resource,
  type ResourceTemplateType,
  type Tool,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { Downstream } from '../fronts/downstream.ts';
import type { GatewayLimits } from '../gateway_limits.ts';
import { readPages } from '../../shared/mcp/read_pages.ts';
import { toShownDefinition } from '../../shared/mcp/show_definition.ts';

/** What a server lists, by the kind of it. */
export interface Listed {
  readonly tools: Tool;
  readonly prompts: Prompt;
  readonly resources: Resource;
  readonly templates: ResourceTemplateType;
}
export type Listable = keyof Listed;

interface ListFacts<K extends Listable> {
  readonly method: 'tools/list' | 'prompts/list' | 'resources/list' | 'resources/templates/list';
  readonly member: string;
  readonly capability: 'tools' | 'prompts' | 'resources';
  readonly isOne: (value: unknown) => value is Listed[K];
  readonly keyOf: (item: Listed[K]) => string;
}

const FACTS: { readonly [K in Listable]: ListFacts<K> } = {
  tools: {
    method: 'tools/list',
    member: 'tools',
    capability: 'tools',
    isOne: (value): value is Tool => isSpecType.Tool(value),
    keyOf: ({ name }) => name,
  },
  prompts: {
    method: 'prompts/list',
    member: 'prompts',
    capability: 'prompts',
    isOne: (value): value is Prompt => isSpecType.Prompt(value),
    keyOf: ({ name }) => name,
  },
  resources: {
    method: 'resources/list',
    member: 'resources',
    capability: 'resources',
    isOne: (value): value is Resource => isSpecType.Resource(value),
    keyOf: ({ uri }) => uri,
  },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    capability: 'resources',
    isOne: (value): value is ResourceTemplateType => isSpecType.ResourceTemplate(value),
    keyOf: ({ uriTemplate }) => uriTemplate,
  },
};

/** True for a valid item of a list. */
export function isListed<K extends Listable>(kind: K, item: unknown): item is Listed[K] {
  return FACTS[kind].isOne(item);
}

/** One raw page: an invalid item must not drop the others. */
const page = z.looseObject({ nextCursor: z.string().optional() });

/** How long a list is cached if the server does not report changes. */
const UNNOTIFIED_LIFETIME_MS = 30_000;
const REMOTE_MS = 300_000;
const SLOW_MS = 300_000;

interface Kept {
  readonly list: Promise<unknown>;
  /** Once the server has answered. */
  items: unknown;
  /** Unlimited while the server has not answered: nobody asks it twice at a time. */
  until: number;
}

/** The lists of one connected server; cached until the server reports a change. */
export class ServerLists {
  readonly #downstream: Downstream;
  readonly #limits: GatewayLimits;
  readonly #now: () => number;
  readonly #kept = new Map<Listable, Kept>();
  readonly #slowUntil = new Map<Listable, number>();
  readonly #counts = new Map<Listable, number>();

  constructor(downstream: Downstream, limits: GatewayLimits, now: () => number) {
    this.#downstream = downstream;
    this.#limits = limits;
    this.#now = now;
  }

  /** Rejects if the server does not answer in time or the answer is not a list. */
  list<K extends Listable>(kind: K): Promise<readonly Listed[K][]> {
    const kept = this.#kept.get(kind);
    if (kept !== undefined && kept.until > this.#now())
      return z.custom<Promise<readonly Listed[K][]>>().parse(kept.list);
    const list = this.#fetch(kind);
    const mine: Kept = { list, items: null, until: Number.POSITIVE_INFINITY };
    this.#kept.set(kind, mine);
    void this.#settle(kind, mine);
    return list;
  }

  /** Its last list, if that is still in force; null if the server would have to be asked. */
  find<K extends Listable>(kind: K): readonly Listed[K][] | null {
    const kept = this.#kept.get(kind);
    if (kept === undefined || kept.until <= this.#now()) return null;
    return z.custom<readonly Listed[K][] | null>().parse(kept.items);
  }

  async #settle(kind: Listable, kept: Kept): Promise<void> {
    try {
      kept.items = await kept.list;
      this.#slowUntil.delete(kind);
      kept.until = this.#now() + this.#lifetimeMs(kind);
    } catch {
      this.#slowUntil.set(kind, this.#now() + SLOW_MS);
      if (this.#kept.get(kind) === kept) this.#kept.delete(kind);
    }
  }

  #lifetimeMs(kind: Listable): number {
    const capabilities = this.#downstream.client.getServerCapabilities();
    const notifiesChanges = capabilities?.[FACTS[kind].capability]?.listChanged === true;
    return notifiesChanges ? this.#notifiedLifetimeMs() : UNNOTIFIED_LIFETIME_MS;
  }

  /** Over HTTP, the stream with changes may have ended unnoticed. */
  #notifiedLifetimeMs(): number {
    return this.#isLocal() ? Number.POSITIVE_INFINITY : REMOTE_MS;
  }

  #isLocal(): boolean {
    const { transport } = this.#downstream.client;
    return transport !== undefined && 'pid' in transport;
  }

  /** The last request for this list failed, so it is not retried for a while. */
  isSlow(kind: Listable): boolean {
    return (this.#slowUntil.get(kind) ?? 0) > this.#now();
  }

  forget(kind: 'tools' | 'prompts' | 'resources'): void {
    this.#kept.delete(kind);
    if (kind === 'resources') this.#kept.delete('templates');
  }

  async #fetch<K extends Listable>(kind: K): Promise<readonly Listed[K][]> {
    const { capability, isOne, keyOf } = FACTS[kind];
    const { client, mask } = this.#downstream;
    if (client.getServerCapabilities()?.[capability] === undefined) return [];
    const byKey = new Map<string, Listed[K]>();
    for (const item of await this.#items(kind)) {
      const clean = mask.maskValue(item);
      if (isOne(clean) && !byKey.has(keyOf(clean))) byKey.set(keyOf(clean), toShownDefinition(clean));
      if (byKey.size >= this.#limits.maxListItems) break;
    }
    this.#counts.set(kind, byKey.size);
    return [...byKey.values()];
  }

  /** The number of items in its last list; null if not asked yet. */
  countOf(kind: Listable): number | null {
    return this.#counts.get(kind) ?? null;
  }

  /** Over HTTP, the later generation forbids tools with an invalid `x-mcp-header`; the SDK detects them. */
  async #items(kind: Listable): Promise<readonly unknown[]> {
    const { client } = this.#downstream;
    const timeout = Math.min(this.#limits.requestMs, this.#limits.listWaitMs);
    const deadline = AbortSignal.timeout(timeout);
    if (kind === 'tools' && client.getProtocolEra() === 'modern' && !this.#isLocal()) {
      return (await client.listTools(undefined, { signal: deadline, cacheMode: 'refresh' })).tools;
    }
    const { method, member } = FACTS[kind];
    const limits = { maxPages: this.#limits.maxListPages, maxItems: this.#limits.maxListItems };
    return readPages(limits, async (cursor) => {
      const params = cursor === undefined ? {} : { cursor };
      const reply = await client.request({ method, params }, page, { signal: deadline, timeout });
      const found = reply[member];
      if (!Array.isArray(found)) throw new TypeError(`the reply to ${method} has no list`);
      return { items: found as unknown[], nextCursor: reply.nextCursor };
    });
  }
}
