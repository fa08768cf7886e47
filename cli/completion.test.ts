import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { completionNodes, completionScript, SHELLS } from './completion.ts';
import { fileURLToPath } from 'node:url';
import { referenceProgram } from './reference/reference_program.ts';
import { loadServices } from './seal/services.ts';

const program = await referenceProgram();

/** The completions that bash offers after these words; the last word is incomplete. */
function bashOffers(...words: string[]): string[] {
  return bashOffersWith('', ...words);
}

/** The same with a program `svc` that answers `svc ... list`. */
function bashOffersWith(svc: string, ...words: string[]): string[] {
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const script = `${svc}
${completionScript(program, 'bash')}
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
    expect(bashOffers('--home', '/x', 'secret', 'se')).toEqual(['set']);
    expect(bashOffers('audit', 'list', '--h')).toEqual(['--host', '--help', '--home']);
  });

  test('bash offers options after a dash, or where nothing else can follow', () => {
    expect(bashOffers('binding', '')).toContain('add');
    expect(bashOffers('binding', '').filter((word) => word.startsWith('-'))).toEqual([]);
    expect(bashOffers('binding', 'list', '')).toContain('--json');
  });

  test('bash offers the values that an option has with any command', () => {
    expect(bashOffers('launch', '--egress', '').toSorted()).toEqual(['open', 'sealed', 'sealed,public']);
  });

  test('bash offers each service that can be sealed', () => {
    const services = loadServices(fileURLToPath(new URL('..', import.meta.url))).map(({ name }) => name);
    expect(bashOffers('seal', '').toSorted()).toEqual(services.toSorted());
    expect(bashOffers('seal', 'gith')).toEqual(['github']);
  });

  test('bash completes what is stored', () => {
    const svc = `svc() { case "$*" in
      'secret list') printf 'vault://user/github\\tpersonal\\nvault://user/npm\\tpersonal\\n' ;;
      'binding list') printf 'api.github.com\\tbearer\\n*.example.test\\tbearer\\n' ;;
      'binding templates') printf 'github-cli\\tGitHub\\n' ;;
      'sessions list') printf 'ses_1\\tname\\n' ;;
      'agents list') printf 'claude\\tClaude Code\\n' ;;
      'connector catalog') printf 'gitlab\\tGitLab API\\n' ;;
    esac; }`;
    expect(bashOffersWith(svc, 'secret', 'rm', 'user/')).toEqual(['user/github', 'user/npm']);
    expect(bashOffersWith(svc, 'binding', 'rm', '')).toContain('api.github.com');
    expect(bashOffersWith(svc, 'sessions', 'stop', 'ses')).toEqual(['ses_1']);
    expect(bashOffersWith(svc, 'audit', 'list', '--session', '')).toEqual(['ses_1']);
    expect(bashOffersWith(svc, 'binding', 'add', 'x', '--credential', 'user/g')).toEqual(['user/github']);
    expect(bashOffersWith(svc, 'binding', 'add', '--from', 'git')).toEqual(['github-cli']);
    for (const command of ['run', 'launch', 'login']) expect(bashOffersWith(svc, command, 'cl')).toEqual(['claude']);
    expect(bashOffersWith(svc, 'login', 'g')).toEqual(['gh']);
    expect(bashOffersWith(svc, 'login', 'claude', '--as', 'a')).toEqual(['account']);
    expect(bashOffersWith(svc, 'login', 'claude', '--secret', 'user/g')).toEqual(['user/github']);
    expect(bashOffersWith(svc, 'connector', 'install', 'gi')).toEqual(['gitlab']);
    expect(bashOffersWith(svc, 'secret', 'rm', '--h')).not.toContain('user/github');
  });

  test('bash expands nothing in a stored name', () => {
    const svc = `svc() { printf '%s\\n' 'ses_$(touch /dev/full/x >&2)' '\`echo ses_2 >&2\`' 'ses_*' 'ses_3'; }`;
    expect(bashOffersWith(svc, 'sessions', 'stop', 'ses')).toEqual(['ses_3']);
  });

  test('bash completes system commands after --', () => {
    expect(bashOffers('run', '--', 'bas')).toContain('bash');
  });
});
