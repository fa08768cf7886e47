import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { promptHidden } from './read_secret.ts';

/** A terminal without echo. */
function terminal() {
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (raw: boolean) => modes.push(raw) });
  const printed: string[] = [];
  return { input, modes, printed, output: { write: (text: string) => printed.push(text) } };
}

describe('the prompt for a secret', () => {
  test('reads until Enter without echo', async () => {
    const { input, modes, printed, output } = terminal();
    const answer = promptHidden(input, output, 'Secret: ');
    input.write('planted');
    input.write('-secret\r');
    expect(await answer).toBe('planted-secret');
    expect(printed.join('')).toBe('Secret: \n');
    expect(modes).toEqual([true, false]);
  });

  test.each([
    ['ab\u007fc\n', 'ac'],
    ['wrong\u0015right\n', 'right'],
    ['é漢\u007f\n', 'é'],
    ['end\u0004', 'end'],
    ['first\nsecond\n', 'first'],
  ])('reads %j as %j', async (typed, value) => {
    const { input, output } = terminal();
    const answer = promptHidden(input, output, '');
    input.write(typed);
    expect(await answer).toBe(value);
  });

  test('shows the question only once the terminal echoes nothing', async () => {
    const { input, modes } = terminal();
    const modesThen: boolean[][] = [];
    const answer = promptHidden(input, { write: () => modesThen.push([...modes]) }, 'Secret: ');
    input.write('x\r');
    await answer;
    expect(modesThen[0]).toEqual([true]);
  });

  test('Ctrl-C cancels and restores the terminal', async () => {
    const { input, modes, output } = terminal();
    const answer = promptHidden(input, output, '');
    input.write('half\u0003');
    await expect(answer).rejects.toThrow('cancelled');
    expect(modes).toEqual([true, false]);
  });
});
