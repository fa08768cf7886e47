/**
 * How well the marketplace ranks: the mean reciprocal rank of the search set over a dump of a registry, which is the JSON
 * of its list API in one page. Run with `node bench/marketplace_ranking.ts DUMP.json`; prints the searches whose expected
 * server is not first, and exits 1 below the target.
 */
import { readFileSync } from 'node:fs';
import { LEAST_MEAN_RANK, rankSearches } from '../worker/marketplace/testing/rank_searches.ts';
import { figure } from './table.ts';

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error('name the file of a dump');
const { servers, searches, mean, misses } = rankSearches(JSON.parse(readFileSync(path, 'utf8')));
for (const { q, place, found } of misses) process.stdout.write(`${place ?? '-'}\t${q}\t${found.join(' ')}\n`);
process.stdout.write(`mean reciprocal rank ${figure(mean)} of ${searches} searches, ${servers} servers\n`);
process.exitCode = mean >= LEAST_MEAN_RANK ? 0 : 1;
