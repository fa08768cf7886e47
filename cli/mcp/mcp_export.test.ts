import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { agents } from 'add-mcp';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isJsonWithComments } from './json_with_comments.ts';
import { runCli, TestHome, type RunOptions } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const printed = z.object({
  command: z.string(),
  args: z.array(z.string()),
  path: z.string(),
  configuration: z.string(),
});
const run = (argv: readonly string[], options: RunOptions = {}) => runCli(home, ['mcp', 'export', ...argv], options);
const fileOf = (...parts: string[]) => join(home.path, ...parts);
const textOf = (...parts: string[]) => readFileSync(fileOf(...parts), 'utf8');
const clients = [...Object.keys(agents), 'qwen-code'];

/** The parts of a client's file that start the gateway. */
const entry = z.object({
  mcpServers: z.object({ svc: z.looseObject({ command: z.string(), args: z.array(z.string()) }) }),
});

describe('svc mcp export', () => {
  test.each(clients)('prints a configuration for %s that starts the gateway and has no secret', async (client) => {
    const result = await run(['--client', client, '--json']);
    const { command, args, configuration } = printed.parse(JSON.parse(result.stdout));
    expect(command).toMatch(/^\/.*\/bin\/svc$/);
    expect(args).toEqual(['mcp', 'gateway', '--home', home.path]);
    expect(configuration).toContain('gateway');
    expect(configuration).toContain('bin/svc');
    expect(result.code).toBe(0);
    // The name of a temporary folder may have any letters.
    expect(configuration.replaceAll(home.path, '')).not.toMatch(/token|key|secret|vault:/i);
  });

  test('prints only the text on stdout, and its path on stderr', async () => {
    const result = await run(['--client', 'cursor']);
    expect(entry.parse(JSON.parse(result.stdout)).mcpServers.svc.args.slice(0, 2)).toEqual(['mcp', 'gateway']);
    expect(result.stderr).toContain('.cursor/mcp.json');
  });

  test('writes nothing without --write', async () => {
    await run(['--client', 'cursor', '--project']);
    expect(existsSync(fileOf('.cursor'))).toBe(false);
  });

  test.each([
    ['claude', '.mcp.json'],
    ['cursor', '.cursor/mcp.json'],
    ['vscode', '.vscode/mcp.json'],
    ['codex', '.codex/config.toml'],
    ['gemini', '.gemini/settings.json'],
    ['qwen', '.qwen/settings.json'],
  ])('accepts %s as a client name', async (name, path) => {
    const result = await run(['--client', name, '--project', '--write']);
    expect(result.stdout).toBe(`${fileOf(path)}\n`);
    expect(textOf(path)).toContain('gateway');
    expect(statSync(fileOf(path)).mode & 0o777).toBe(0o600);
  });

  test('lists clients with the paths of their configurations', async () => {
    const result = await run(['--list', '--json']);
    const rows = z
      .array(z.object({ client: z.string(), aliases: z.array(z.string()), path: z.string() }))
      .parse(JSON.parse(result.stdout));
    expect(rows.map(({ client }) => client)).toEqual(clients.toSorted());
    expect(rows.find(({ client }) => client === 'claude-code')?.aliases).toEqual(['claude']);
  });

  test('keeps the rest of a file including comments, and makes a copy', async () => {
    const before =
      '{\n  // mine\n  "mcpServers": { "other": { "command": "x", "env": { "K": "hush" } }, },\n  "theme": "dark"\n}\n';
    mkdirSync(fileOf('.cursor'));
    writeFileSync(fileOf('.cursor', 'mcp.json'), before);
    chmodSync(fileOf('.cursor', 'mcp.json'), 0o644);
    const result = await run(['--client', 'cursor', '--project', '--write', '--json']);
    const text = textOf('.cursor', 'mcp.json');
    expect(text).toContain('// mine');
    expect(text).toContain('"hush"');
    expect(text).toContain('"theme": "dark"');
    expect(text).toContain('"gateway"');
    expect(statSync(fileOf('.cursor', 'mcp.json')).mode & 0o777).toBe(0o644);
    const { backup } = z.object({ backup: z.string() }).parse(JSON.parse(result.stdout));
    expect(readFileSync(backup, 'utf8')).toBe(before);
    expect(result.stdout + result.stderr).not.toContain('hush');
  });

  test('changes nothing on a second run', async () => {
    await run(['--client', 'cursor', '--project', '--write']);
    const before = textOf('.cursor', 'mcp.json');
    const result = await run(['--client', 'cursor', '--project', '--write', '--json']);
    expect(JSON.parse(result.stdout)).toMatchObject({ changed: false, backup: null });
    expect(textOf('.cursor', 'mcp.json')).toBe(before);
    expect(readdirSync(fileOf('.cursor'))).toEqual(['mcp.json']);
  });

  test('writes the target of a link', async () => {
    writeFileSync(fileOf('real.json'), '{}');
    symlinkSync(fileOf('real.json'), fileOf('link.json'));
    expect((await run(['--client', 'cursor', '--file', 'link.json', '--write'])).code).toBe(0);
    expect(lstatSync(fileOf('link.json')).isSymbolicLink()).toBe(true);
    expect(entry.safeParse(JSON.parse(textOf('real.json'))).success).toBe(true);
  });

  test.each([
    ['cursor', '{ "mcpServers": { "other": '],
    ['cursor', 'not json'],
    ['codex', 'a = = b'],
  ])('does not touch a damaged file of %s', async (client, text) => {
    writeFileSync(fileOf('damaged'), text);
    const result = await run(['--client', client, '--file', 'damaged', '--write']);
    expect([result.code, textOf('damaged')]).toEqual([1, text]);
    expect(result.stderr).toContain('cannot be changed');
    expect(readdirSync(home.path).filter((name) => /bak|tmp/.test(name))).toEqual([]);
  });

  test('names the program of this checkout; in a project "svc" if that is the same program', async () => {
    mkdirSync(fileOf('bin'));
    writeFileSync(fileOf('bin', 'svc'), '#!/bin/sh\n', { mode: 0o755 });
    const commandWith = async (...argv: string[]) => {
      const result = await run(['--client', 'cursor', '--json', ...argv], { env: { PATH: fileOf('bin') } });
      return printed.parse(JSON.parse(result.stdout)).command;
    };
    const program = await commandWith();
    expect(await commandWith('--project')).toBe(program);
    mkdirSync(fileOf('linked'));
    symlinkSync(program, fileOf('linked', 'svc'));
    const linked = await run(['--client', 'cursor', '--json', '--project'], { env: { PATH: fileOf('linked') } });
    expect(printed.parse(JSON.parse(linked.stdout)).command).toBe('svc');
  });

  test('names the state directory only if it is not the default', async () => {
    const result = await run(['--client', 'cursor', '--json', '--home', fileOf('.svc')]);
    expect(printed.parse(JSON.parse(result.stdout)).args).toEqual(['mcp', 'gateway']);
  });

  test.each([
    [[], '--client is missing'],
    [['--client', 'curser'], 'cursor'],
    [['--client', '__proto__'], 'is not a known client'],
    [['--client', 'windsurf', '--project'], 'no project configuration'],
    [['--client', 'cursor', '--name', 'A B'], '--name is invalid'],
    [['--client', 'cursor', '--file', ''], '--file is empty'],
  ])('refuses %j', async (argv, message) => {
    const result = await run(argv);
    expect([result.code, result.stdout]).toEqual([2, '']);
    expect(result.stderr).toContain(message);
  });

  test("restores the library's global state", async () => {
    const before = clients.map((name) => [
      name,
      Object.entries(agents).find(([key]) => key === name)?.[1].resolveConfigPath,
    ]);
    await run(['--client', 'cursor', '--json']);
    await run(['--client', 'opencode', '--json']);
    expect(
      clients.map((name) => [name, Object.entries(agents).find(([key]) => key === name)?.[1].resolveConfigPath]),
    ).toEqual(before);
  });
});

describe('JSON with comments', () => {
  test.each([
    '{}',
    '{ "a": 1, }',
    '[1, 2,\n]',
    '// x\n{ "a": "// no comment, }" } /* y */',
    '\uFEFF{}',
    '{"a":"\\"//"}',
  ])('%s', (text) => {
    expect(isJsonWithComments(text)).toBe(true);
  });
  test.each(['', '{', '{ "a": }', '{ a: 1 }', '{,}', '{} x', '"a\nb"', '/* {}'])('not %s', (text) => {
    expect(isJsonWithComments(text)).toBe(false);
  });
});
