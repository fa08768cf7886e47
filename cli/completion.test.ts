import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { completionNodes, completionScript, SHELLS } from './completion.ts';
import { referenceProgram } from './reference/reference_program.ts';

const program = await referenceProgram();

/** The completions that bash offers after these words; the last word is incomplete. */
function bashOffers(...words: string[]): string[] {
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const script = `${completionScript(program, 'bash')}
COMP_WORDS=(svc ${quoted}); COMP_CWORD=${words.length}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const run = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' });
  expect(run.stderr).toBe('');
  return run.stdout.split('\n').filter((word) => word !== '');
}

describe('completion', () => {
  test.each(SHELLS)('of %s has every command and option', (shell) => {
    const script = completionScript(program, shell);
    const words = completionNodes(program).flatMap((node) => [
      ...node.commands.map((command) => command.name),
      ...node.options.flatMap((option) =>
        option.names.map((name) => (shell === 'fish' ? name.replace(/^-+/, '') : name)),
      ),
    ]);
    expect(words.filter((word) => !script.includes(word))).toEqual([]);
    expect(words.length).toBeGreaterThan(60);
  });

  test.each(SHELLS)('of %s offers no hidden commands or options', (shell) => {
    expect(completionScript(program, shell)).not.toContain('--value');
  });

  test('bash completes commands, subcommands, options and fixed values', () => {
    expect(bashOffers('bi')).toEqual(['binding']);
    expect(bashOffers('binding', 't')).toEqual(['templates']);
    expect(bashOffers('binding', 'add', '--sch')).toEqual(['--scheme']);
    expect(bashOffers('binding', 'add', 'x', '--scheme', 's')).toEqual(['sigv4-resign']);
    expect(bashOffers('--home', '/x', 'secret', 's')).toEqual(['set']);
    expect(bashOffers('audit', 'list', '--h')).toEqual(['--host', '--help', '--home']);
  });

  test('bash completes system commands after --', () => {
    expect(bashOffers('run', '--', 'bas')).toContain('bash');
  });
});
