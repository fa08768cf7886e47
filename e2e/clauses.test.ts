import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const HERE = import.meta.dirname;

interface Row {
  readonly clause: string;
  readonly file: string;
  readonly title: string;
}

function rows(): Row[] {
  const lines = readFileSync(join(HERE, 'clauses.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '));
  return lines.slice(2).map((line) => {
    const [clause = '', file = '', title = ''] = line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim());
    return { clause, file, title };
  });
}

describe('the table of clauses', () => {
  it('names a test that exists in every row', () => {
    const missing = rows().filter(({ file, title }) => !readFileSync(join(HERE, file), 'utf8').includes(title));
    expect(rows().length).toBeGreaterThan(40);
    expect(missing).toEqual([]);
  });

  it('names every suite', () => {
    const own = ['clauses.test.ts', 'upstreams.test.ts'];
    const within = ['answers', 'containers', 'connectors', 'sign_in'].flatMap((folder) =>
      readdirSync(join(HERE, folder)).map((name) => `${folder}/${name}`),
    );
    const all = [...readdirSync(HERE), ...within];
    const suites = all.filter((name) => name.endsWith('.test.ts') && !own.includes(name));
    expect(suites.filter((name) => !rows().some(({ file }) => file === name))).toEqual([]);
  });
});

describe('the table of connections', () => {
  const page = readFileSync(join(HERE, '../docs/connections.md'), 'utf8');
  const [table = ''] = /^[|] Connection [^]*?\n\n/m.exec(page) ?? [];
  const carried = table.trim().split('\n').slice(2);

  it('names tests that exist in every row', () => {
    const missing = carried.flatMap((row) => {
      const named = [...row.matchAll(/\]\(\.\.\/([^)]+\.test\.ts)\): “([^”]+)”/g)];
      if (named.length === 0) return [row];
      return named
        .filter(([, file = '', title = '']) => !readFileSync(join(HERE, '..', file), 'utf8').includes(title))
        .map(([text]) => text);
    });
    expect(carried.length).toBeGreaterThan(10);
    expect(missing).toEqual([]);
  });
});
