import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestRegistry, type TestRegistry } from './npm_registry.ts';

/** A registry with `@acme/box`, a server that does whatever it is asked for (`box_server.js`), and what it depends on. */
export function startBoxRegistry(): Promise<TestRegistry> {
  const program = readFileSync(join(import.meta.dirname, 'box_server.js'), 'utf8');
  const manifest = { name: '@acme/box', version: '1.0.0', bin: 'cli.js', dependencies: { greeting: '1.0.0' } };
  return startTestRegistry([
    { manifest, entries: [{ path: 'package/cli.js', content: program }] },
    {
      manifest: { name: 'greeting', version: '1.0.0' },
      entries: [{ path: 'package/index.js', content: 'module.exports = "hello";\n' }],
    },
  ]);
}
