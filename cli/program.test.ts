import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { referenceProgram } from './reference/reference_program.ts';

const whole = await referenceProgram();
const namesIn = (program: Command): string[] => program.commands.map((command) => command.name());

function helpOf(command: Command): string[] {
  return [command.helpInformation(), ...command.commands.flatMap(helpOf)];
}

const NARROW = 80;
const narrowHelpOf = (command: Command): string[] => {
  command.configureOutput({ getOutHelpWidth: () => NARROW });
  return [command.helpInformation(), ...command.commands.flatMap(narrowHelpOf)];
};

describe('of the commands', () => {
  test('the help fits a terminal of 80 columns, but for long words', async () => {
    const lines = (await referenceProgram()).commands.flatMap(narrowHelpOf).join('\n').split('\n');
    expect(lines.filter((line) => line.length > NARROW && !line.startsWith('Usage:'))).toEqual([]);
  });

  test.each(namesIn(whole).filter((name) => name !== 'completion'))(
    '%s loaded alone is the same as in the whole tree',
    async (name) => {
      const program = await referenceProgram(['--json', '--home', 'up', '--control=http://x', name, 'run', '--help']);
      const alone = program.commands.find((command) => command.name() === name);
      const inTree = whole.commands.find((command) => command.name() === name);
      expect(namesIn(program).length).toBeLessThanOrEqual(2);
      expect(helpOf(alone ?? program)).toEqual(helpOf(inTree ?? whole));
    },
  );

  test.each([['--help'], ['help', 'run'], ['completion', 'bash'], ['rnu'], ['--unknown', 'run'], ['--json']])(
    'svc %s loads all commands',
    async (...argv) => {
      expect(namesIn(await referenceProgram(argv))).toEqual(namesIn(whole));
    },
  );

  test('none is loaded for the version', async () => {
    expect(namesIn(await referenceProgram(['--version']))).toEqual([]);
  });
});
