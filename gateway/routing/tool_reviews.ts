import type { Prompt, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/client';
import { sha256Hex } from '../../machine/sha256.ts';
import { hasWarning } from '../../shared/mcp/tools/text_marks.ts';
import { hashedText, readMembers, toolText } from '../../shared/mcp/tools/tool_definition.ts';
import { marksOf, markTool } from '../../shared/mcp/tools/tool_marks.ts';
import { MAX_REPORT_BYTES, MAX_TOOLS_OF_SERVER, type ReviewedKind } from '../../shared/model/mcp_tool.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { backoffMs } from '../../shared/net/backoff.ts';
import type { GatewayPorts } from '../gateway_ports.ts';
import { MARKS_META } from './result_marks.ts';
import { waitUnlessAborted } from '../servers/wait_unless_aborted.ts';

interface ToolReviewsOptions {
  readonly kind: ReviewedKind;
  readonly ports: Pick<GatewayPorts, 'reportTools' | 'clock'>;
  /** Called when the number of waiting tools of a server has changed. */
  readonly onWaiting: () => void;
  /** Waits; resolves immediately if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A server as far as its tools are looked at, as it is at the moment. */
interface ReviewedServer {
  readonly server: McpServer;
  /** The hashes of the tools that may be listed and called; null: all. */
  readonly reviewed: readonly string[] | null;
  /** The kinds of what `reviewed` has; every other kind may be listed. */
  readonly reviewedKinds: readonly string[];
  /** Its connection, if it runs. */
  readonly current: object | null;
}

/** A list, and the connection that it came over. */
interface ListToReport<T> {
  readonly supervised: ReviewedServer;
  readonly current: object | null;
  readonly tools: readonly T[];
}

interface FailedReports<T> {
  readonly count: number;
  readonly isPausing: boolean;
  /** What is reported at the end of the pause. */
  readonly newest: ListToReport<T>;
}

/** A tool that waits is reported again after this time: somebody may have removed it, and its server may list it in turns. */
const REPORT_AGAIN_MS = 60_000;
/** At most so many reports about one server in this time. */
const MAX_REPORTS = 10;
const REPORTS_MS = 600_000;
const MAX_REMEMBERED = 4 * MAX_TOOLS_OF_SERVER;
/** The pauses after reports without an answer. */
const FAILED_REPORTS = { firstMs: 5_000, mostMs: 300_000 } as const;
const NEVER_ABORTED = new AbortController().signal;

/**
 * Which tools (or prompts) of a list may be offered: those whose every word somebody has accepted. Those that are new or have changed are
 * reported to the control plane, where they wait for a person.
 */
export class ToolReviews<T extends Tool | Prompt = Tool> {
  readonly #options: ToolReviewsOptions;
  readonly #hashes = new WeakMap<T, { readonly hash: string | null }>();
  readonly #sets = new WeakMap<readonly string[], ReadonlySet<string>>();
  readonly #reporting = new Map<string, Promise<void>>();
  readonly #reportedAt = new Map<string, number>();
  readonly #sentAt = new Map<string, number[]>();
  readonly #waiting = new Map<string, number>();
  readonly #marked = new WeakMap<T, T>();
  /** The servers whose last reports had no answer: they are reported again by themselves, not by each list. */
  readonly #failed = new Map<string, FailedReports<T>>();

  constructor(options: ToolReviewsOptions) {
    this.#options = options;
  }

  /**
   * The tools of a list that may be offered, after unknown ones were reported. A report that takes longer than `deadline` goes on:
   * its outcome comes with a new list of servers, of which clients are notified.
   */
  async offer(supervised: ReviewedServer, tools: readonly T[], deadline: AbortSignal): Promise<readonly T[]> {
    if (this.#reviewedBy(supervised) === null) return tools;
    // What an earlier run listed is no news.
    if (supervised.current !== null) await waitUnlessAborted(this.#report(supervised, tools), deadline);
    const offered = tools.filter((tool) => this.isReviewed(supervised, tool));
    if (supervised.current !== null) {
      const readable = tools.filter((tool) => this.#hashOf(tool) !== null);
      this.#noteWaiting(supervised.server.id, readable.length - offered.length);
    }
    return offered;
  }

  /** As {@link offer}, for one tool of a list. */
  async mayCall(supervised: ReviewedServer, tool: T, listed: readonly T[], deadline: AbortSignal): Promise<boolean> {
    return this.isReviewed(supervised, tool) || (await this.offer(supervised, listed, deadline)).includes(tool);
  }

  isReviewed(supervised: ReviewedServer, tool: T): boolean {
    const reviewed = this.#reviewedBy(supervised);
    if (reviewed === null) return true;
    const hash = this.#hashOf(tool);
    return hash !== null && this.#reviewedOf(reviewed).has(hash);
  }

  /** The tool as clients get it: with its marks. It is searched once, however often it is listed. */
  show(tool: T): T {
    const known = this.#marked.get(tool);
    if (known !== undefined) return known;
    const marked = withMarks(tool);
    this.#marked.set(tool, marked);
    return marked;
  }

  /** For a person: what to do about the tools of a server that wait; null if none do. */
  noteOf({ id, name }: Pick<McpServer, 'id' | 'name'>): string | null {
    const count = this.#waiting.get(id) ?? 0;
    if (count === 0) return null;
    const { kind } = this.#options;
    if (kind === 'instructions') return `its instructions wait for a look: svc mcp tools ${name}`;
    return `${count === 1 ? `one ${kind} waits` : `${count} ${kind}s wait`} for a look: svc mcp tools ${name}`;
  }

  /** Null: all, because the control plane keeps nothing of this kind. */
  #reviewedBy({ reviewed, reviewedKinds }: ReviewedServer): readonly string[] | null {
    return reviewedKinds.includes(this.#options.kind) ? reviewed : null;
  }

  #reviewedOf(reviewed: readonly string[]): ReadonlySet<string> {
    const known = this.#sets.get(reviewed);
    if (known !== undefined) return known;
    const hashes = new Set(reviewed);
    this.#sets.set(reviewed, hashes);
    return hashes;
  }

  /** Lists of one server are reported one after the other, so that the first one is complete. */
  async #report(supervised: ReviewedServer, tools: readonly T[]): Promise<void> {
    const { id } = supervised.server;
    for (let running = this.#reporting.get(id); running !== undefined; running = this.#reporting.get(id)) await running;
    const news = this.#newsOf(supervised, tools);
    const failed = this.#failed.get(id);
    // It may come over a new connection, whose tools nobody else would report.
    if (news.length > 0 && failed?.isPausing === true) {
      this.#failed.set(id, { ...failed, newest: { supervised, current: supervised.current, tools } });
    }
    if (news.length === 0 || !this.#mayReport(id)) return;
    const reporting = this.#send(supervised, news).finally(() => {
      if (this.#reporting.get(id) === reporting) this.#reporting.delete(id);
    });
    this.#reporting.set(id, reporting);
    await reporting;
  }

  async #send(supervised: ReviewedServer, tools: readonly T[]): Promise<void> {
    const { ports, kind } = this.#options;
    const answer = await ports.reportTools(supervised.server, kind, tools.map(readMembers));
    const { id } = supervised.server;
    // Without an answer they wait.
    if (!answer.ok) return this.#pauseReports(supervised, tools);
    this.#failed.delete(id);
    const now = ports.clock.now();
    this.#sentAt.get(id)?.push(now);
    if (this.#reportedAt.size > MAX_REMEMBERED) this.#reportedAt.clear();
    for (const tool of tools) this.#reportedAt.set(this.#keyOf(supervised, tool), now);
  }

  /** Lists and calls do not wait again for a control plane that did not answer: the newest list is reported after a pause. */
  #pauseReports(supervised: ReviewedServer, tools: readonly T[]): void {
    const { id } = supervised.server;
    const own = { supervised, current: supervised.current, tools };
    const count = (this.#failed.get(id)?.count ?? 0) + 1;
    this.#failed.set(id, { count, isPausing: true, newest: own });
    const reportAgain = async (): Promise<void> => {
      await this.#options.pause(backoffMs(count, FAILED_REPORTS), NEVER_ABORTED);
      const { newest } = this.#failed.get(id) ?? { newest: own };
      this.#failed.set(id, { count, isPausing: false, newest });
      const isThere = newest.current !== null && newest.supervised.current === newest.current;
      if (isThere) await this.#report(newest.supervised, newest.tools);
    };
    void reportAgain();
  }

  /** The unknown tools of a list, as many as one report may have. */
  #newsOf(supervised: ReviewedServer, tools: readonly T[]): readonly T[] {
    const now = this.#options.ports.clock.now();
    const news = tools.filter((tool) => {
      if (this.#hashOf(tool) === null || this.isReviewed(supervised, tool)) return false;
      const reportedAt = this.#reportedAt.get(this.#keyOf(supervised, tool));
      return reportedAt === undefined || now - reportedAt >= REPORT_AGAIN_MS;
    });
    return news.slice(0, countForReport(news));
  }

  /** Each report is an event in the audit log, and a server can name new tools as often as it likes. */
  #mayReport(serverId: string): boolean {
    if (this.#failed.get(serverId)?.isPausing === true) return false;
    const since = this.#options.ports.clock.now() - REPORTS_MS;
    const recent = (this.#sentAt.get(serverId) ?? []).filter((at) => at > since);
    this.#sentAt.set(serverId, recent);
    return recent.length < MAX_REPORTS;
  }

  #keyOf({ server }: ReviewedServer, tool: T): string {
    return `${server.id} ${this.#hashOf(tool) ?? ''}`;
  }

  /** Null for a tool that nobody could look at: it is not offered. */
  #hashOf(tool: T): string | null {
    const known = this.#hashes.get(tool);
    if (known !== undefined) return known.hash;
    const text = toolText(tool);
    const hash = text === null ? null : sha256Hex(hashedText(this.#options.kind, text));
    this.#hashes.set(tool, { hash });
    return hash;
  }

  #noteWaiting(serverId: string, count: number): void {
    if ((this.#waiting.get(serverId) ?? 0) === count) return;
    this.#waiting.set(serverId, count);
    this.#options.onWaiting();
  }
}

/** How many of these, from the first, one report may have. */
export function countForReport(tools: readonly (Tool | Prompt)[]): number {
  let room = MAX_REPORT_BYTES;
  const past = tools.findIndex((tool) => (room -= Buffer.byteLength(JSON.stringify(readMembers(tool)))) < 0);
  return Math.min(past < 0 ? tools.length : past, MAX_TOOLS_OF_SERVER);
}

/** What a server lists, with its marks in `_meta` if it has any. Its text is not changed. */
export function withMarks<T extends Tool | Prompt | Resource | ResourceTemplateType>(tool: T): T {
  const marks = marksOf(markTool(tool));
  if (!hasWarning(marks)) return tool;
  const { _meta: meta } = tool;
  return { ...tool, _meta: { ...meta, [MARKS_META]: marks } };
}
