import { describe, expect, test } from 'vitest';
import { npmSpecText, readNpmCommand } from './npm_command.ts';

describe('a command with npx', () => {
  test.each([
    [['npx', '-y', 'a@1.2.3'], 'a@1.2.3', []],
    [['npx', '-y', '@b/a@1.2.3', '--root', '/x'], '@b/a@1.2.3', ['--root', '/x']],
    [['npx', '--yes', '--', 'a@1.2.3', '--', '-y'], 'a@1.2.3', ['--', '-y']],
    [['npx', 'a'], 'a@latest', []],
    [['npx', 'a@^1'], 'a@^1', []],
  ])('%j runs the program of %s', (command, spec, args) => {
    const read = readNpmCommand(command);
    expect([read && npmSpecText(read.spec), read?.args]).toEqual([spec, args]);
  });

  test.each([
    [['/usr/bin/npx', '-y', 'a@1.2.3']],
    [['npx']],
    [['npx', '-y']],
    [['npx', '--package=a@1.2.3', 'b']],
    [['npx', '-p', 'a@1.2.3', 'b']],
    [['npx', '-c', 'a']],
    [['npx', '-y', 'github:a/b']],
    [['npx', '-y', 'https://example.com/a.tgz']],
    [['npx', '-y', './a']],
    [['npx', '-y', 'a@npm:b@1.2.3']],
    [['node', 'a@1.2.3']],
    [[]],
  ])('%j is started as it is', (command) => {
    expect(readNpmCommand(command)).toBeNull();
  });
});
