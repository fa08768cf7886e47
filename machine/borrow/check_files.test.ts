import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sha256Hex } from '../sha256.ts';
import { checkCommand } from './check_files.ts';

const AS = { uid: process.getuid?.() ?? 0 };
let folder: string;
let program: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-borrow-')));
  program = put('tool', '#!/bin/sh\necho planted\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(name: string, text: string, mode = 0o700): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  chmodSync(path, mode);
  return path;
}

const check = (path: string, args: readonly string[] = [], as = AS) => checkCommand(path, args, as);

test('takes a program of the system by its place, so that an update needs no new consent', async () => {
  expect(await check('/usr/bin/env')).toEqual({ ok: true, value: [{ path: '/usr/bin/env', sha256: null }] });
});

test('takes a program that the user can change with its content', async () => {
  const before = await check(program);
  expect(before).toEqual({ ok: true, value: [{ path: program, sha256: sha256Hex('#!/bin/sh\necho planted\n') }] });
  put('tool', '#!/bin/sh\necho other\n');
  expect(await check(program)).not.toEqual(before);
});

test('follows links to what runs, and keeps the name that was typed', async () => {
  const link = join(folder, 'link');
  symlinkSync(program, link);
  const found = await check(link);
  expect(found).toEqual({ ok: true, value: [{ path: link, sha256: sha256Hex('#!/bin/sh\necho planted\n') }] });
  const circle = join(folder, 'circle');
  symlinkSync(circle, circle);
  expect(await check(circle)).toEqual({ ok: false, error: `${circle} leads in a circle of links.` });
});

test('counts a script that an interpreter is given, and an argument that is a program', async () => {
  const script = put('script.py', 'print(1)', 0o600);
  const hash = sha256Hex('print(1)');
  expect(await check('/usr/bin/env', [script])).toMatchObject({ value: [{}, { path: script, sha256: hash }] });
  expect(await check('/usr/bin/env', [`--require=${script}`])).toMatchObject({ value: [{}, { path: script }] });
  const data = put('token', 'planted', 0o600);
  expect(await check('/usr/bin/cat', [`--file=${data}`])).toMatchObject({ value: [{ path: '/usr/bin/cat' }] });
  expect(await check('/usr/bin/cat', [data])).toMatchObject({ value: [{ path: '/usr/bin/cat' }] });
  expect(await check('/usr/bin/cat', [program])).toMatchObject({ value: [{}, { path: program }] });
});

test('refuses a path through which every user could put another program there', async () => {
  chmodSync(program, 0o777);
  expect(await check(program)).toEqual({ ok: false, error: expect.stringContaining(`run chmod o-w ${program}`) });
  chmodSync(program, 0o700);
  const open = join(folder, 'open');
  mkdirSync(open);
  const below = put('open/tool', 'x');
  chmodSync(open, 0o777);
  expect(await check(below)).toEqual({
    ok: false,
    error: expect.stringContaining(`${open} can be changed by every user`),
  });
});

test('refuses what belongs to another user', async () => {
  const isRoot = AS.uid === 0;
  if (isRoot) chownSync(program, 12_345, 0);
  const error = expect.stringContaining('belongs to another user');
  expect(await check(program, [], isRoot ? AS : { uid: AS.uid + 1 })).toEqual({ ok: false, error });
});

test.each([
  ['tool', 'tool is no absolute path.'],
  ['/usr/bin/../bin/env', '/usr/bin/../bin/env is no absolute path.'],
  ['/nonexistent/tool', '/nonexistent cannot be looked at (ENOENT).'],
  ['/usr/bin', '/usr/bin is no file.'],
  ['/etc/passwd', '/etc/passwd is no program: nobody may execute it.'],
])('refuses %s', async (path, error) => {
  expect(await check(path)).toEqual({ ok: false, error });
});

test.each([
  ['/bin/sh', '-c'],
  ['/usr/bin/env', 'sh', '-c'],
])('refuses %s %s with code, which names programs that would not be compared', async (...command) => {
  const [path = '', ...args] = command;
  expect(await check(path, [...args, `${program} get`])).toEqual({
    ok: false,
    error: expect.stringContaining('write it into a script of your own'),
  });
});
