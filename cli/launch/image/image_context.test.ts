import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type ImageContext, makeImageContext, plainJavaScript } from './image_context.ts';

const SOURCE = join(import.meta.dirname, '..', '..', '..', 'sandbox', 'image');
let made: ImageContext | null = null;

afterEach(() => made?.remove());

async function contextWith(node: string | null): Promise<ImageContext> {
  made = await makeImageContext(SOURCE, node);
  return made;
}

describe('the build folder of an image', () => {
  test('has the programs and no tests', async () => {
    const { path } = await contextWith(null);
    const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
    expect(names).toEqual(expect.arrayContaining(['Dockerfile', 'svc-run-step', 'svc-mcp', 'mcp/svc_mcp.mjs']));
    expect(names.filter((name) => name.endsWith('.ts') || name === 'mcp/node')).toEqual([]);
    expect(statSync(join(path, 'svc-mcp')).mode & 0o777).toBe(0o755);
  });

  test('has a Node if svc-mcp needs one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-node-'));
    const node = join(folder, 'node');
    writeFileSync(node, 'a program');
    chmodSync(node, 0o700);
    const { path } = await contextWith(node);
    expect(readFileSync(join(path, 'mcp', 'node'), 'utf8')).toBe('a program');
    expect(statSync(join(path, 'mcp', 'node')).mode & 0o777).toBe(0o755);
    rmSync(folder, { recursive: true });
  });

  test('has an svc-mcp that runs without the checkout', async () => {
    const { path } = await contextWith(null);
    const said = execFileSync(process.execPath, [join(path, 'mcp', 'svc_mcp.mjs'), '--check'], { encoding: 'utf8' });
    expect(said).toBe(`node=${process.version}\n`);
  });

  test('can be removed', async () => {
    const { path, remove } = await contextWith(null);
    await remove();
    expect(existsSync(path)).toBe(false);
  });
});

test('types are stripped, and imports name the written files', () => {
  const text = "import { type A, b } from './some_file.ts';\nimport { c } from 'node:fs';\nconst d: A = b;\n";
  const plain = plainJavaScript(text);
  expect(plain).toContain("from './some_file.mjs';");
  expect(plain).toContain("from 'node:fs';");
  expect(plain).not.toContain(': A');
});
