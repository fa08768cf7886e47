import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CollectedTree } from './collected_tree.ts';
import { readTar } from './tar_reader.ts';
import { archive, paxEntry, type ArchiveEntry } from './testing/tar_archive.ts';

const AGENT = 1000;
let world: string;
let root: string;
beforeEach(() => {
  world = mkdtempSync(join(tmpdir(), 'svc-collect-'));
  root = join(world, 'root');
  mkdirSync(root);
  writeFileSync(join(world, 'outside'), 'untouched');
});
afterEach(() => {
  expect(readFileSync(join(world, 'outside'), 'utf8')).toBe('untouched');
  expect(readdirSync(world).toSorted()).toEqual(['outside', 'root']);
  rmSync(world, { recursive: true, force: true });
});

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

async function collect(
  entries: readonly ArchiveEntry[],
  limits = { maxBytes: 1000, maxEntries: 20 },
  size = 4096,
): Promise<void> {
  const tree = new CollectedTree(root, 'out', limits, ({ uid, mode }) => uid === AGENT || (mode & 0o004) !== 0);
  try {
    await readTar(pieces(archive(...entries), size), tree);
    await tree.finish();
  } finally {
    await tree.abandon();
  }
}

async function readAll(bytes: Buffer): Promise<void> {
  const tree = new CollectedTree(root, 'out', { maxBytes: 10_000, maxEntries: 20 }, () => true);
  try {
    await readTar(pieces(bytes, 512), tree);
  } finally {
    await tree.abandon();
  }
}

const DIR: ArchiveEntry = { name: 'dir/', type: '5', mode: 0o755 };

describe('what is collected', () => {
  test('is written under its own name, for any size of the pieces', async () => {
    const entries = [DIR, { name: 'dir/a', content: 'x'.repeat(600) }, { name: 'dir/b', mode: 0o4755, content: 'run' }];
    for (const size of [1, 7, 512, 100_000]) {
      await collect(entries, undefined, size);
      expect(readFileSync(join(root, 'out', 'a'), 'utf8')).toBe('x'.repeat(600));
      expect(statSync(join(root, 'out', 'b')).mode & 0o7111).toBe(0o111);
      expect(statSync(join(root, 'out', 'a')).mode & 0o7111).toBe(0);
      rmSync(join(root, 'out'), { recursive: true });
    }
  });

  test('a single file gets the requested name', async () => {
    await collect([{ name: 'size.txt', content: '5' }]);
    expect(readFileSync(join(root, 'out'), 'utf8')).toBe('5');
  });

  test('long names and sizes are read from extended headers', async () => {
    const long = `dir/${'n'.repeat(200)}`;
    await collect([DIR, paxEntry({ path: long, size: '3' }), { name: 'short', content: 'abc' }]);
    expect(readFileSync(join(root, 'out', 'n'.repeat(200)), 'utf8')).toBe('abc');
    rmSync(join(root, 'out'), { recursive: true });
    await collect([DIR, { name: 'L', type: 'L', content: `${long}\0` }, { name: 'short', content: 'gnu' }]);
    expect(readFileSync(join(root, 'out', 'n'.repeat(200)), 'utf8')).toBe('gnu');
  });

  test('links within the output are created', async () => {
    await collect([
      DIR,
      { name: 'dir/sub', type: '5' },
      { name: 'dir/a', content: 'a' },
      { name: 'dir/sub/up', type: '2', target: '../a' },
      { name: 'dir/hard', type: '1', target: 'dir/a' },
    ]);
    expect(readlinkSync(join(root, 'out', 'sub', 'up'))).toBe('../a');
    expect(readFileSync(join(root, 'out', 'sub', 'up'), 'utf8')).toBe('a');
    expect(readFileSync(join(root, 'out', 'hard'), 'utf8')).toBe('a');
  });

  test.each<[string, ArchiveEntry[], string]>([
    ['a name that climbs', [DIR, { name: 'dir/../../outside', content: 'x' }], 'leads elsewhere'],
    ['an absolute name', [{ name: '/tmp/x', content: 'x' }], 'leads elsewhere'],
    ['a name with a dot part', [DIR, { name: 'dir/./a' }], 'leads elsewhere'],
    [
      'a climbing name in an extended header',
      [DIR, paxEntry({ path: 'dir/../../outside' }), { name: 'x' }],
      'leads elsewhere',
    ],
    ['a NUL in an extended name', [DIR, paxEntry({ path: 'dir/a\0b' }), { name: 'x' }], 'leads elsewhere'],
    [
      'a file through a link',
      [DIR, { name: 'dir/l', type: '2', target: 'sub' }, { name: 'dir/l/x', content: 'x' }],
      'no folder of the output',
    ],
    [
      'a folder in place of a link',
      [DIR, { name: 'dir/l', type: '2', target: 'sub' }, { name: 'dir/l', type: '5' }],
      'is there twice',
    ],
    ['a file twice', [DIR, { name: 'dir/a' }, { name: 'dir/a' }], 'is there twice'],
    ['a file in place of a folder', [DIR, { name: 'dir' }], 'is there twice'],
    ['an absolute link', [DIR, { name: 'dir/l', type: '2', target: '/etc/shadow' }], 'a link that leads elsewhere'],
    ['a climbing link', [DIR, { name: 'dir/l', type: '2', target: '../outside' }], 'a link that leads elsewhere'],
    [
      'a link that climbs on its way',
      [DIR, { name: 'dir/l', type: '2', target: 'sub/../../x' }],
      'a link that leads elsewhere',
    ],
    ['the output itself as a link', [{ name: 'dir', type: '2', target: 'x' }], 'a link that leads elsewhere'],
    ['an empty link', [DIR, { name: 'dir/l', type: '2', target: '' }], 'a link that leads elsewhere'],
    ['a hard link out', [DIR, { name: 'dir/h', type: '1', target: '/etc/passwd' }], 'a hard link to something else'],
    [
      'a hard link to a link',
      [DIR, { name: 'dir/l', type: '2', target: 'a' }, { name: 'dir/h', type: '1', target: 'dir/l' }],
      'a hard link to something else',
    ],
    ['a character device', [DIR, { name: 'dir/c', type: '3' }], 'a device, a pipe or a socket'],
    ['a block device', [DIR, { name: 'dir/b', type: '4' }], 'a device, a pipe or a socket'],
    ['a pipe', [DIR, { name: 'dir/p', type: '6' }], 'a device, a pipe or a socket'],
    ['a type of the future', [DIR, { name: 'dir/z', type: 'Z' }], 'a device, a pipe or a socket'],
    ["root's own file", [DIR, { name: 'dir/shadow', uid: 0, mode: 0o640 }], 'is not readable for the user'],
    ['too many bytes', [DIR, { name: 'dir/a', content: 'x'.repeat(1001) }], 'more than 1000 bytes'],
    ['too many files', [DIR, ...Array.from({ length: 20 }, (_, n) => ({ name: `dir/${n}` }))], 'more than 20 files'],
    ['nothing', [], 'is not there'],
  ])('is refused with %s', async (_what, entries, problem) => {
    await expect(collect(entries)).rejects.toThrow(problem);
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      expect(lstatSync(join(root, name)).isSymbolicLink()).toBe(false);
    }
  });

  test('names in messages cannot control a terminal', async () => {
    await expect(collect([DIR, { name: 'dir/\u001b[2J', type: '6' }])).rejects.toThrow(
      /^was not taken: "out\/\\\\x1b\[2J" in it/,
    );
  });
});

describe('a malformed archive', () => {
  const whole = archive(DIR, { name: 'dir/a', content: 'x'.repeat(600) });
  test.each([
    ['a cut header', whole.subarray(0, 600), 'in the middle of a header'],
    ['a cut file', whole.subarray(0, 1300), 'in the middle of a file'],
    ['a wrong checksum', Buffer.concat([whole.subarray(0, 1), Buffer.from('X'), whole.subarray(2)]), 'checksum'],
    ['a huge extended header', archive({ name: 'pax', type: 'x', size: 70_000 }), 'too long'],
    ['a damaged extended header', archive({ name: 'pax', type: 'x', content: '99 path=x\n' }), 'damaged'],
    ['a size that is no number', archive(paxEntry({ size: '-1' }), { name: 'x' }), 'no number'],
  ])('is refused: %s', async (_what, bytes, problem) => {
    await expect(readAll(bytes)).rejects.toThrow(problem);
  });
});

test('what follows the end of the archive is read too, so that the program that writes it can end', async () => {
  let isReadToEnd = false;
  const source = async function* () {
    yield archive(DIR);
    yield Buffer.alloc(10_240);
    yield Buffer.alloc(10_240);
    isReadToEnd = true;
  };
  const tree = new CollectedTree(root, 'out', { maxBytes: 10_000, maxEntries: 20 }, () => true);
  await readTar(source(), tree);
  await tree.finish();
  expect(isReadToEnd).toBe(true);
});
