import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOMS = ['worker/pages', 'worker/routes', 'worker/islands'];
/** A word that touches an inline element or a value: `</code>is`, `the<a `, `${link}and`. A hidden span has its own space. */
const JOINED =
  /<\/(?:a|b|code|em|i|kbd|span|strong|time)>[a-zA-Z(]|[a-zA-Z.,:;)]<(?:a|b|code|em|i|kbd|strong|time)[ >]|\$\{[^{}]*\}[a-z]{2}/g;

test.each([
  'the <a href="/x">heads</a>are compared',
  'use it<code>literally</code>',
  'Open ${foreignLink(url)}and type',
  'see (<b>here</b>)<i>there</i>',
])('finds the missing space of %s', (line) => {
  expect(line.match(JOINED)).toHaveLength(1);
});

test('every page has a space between a word and the element beside it', () => {
  const joined = ROOMS.flatMap((room) =>
    readdirSync(room, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|js)$/.test(name) && !name.endsWith('.test.ts'))
      .flatMap((name) => joinedLines(join(room, name))),
  );
  expect(joined).toEqual([]);
});

function joinedLines(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((line, index) => (line.match(JOINED) === null ? [] : [`${file}:${index + 1}: ${line.trim()}`]));
}
