import { MAX_TOOLS_OF_SERVER, MAX_TOOLS_TEXT, type McpToolState } from '../../model/mcp_tool.ts';

/** A tool of a server as it is kept: one form of it. */
export interface KnownTool {
  /** SHA-256 of its text. */
  readonly hash: string;
  readonly name: string;
  readonly state: McpToolState;
  readonly characters: number;
  /** When it was first seen, in ISO 8601. */
  readonly seenAt: string;
}

/** A tool that a gateway has just seen. */
export interface SeenTool {
  readonly hash: string;
  readonly name: string;
  readonly characters: number;
  /** Its text has something that a person should know of. */
  readonly hasWarning: boolean;
}

/** What becomes of the tools of one report. */
interface ReviewPlan<T extends SeenTool> {
  readonly added: readonly (T & { readonly state: McpToolState })[];
  /** Earlier forms that are kept no longer. */
  readonly dropped: readonly string[];
}

/** How many forms of one tool are kept in each state: machines can run different releases of one server. */
const MAX_FORMS = 4;

/**
 * The first list of a server is accepted with the server, except for tools with a warning. From then on, every tool that is new
 * or has another form waits for a person.
 */
export function planReview<T extends SeenTool>(known: readonly KnownTool[], seen: readonly T[]): ReviewPlan<T> {
  const isFirst = known.length === 0;
  const kept = new Map(known.map((tool) => [tool.hash, tool]));
  const names = new Set<string>();
  // What waits makes room for what is newer. What is reviewed takes none of it: else a large server could never change.
  let characters = 0;
  const added: (T & { readonly state: McpToolState })[] = [];
  for (const tool of seen) {
    const isTwin = names.has(tool.name);
    if (kept.has(tool.hash) || added.some(({ hash }) => hash === tool.hash)) continue;
    const state = isFirst && !tool.hasWarning && !isTwin ? 'reviewed' : 'waiting';
    const isFull = added.filter((one) => one.state === state).length >= MAX_TOOLS_OF_SERVER;
    if (isFull || characters + tool.characters > MAX_TOOLS_TEXT) continue;
    characters += tool.characters;
    names.add(tool.name);
    added.push({ ...tool, state });
  }
  const old = oldForms(known, added);
  const left = known.filter(({ hash, state }) => state === 'waiting' && !old.includes(hash));
  const room = MAX_TOOLS_OF_SERVER - added.filter(({ state }) => state === 'waiting').length;
  return { added, dropped: [...old, ...surplus(left, room, MAX_TOOLS_TEXT - characters)] };
}

/** Of each tool, only the newest waiting forms stay. */
function oldForms(known: readonly KnownTool[], added: readonly SeenTool[]): readonly string[] {
  const names = new Set(added.map(({ name }) => name));
  return [...names].flatMap((name) => {
    const waiting = newestFirst(known.filter((tool) => tool.name === name && tool.state === 'waiting'));
    return waiting.slice(MAX_FORMS - 1).map(({ hash }) => hash);
  });
}

/** Of a server that never stops naming new tools, the oldest waiting ones go, by number and by their text. */
function surplus(waiting: readonly KnownTool[], room: number, characters: number): readonly string[] {
  const sorted = newestFirst(waiting);
  let staying = 0;
  let left = characters;
  for (const tool of sorted.slice(0, Math.max(0, room))) {
    left -= tool.characters;
    if (left < 0) break;
    staying += 1;
  }
  return sorted.slice(staying).map(({ hash }) => hash);
}

/** The reviewed forms that are given up when these are accepted: of each tool only the newest few are in force. */
export function formsGivenUp(known: readonly KnownTool[], accepted: readonly KnownTool[]): readonly string[] {
  const hashes = new Set(accepted.map(({ hash }) => hash));
  const names = new Set(accepted.map(({ name }) => name));
  return [...names].flatMap((name) => {
    const reviewed = known.filter((tool) => tool.name === name && tool.state === 'reviewed' && !hashes.has(tool.hash));
    const room = Math.max(0, MAX_FORMS - accepted.filter((tool) => tool.name === name).length);
    return newestFirst(reviewed)
      .slice(room)
      .map(({ hash }) => hash);
  });
}

function newestFirst(tools: readonly KnownTool[]): readonly KnownTool[] {
  return tools.toSorted((a, b) => (a.seenAt === b.seenAt ? 0 : a.seenAt < b.seenAt ? 1 : -1));
}
