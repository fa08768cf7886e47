import { parseArgs } from 'node:util';
import { CASE_IDS, type CaseId } from './cases.ts';
import { PROXY_NAMES } from './peers/proxy.ts';

export interface Options {
  readonly quick: boolean;
  readonly rounds: number;
  readonly seconds: number;
  /** Names of proxies to measure; empty: all that are installed. */
  readonly only: readonly string[];
  /** Cases to measure; empty: all. */
  readonly cases: readonly CaseId[];
  /** A file for all measurements, as JSON. */
  readonly out: string | null;
  /** A folder for the charts. */
  readonly plots: string | null;
  /** Measures with the control worker stopped: the difference is the cost of sending it the events. */
  readonly holdWorker: boolean;
  /** Profiles the sidecar in place of measuring. */
  readonly profile: boolean;
}

export const USAGE = `usage: npm run bench -- [--quick] [--rounds N] [--seconds S] [--only svc,squid,sandbox-runtime,nghttpx,node:http2]
                      [--cases keepalive_1,streams_100] [--out FILE] [--plots FOLDER] [--hold-worker] [--profile]

  --quick        one short round: under a minute
  --rounds       how often everything is measured, in turns (5)
  --seconds      how long each load lasts (2)
  --only         some of the proxies
  --cases        some of the cases: ${CASE_IDS.join(', ')}
  --out          write all samples and verdicts to a JSON file
  --plots        write the charts as SVG files
  --hold-worker  stop the control worker while it is measured, so that events stay on the sidecar's disk
  --profile      run only svc, with Node's profiler, and list the functions that take the most time
`;

const FLAGS = {
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  only: { type: 'string' },
  cases: { type: 'string' },
  out: { type: 'string' },
  plots: { type: 'string' },
  'hold-worker': { type: 'boolean', default: false },
  profile: { type: 'boolean', default: false },
} as const;

function positive(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} is ${JSON.stringify(text)}: give a whole number from 1`);
  return value;
}

const ROUNDS = 5;
const SECONDS = 2;

function names(text: string | undefined): readonly string[] {
  const given = text?.split(',') ?? [];
  const unknown = given.find((name) => !PROXY_NAMES.some((known) => known === name));
  if (unknown === undefined) return given;
  throw new Error(`--only names ${JSON.stringify(unknown)}: give some of ${PROXY_NAMES.join(', ')}`);
}

function cases(text: string | undefined): readonly CaseId[] {
  return (text?.split(',') ?? []).map((given) => {
    const id = CASE_IDS.find((known) => known === given);
    if (id !== undefined) return id;
    throw new Error(`--cases names ${JSON.stringify(given)}: give some of ${CASE_IDS.join(', ')}`);
  });
}

export function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({ args: [...argv], options: FLAGS, strict: true, allowPositionals: false });
  return {
    quick: values.quick,
    rounds: positive('rounds', values.rounds, values.quick ? 1 : ROUNDS),
    seconds: positive('seconds', values.seconds, values.quick ? 1 : SECONDS),
    only: names(values.only),
    cases: cases(values.cases),
    out: values.out ?? null,
    plots: values.plots ?? null,
    holdWorker: values['hold-worker'],
    profile: values.profile,
  };
}
