import type { Prompt } from '@modelcontextprotocol/client';
import type { Caller } from '../../machine/mcp_caller.ts';
import { toShownDefinition } from '../../shared/mcp/show_definition.ts';
import type { Downstream } from '../fronts/downstream.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import type { KeptLists } from './kept_lists.ts';
import type { ToolReviews } from './tool_reviews.ts';

/** The kind of what is looked at. */
const INSTRUCTIONS_KIND = 'instructions';
/** Longer ones of one server are not passed on: nobody reads them, and they would crowd out the others. */
const MAX_OF_SERVER = 16 * 1024;
const MAX_TOGETHER = 64 * 1024;
/** Nobody waits for the report of instructions. */
const NO_DEADLINE = new AbortController().signal;

interface Served {
  serversOf(caller: Caller): readonly SupervisedServer[];
  prefixOf(serverId: string): string;
}

interface ServerInstructionsOptions {
  readonly kept: Pick<KeptLists, 'readInstructions' | 'writeInstructions'>;
  readonly reviews: Pick<ToolReviews<Prompt>, 'offer' | 'isReviewed'>;
}

/**
 * The `instructions` of servers, which a client puts before everything that its model reads. Only texts that were accepted are
 * passed on, each quoted, so that none can speak for the gateway or for another server.
 */
export class ServerInstructions {
  readonly #options: ServerInstructionsOptions;
  /** What the last run said, by the configuration that it ran with: read from the disk, or noted since. */
  readonly #read = new WeakMap<SupervisedServer['server'], { readonly item: Prompt | null }>();
  readonly #current = new WeakMap<Downstream, Prompt>();

  constructor(options: ServerInstructionsOptions) {
    this.#options = options;
  }

  /** Keeps the instructions of a server that has connected, and reports them if nobody has looked at them yet. */
  async note(supervised: SupervisedServer): Promise<void> {
    const { current, server, credentials } = supervised;
    if (current === null) return;
    const text = current.client.getInstructions() ?? '';
    // A server without any is reported too: what it names later is then a change.
    const item = itemOf(text.length > MAX_OF_SERVER ? '' : current.mask.maskText(text));
    this.#current.set(current, item);
    // Once it has ended, these are those of its last run.
    this.#read.set(server, { item });
    await this.#options.kept.writeInstructions(server, credentials, item);
    if (isKept(supervised)) await this.#options.reviews.offer(supervised, [item], NO_DEADLINE);
  }

  /** The accepted instructions of a caller's servers, those of stopped servers as they were in their last run. */
  textFor(fleet: Served, caller: Caller): string {
    const sections: string[] = [];
    let room = MAX_TOGETHER;
    for (const supervised of fleet.serversOf(caller)) {
      const item = this.#itemOf(supervised);
      // An earlier control plane keeps no instructions, so nobody can have accepted them.
      if (
        item === null ||
        item.description === '' ||
        !isKept(supervised) ||
        !this.#options.reviews.isReviewed(supervised, item)
      )
        continue;
      const section = sectionOf(supervised.server.name, fleet.prefixOf(supervised.server.id), item.description ?? '');
      room -= section.length;
      if (room >= 0) sections.push(section);
    }
    return sections.join('\n\n');
  }

  #itemOf(supervised: SupervisedServer): Prompt | null {
    const { current, server, credentials } = supervised;
    if (current !== null) return this.#current.get(current) ?? null;
    const read = this.#read.get(server) ?? { item: this.#options.kept.readInstructions(server, credentials) };
    this.#read.set(server, read);
    return read.item;
  }
}

function itemOf(text: string): Prompt {
  return toShownDefinition({ name: INSTRUCTIONS_KIND, description: text });
}

function isKept({ reviewed, reviewedKinds }: Pick<SupervisedServer, 'reviewed' | 'reviewedKinds'>): boolean {
  return reviewed !== null && reviewedKinds.includes(INSTRUCTIONS_KIND);
}

/** Each line is quoted (other line ends than these are written out): a heading in a server's text cannot look like one of ours. */
function sectionOf(name: string, prefix: string, text: string): string {
  const named = prefix === '' ? '' : `, whose tools are named ${prefix}__<name> here`;
  const quoted = text.split(/\r\n|\n|\r/u).map((line) => `> ${line}`);
  return [`What the MCP server ${name}${named}, says about itself:`, ...quoted].join('\n');
}
