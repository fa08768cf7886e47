import { expect, test } from 'vitest';
import { withCommandSeparator } from './command_separator.ts';
import { referenceProgram } from './reference/reference_program.ts';

const isAgent = (word: string): boolean => word === 'claude';
const separated = (text: string): string => withCommandSeparator(text.split(' '), isAgent).join(' ');

test.each([
  ['run agent --json', 'run -- agent --json'],
  ['run curl -s https://x', 'run -- curl -s https://x'],
  ['run --name n agent -- x', 'run --name n -- agent -- x'],
  ['--home /x run --ttl=1h agent', '--home /x run --ttl=1h -- agent'],
  ['run -- agent --json', 'run -- agent --json'],
  ['run', 'run'],
  ['run --help', 'run --help'],
  ['audit list run x', 'audit list run x'],
  ['secret set run', 'secret set run'],
  ['claude -p hi --json', 'claude -- -p hi --json'],
  ['--json claude --help', '--json claude -- --help'],
  ['claude -- hi', 'claude -- -- hi'],
  ['run claude -p hi', 'run --agent=claude -- claude -p hi'],
  ['run --quiet --name n claude', 'run --quiet --name n --agent=claude -- claude'],
  ['run -- claude -p hi', 'run -- claude -p hi'],
  ['run --name claude x', 'run --name claude -- x'],
  ['launch claude -p', 'launch --agent=claude -- claude -p'],
  [
    'launch --egress=sealed --rebuild claude --rebuild',
    'launch --egress=sealed --rebuild --agent=claude -- claude --rebuild',
  ],
  ['launch -- claude -p', 'launch -- claude -p'],
  ['launch --image claude x', 'launch --image claude -- x'],
  ['login claude', 'login claude'],
  ['help claude', 'help claude'],
])('%s is read as %s', (typed, read) => {
  expect(separated(typed)).toBe(read);
});

test.each(['run', 'launch'])('lists every option of %s that takes a value', async (name) => {
  const program = await referenceProgram();
  const found = program.commands.find((command) => command.name() === name);
  const options = [...program.options, ...(found?.options ?? [])].filter(
    (option) => option.required || option.optional,
  );
  expect(options.length).toBeGreaterThanOrEqual(4);
  for (const option of options) {
    expect(separated(`${name} ${option.long} value agent`)).toBe(`${name} ${option.long} value -- agent`);
  }
});

test('launch options without a value do not take the next word', () => {
  expect(separated('launch --detach agent --name x')).toBe('launch --detach -- agent --name x');
});
