import { expect, test } from 'vitest';
import { containerImageOf } from './container_image.ts';

test.each<readonly [string, readonly string[], object | null]>([
  ['a plain run', ['docker', 'run', 'acme/mcp:1.2'], { reference: 'acme/mcp:1.2', index: 2, platform: null }],
  [
    'options before it and words after it that look like an image',
    ['/usr/bin/docker', 'container', 'run', '-i', '-e', 'run', '--name=x', 'acme/mcp:1.2', 'run', 'acme/mcp:1.3'],
    { reference: 'acme/mcp:1.2', index: 7, platform: null },
  ],
  [
    'the last platform',
    ['docker', 'run', '--platform', 'linux/amd64', '--platform=linux/arm64', 'acme/mcp:1.2'],
    { reference: 'acme/mcp:1.2', index: 5, platform: 'linux/arm64' },
  ],
  ['another program', ['npx', 'run', 'acme/mcp:1.2'], null],
  ['no image', ['docker', 'run', '-i'], null],
  ['an option that is never allowed', ['docker', 'run', '--privileged', 'acme/mcp:1.2'], null],
  ['another command of docker', ['docker', 'exec', 'x'], null],
])('finds the image in %s', (_, command, found) => {
  expect(containerImageOf({ command })).toEqual(found);
});
