import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ROOT } from '../support/program.ts';

const DOCUMENT = join(ROOT, 'docs', 'mcp.md');

const plain = (line: string): string => line.replaceAll(/ +/g, ' ').replaceAll(/-+/g, '-');

/** Compares the table of docs/mcp.md of this name, whatever its columns' widths are. `MCP_MD=write` writes it. */
export function expectMcpTable(name: string, lines: readonly string[]): void {
  const text = readFileSync(DOCUMENT, 'utf8');
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  expect(from).toBeGreaterThan(begin.length);
  expect(to).toBeGreaterThan(from);
  if (process.env['MCP_MD'] === 'write') {
    writeFileSync(DOCUMENT, `${text.slice(0, from)}\n\n${lines.join('\n')}\n\n${text.slice(to)}`);
    return;
  }
  const there = text.slice(from, to).trim().split('\n');
  expect(there.map((line) => plain(line))).toEqual(lines.map((line) => plain(line)));
}
