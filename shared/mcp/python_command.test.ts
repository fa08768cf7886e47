import { describe, expect, test } from 'vitest';
import { installKey, packageText, readPackageCommand } from './package_command.ts';
import { pythonRequirement, readPythonCommand } from './python_command.ts';

describe('a command with a runner of Python packages', () => {
  test.each([
    [['uvx', 'acme@1.2.3'], 'acme==1.2.3', 'acme', []],
    [
      ['uvx', '-q', '--no-cache', 'Acme_Server@1.2.3', '--root', '/x'],
      'acme-server==1.2.3',
      'Acme_Server',
      ['--root', '/x'],
    ],
    [['uvx', 'acme'], 'acme', 'acme', []],
    [['uvx', 'acme@latest', '-q'], 'acme', 'acme', ['-q']],
    [['uvx', 'acme[cli,b]==1.0rc1'], 'acme[cli,b]==1.0rc1', 'acme', []],
    [['uvx', '--from', 'acme==1.0', 'serve', 'now'], 'acme==1.0', 'serve', ['now']],
    [['uv', 'tool', 'run', '--from', 'acme[cli]@1.0', 'serve'], 'acme[cli]==1.0', 'serve', []],
    [['pipx', 'run', 'acme==1.0', 'a'], 'acme==1.0', 'acme', ['a']],
    [['pipx', 'run', '--spec', 'acme==1.0', 'serve'], 'acme==1.0', 'serve', []],
  ])('%j runs a program of %s', (command, requirement, program, args) => {
    const read = readPythonCommand(command);
    expect(read && [pythonRequirement(read.spec), read.spec.program, read.args]).toEqual([requirement, program, args]);
  });

  test.each([
    [['/usr/bin/uvx', 'acme@1.2.3']],
    [['uvx']],
    [['uvx', '-q']],
    [['uvx', '--from', 'acme']],
    [['uvx', '--python', '3.13', 'acme@1.0']],
    [['uvx', '--with', 'b==1.0', 'acme@1.0']],
    [['uvx', '--from', 'acme==1.0', '--with', 'b', 'serve']],
    [['uvx', '--from', 'acme==1.0', '../serve']],
    [['uvx', '--offline', 'acme@1.0']],
    [['uvx', 'acme>=1.0']],
    [['uvx', 'acme@main']],
    [['uvx', 'git+https://example.com/a']],
    [['uvx', 'https://example.com/a.whl']],
    [['uvx', './a']],
    [['uv', 'run', 'acme']],
    [['pipx', 'install', 'acme']],
    [['python', '-m', 'acme']],
    [[]],
  ])('%j is started as it is', (command) => {
    expect(readPythonCommand(command)).toBeNull();
  });
});

test('npm and Python packages of one name are two installs', () => {
  const specs = [
    ['npx', 'acme@1.0.0'],
    ['uvx', 'acme@1.0.0'],
    ['uvx', '--from', 'acme==1.0.0', 'b'],
  ].map((command) => {
    const read = readPackageCommand(command);
    return read === null ? [] : [read.spec.kind, packageText(read.spec), installKey(read.spec)];
  });
  expect(specs).toEqual([
    ['npm', 'acme@1.0.0', 'acme@1.0.0'],
    ['pypi', 'acme@1.0.0', 'acme@1.0.0 acme'],
    ['pypi', 'acme@1.0.0', 'acme@1.0.0 b'],
  ]);
});
