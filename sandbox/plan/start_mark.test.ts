import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { markCommand, StartMark } from './start_mark.ts';

const MARK = 'm'.repeat(43);

function runMarked(command: readonly string[], env: Record<string, string> = {}) {
  const [program = '', ...args] = markCommand(MARK, command);
  return spawnSync(program, args, { env: { PATH: process.env['PATH'] ?? '', ...env }, encoding: 'utf8' });
}

/** What is passed on of pieces, and how often it was told that the step began. */
function passPieces(pieces: readonly string[]): { readonly text: string; readonly began: number } {
  let began = 0;
  const mark = new StartMark(MARK, () => (began += 1));
  const out = pieces.map((piece) => mark.push(Buffer.from(piece)));
  return { text: Buffer.concat([...out, mark.end()]).toString(), began };
}

describe('a marked command', () => {
  test.each([[['$(id)', '`id`', '; id', '*', '', 'a  b', '"\'\\', 'ü\n2']], [['-n', '--help', '-', '--', '-e']]])(
    'has its words as they are, after the mark: %j',
    (words) => {
      const printed = runMarked([process.execPath, '-p', 'JSON.stringify(process.argv.slice(1))', '--', ...words]);
      expect(printed.stderr).toBe(`${MARK}\n`);
      expect(JSON.parse(printed.stdout)).toEqual(words);
    },
  );

  test('keeps the exit code, and adds no variable', () => {
    expect(runMarked(['/bin/sh', '-c', 'exit 7']).status).toBe(7);
    expect(runMarked(['env'], { A: 'b' }).stdout).not.toMatch(/svc_|m{43}/);
  });

  test.each([['no-such-program-here'], ['-no-such-program-here']])(
    '%s is reported as not found, as a shell does',
    (name) => {
      const ended = runMarked([name]);
      expect(ended.status).toBe(127);
      expect(ended.stderr.startsWith(`${MARK}\n`)).toBe(true);
    },
  );
});

describe('the mark', () => {
  test('is removed once, wherever the pieces are cut', () => {
    const whole = `the image's helper\n${MARK}\nstep ${MARK}\n${MARK}\nend`;
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length), { maxLength: 12 }), (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), whole.length];
        const pieces = places.slice(1).map((end, index) => whole.slice(places[index], end));
        expect(passPieces(pieces)).toEqual({ text: `the image's helper\nstep ${MARK}\n${MARK}\nend`, began: 1 });
      }),
    );
  });

  test.each([[`x${MARK}\n`], [MARK], [`${MARK} \n`], [''], ['exec failed\n']])('is not in %j', (text) => {
    expect(passPieces([text])).toEqual({ text, began: 0 });
  });
});
