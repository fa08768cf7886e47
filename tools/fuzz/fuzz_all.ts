/**
 * Fuzzes all code that reads untrusted input, guided by the blocks of code that an input reaches. Each part is compared with
 * a slow and obvious second implementation. Run: `node tools/fuzz/fuzz_all.ts [--seconds N] [--seed N] [--only NAME]`. Prints the
 * smallest failing input and exits 1.
 */
import { argv, exit, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { BlockCoverage } from './fuzz_coverage.ts';
import { fuzz } from './fuzz_engine.ts';
import { FUZZ_TARGETS } from './fuzz_targets.ts';

const { values } = parseArgs({
  args: argv.slice(2),
  options: { seconds: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' } },
});
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
const chosen = FUZZ_TARGETS.filter((target) => target.name.includes(values.only ?? ''));
const secondsEach = Number(values.seconds ?? 60) / Math.max(1, chosen.length);
if (chosen.length === 0 || !(secondsEach > 0) || !Number.isInteger(seed)) {
  const names = FUZZ_TARGETS.map((target) => target.name).join(', ');
  stdout.write(`fuzz_all: --seconds and --seed are numbers, --only is a part of one of: ${names}\n`);
  exit(2);
}

const coverage = new BlockCoverage();
let failed = false;
for (const target of chosen) {
  const until = Date.now() + secondsEach * 1000;
  const result = fuzz(target, { seed, goOn: () => Date.now() < until, blocksRun: () => coverage.take() });
  const { runs, kept, seedBlocks, blocks, failure } = result;
  const verdict = failure === null ? 'ok' : 'FAILED';
  stdout.write(
    `${verdict} ${target.name}: ${runs} inputs, ${kept} kept, blocks ${seedBlocks} -> ${blocks}, seed ${seed}\n`,
  );
  if (failure === null) continue;
  failed = true;
  stdout.write(`  input ${JSON.stringify(failure.input)}\n  ${failure.problem}\n`);
}
coverage.stop();
exit(failed ? 1 : 0);
