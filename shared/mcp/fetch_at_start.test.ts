import { expect, test } from 'vitest';
import { describeFetchAtStart } from './fetch_at_start.ts';
import { readPackageCommand } from './package_command.ts';

const describe = (line: string): string | null => describeFetchAtStart(line.split(' '));

test.each([
  ['bunx @acme/files@1.0.0 /data', 'npx -y @acme/files@VERSION'],
  ['bun x @acme/files@1.0.0', 'npx -y @acme/files@VERSION'],
  ['pnpm dlx @acme/files', 'npx -y @acme/files@VERSION'],
  ['npx -y -p @acme/files@1.0.0 files', 'npx -y @acme/files@VERSION'],
  ['uvx --python 3.13 acme-files@1.0.0', 'uvx acme-files@VERSION'],
  ['dnx Acme.Files@1.0.0', 'no packages of NuGet'],
  ['deno run npm:@acme/files@1.0.0', 'no packages of Deno'],
])('%s fetches at the start: says what to write instead', (line, hint) => {
  expect(describe(line)).toMatch(/fetches its package at the start/);
  expect(describe(line)).toContain(hint);
});

test.each([
  'npx -y @acme/files@1.0.0',
  'uvx acme-files@1.0.0',
  'node /srv/files.js',
  'deno run /srv/files.ts',
  'deno run -A /srv/files.ts https://api.example.test',
  'docker run -i acme/files:1',
])('%s fetches no package at the start', (line) => {
  expect(describe(line)).toBeNull();
});

test('what it says to write is installed', () => {
  for (const line of ['npx -y @acme/files@1.0.0', 'uvx acme-files@1.0.0']) {
    expect(readPackageCommand(line.split(' '))).not.toBeNull();
  }
});
