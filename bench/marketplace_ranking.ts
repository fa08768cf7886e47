/**
 * How well the marketplace ranks: the mean reciprocal rank of the search set over a dump of a registry, which is the JSON
 * of its list API in one page. Run with `node bench/marketplace_ranking.ts DUMP.json`; prints the searches whose expected
 * server is not first, and exits 1 below the target.
 */
import { readFileSync } from 'node:fs';
import { readRegistryRecord } from '../worker/marketplace/registry_record.ts';
import { ServerIndex } from '../worker/marketplace/server_index.ts';
import { SEARCH_SET } from './marketplace_search_set.ts';
import { figure } from './table.ts';

const TARGET = 0.8;
const ALL = { transport: null, registryType: null, needsSecret: null, publisher: null };
/** An expected server further down counts as not found. */
const DEPTH = 50;

function readDump(path: string): ServerIndex {
  const dump: unknown = JSON.parse(readFileSync(path, 'utf8'));
  const list = typeof dump === 'object' && dump !== null && 'servers' in dump ? dump.servers : null;
  if (!Array.isArray(list)) throw new Error(`${path} is no list of servers`);
  const entries: readonly unknown[] = list;
  const records = entries.map((entry) => readRegistryRecord(entry)).filter((record) => record !== null);
  const index = new ServerIndex();
  const listed = records.filter(({ isLatest, state }) => isLatest && state !== 'deleted');
  index.replace('', listed, { change: 0, nowMs: 0 });
  return index;
}

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error('name the file of a dump');
const index = readDump(path);
let sum = 0;
for (const { q, first } of SEARCH_SET) {
  const found = index.search({ ...ALL, text: q }, null, DEPTH).map(({ name }) => name);
  const place = found.findIndex((name) => first.includes(name)) + 1;
  sum += place === 0 ? 0 : 1 / place;
  if (place !== 1) process.stdout.write(`${place === 0 ? '-' : place}\t${q}\t${found.slice(0, 3).join(' ')}\n`);
}
const mean = sum / SEARCH_SET.length;
process.stdout.write(`mean reciprocal rank ${figure(mean)} of ${SEARCH_SET.length} searches, ${index.size} servers\n`);
process.exitCode = mean >= TARGET ? 0 : 1;
