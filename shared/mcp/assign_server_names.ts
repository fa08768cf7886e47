import type { McpServer } from '../model/mcp_server.ts';

const MAX_CHARACTERS = 48;

/**
 * The name of each server in its tools' names, by id. Names are unique only per owner: a personal server keeps its name, and an
 * enterprise's server with the same name gets a number.
 */
export function assignServerNames(servers: readonly McpServer[]): ReadonlyMap<string, string> {
  const taken = new Set<string>();
  const names = new Map<string, string>();
  const ordered = servers.toSorted((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1));
  const givenFirst = new Set(ordered.map(({ name }) => name));
  for (const { id, name } of ordered) {
    const free = taken.has(name) ? addNumber(name, (other) => taken.has(other) || givenFirst.has(other)) : name;
    taken.add(free);
    names.set(id, free);
  }
  return names;
}

function rank({ owner }: McpServer): number {
  return owner === 'personal' ? 0 : 1;
}

function addNumber(name: string, isTaken: (name: string) => boolean): string {
  for (let number = 2; ; number += 1) {
    const ending = `-${number}`;
    const other = name.slice(0, MAX_CHARACTERS - ending.length) + ending;
    if (!isTaken(other)) return other;
  }
}
