// Which unit test files `npm run ok` need not run again: those that passed, and since then nothing that they load or name has
// changed. `npm test` runs them all. Plain JavaScript, like test.mjs.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

const TEST = /^(shared|machine|sandbox|gateway|sidecar|cli|worker|tools|catalog)\/.*\.test\.ts$/;
/** A test depends on the code that it reaches by imports and names, and on every file that is neither code nor documentation. */
const CODE = /\.(ts|mjs|js)$/;
const DOCUMENTATION = /\.md$|^docs\//;
/** These tests read whole folders, and so depend on every file. */
const READS_ALL = /^(tools|cli\/reference)\//;
/** A test reads this folder, which is more than code. */
const READ_BY_ALL = /^sandbox\/image\//;
const LEFT_OUT = new Set(['.git', 'node_modules', '.wrangler']);

const byName = (one, other) => (one < other ? -1 : 1);
const isCommon = (path) => !(CODE.test(path) || DOCUMENTATION.test(path)) || READ_BY_ALL.test(path);
const hashOf = (text) => createHash('sha256').update(text).digest('base64url');

/** The content of each file of the checkout by its path, without installed packages. */
export function readFiles(root) {
  const files = new Map();
  const read = (folder) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory() && !LEFT_OUT.has(entry.name)) read(path);
      else if (entry.isFile()) files.set(path, readFileSync(join(root, path), 'latin1'));
    }
  };
  read('.');
  return files;
}

/** The files that the code of `path` imports or names: relative to it or to the project's folder, with or without their extension. */
export function findNamed(path, text, files) {
  const loaded = text.replaceAll(/^(import|export) type [^;]*;$/gm, '');
  const named = new Set();
  for (const [word] of loaded.matchAll(/[\w.@-]+(?:\/[\w.@-]+)+|[\w@-]+\.[\w.]+/g)) {
    for (const name of [posix.join(posix.dirname(path), word), posix.normalize(word)]) {
      for (const file of [name, `${name}.ts`]) if (files.has(file)) named.add(file);
    }
  }
  named.delete(path);
  return [...named];
}

/** A key for each unit test file: the same as long as neither the machine nor a file that it depends on has changed. */
export function keyTests(files, machine) {
  const hashes = new Map(Array.from(files, ([path, text]) => [path, hashOf(text)]));
  const paths = [...files.keys()].toSorted(byName);
  const describe = (of) => of.map((path) => `${path} ${hashes.get(path)}`).join('\n');
  const common = hashOf(describe(paths.filter(isCommon)));
  const named = new Map();
  const namedBy = (path) => {
    if (!named.has(path)) named.set(path, CODE.test(path) ? findNamed(path, files.get(path), files) : []);
    return named.get(path);
  };
  const reach = (test) => {
    const reached = new Set([test]);
    for (const path of reached) for (const each of namedBy(path)) reached.add(each);
    return [...reached].toSorted(byName);
  };
  const keyOf = (test) => hashOf(`${machine}\n${common}\n${describe(READS_ALL.test(test) ? paths : reach(test))}`);
  return new Map(paths.filter((path) => TEST.test(path)).map((test) => [test, keyOf(test)]));
}

/** The keys with which test files passed. */
export class PassedTests {
  #file;
  #keys;

  constructor(file) {
    this.#file = file;
    this.#keys = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  }

  has(test, key) {
    return this.#keys[test] === key;
  }

  /** Keeps what passed now, and of the rest what has not changed since it passed. */
  keep(keys, ran, passed) {
    const kept = Array.from(keys).filter(([test, key]) => (ran.has(test) ? passed.has(test) : this.has(test, key)));
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(this.#file, JSON.stringify(Object.fromEntries(kept)));
  }
}
