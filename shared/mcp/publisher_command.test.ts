import { describe, expect, test } from 'vitest';
import { publisherCommand } from './publisher_command.ts';

const none = { name: '', value: null, value_hint: null, default: null, repeated: false } as const;
const bare = { identifier: '@acme/weather', runtime_hint: null, runtime_arguments: [], package_arguments: [] };

describe('the command of a publisher', () => {
  test('is null if only the package is named', () => {
    expect(publisherCommand(bare)).toBeNull();
    expect(publisherCommand({ ...bare, runtime_hint: '' })).toBeNull();
  });

  test('is the program, its arguments, the package and its arguments', () => {
    const item = {
      ...bare,
      runtime_hint: 'npx',
      runtime_arguments: [{ ...none, type: 'named', name: '-y' }],
      package_arguments: [
        { ...none, type: 'positional', value: 'serve' },
        { ...none, type: 'named', name: '--port', default: '80' },
        { ...none, type: 'positional', value_hint: 'dir', repeated: true },
      ],
    } as const;
    const words = ['npx', '-y', '@acme/weather', 'serve', '--port', '80', '{dir}', '...'];
    expect(publisherCommand(item)).toEqual(words);
  });

  test('has a placeholder for a secret, and never its value', () => {
    const argument = { ...none, type: 'named', name: '--key', value_hint: 'api key' } as const;
    expect(publisherCommand({ ...bare, package_arguments: [argument] })).toEqual([
      '@acme/weather',
      '--key',
      '{api key}',
    ]);
    expect(publisherCommand({ ...bare, package_arguments: [{ ...none, type: 'positional' }] })?.at(-1)).toBe('{value}');
  });
});
