import { readFlakeSpec, readGoSpec } from '../package_specs.ts';
import { quoteWord, refuse, markUnchecked, warn, type Danger } from './danger.ts';
import {
  type DangersOf,
  packageDangers,
  type PackageRunner,
  PATH,
  readRunner,
  type RunnerOptions,
  VERSION,
} from './runner_options.ts';

// Programs that build another program from source and run it.

const GO_RUN: PackageRunner = {
  plain: /^-(?:race|trimpath|v|mod=(?:readonly|vendor))$/,
  packages: [],
  values: { '-C': PATH },
  read: readGoSpec,
  readsAfterPackage: false,
  example: 'example.com/server@v1.2.3',
};
const NIX_FEATURES = /^(?:nix-command|flakes| )+$/;
const NIX_RUN: PackageRunner = {
  plain:
    /^(?:--offline|--refresh|--quiet|--verbose|-v|-L|--print-build-logs|--no-write-lock-file|--no-update-lock-file|--show-trace)$/,
  packages: [],
  values: { '--extra-experimental-features': NIX_FEATURES, '--experimental-features': NIX_FEATURES },
  read: readFlakeSpec,
  readsAfterPackage: true,
  example: `github:owner/name/${'0'.repeat(40)}`,
};
const CARGO_RUN: RunnerOptions = {
  plain: /^(?:-q|--quiet|-r|--release|--locked|--offline|--frozen|--all-features|--no-default-features)$/,
  packages: [],
  values: {
    '--manifest-path': PATH,
    '--bin': VERSION,
    '--package': VERSION,
    '-p': VERSION,
    '--features': /^[\w,/-]+$/,
  },
  readsAfterPackage: false,
};

/** `go run` fetches a module, or compiles files of this machine. */
export function goDangers([subcommand = '', ...args]: readonly string[], dangersOf: DangersOf): readonly Danger[] {
  if (subcommand === 'run') return packageDangers('go run', GO_RUN, args, dangersOf);
  return [refuseSubcommand('go', subcommand)];
}

/** `nix run` fetches and builds a flake. Its other subcommands run a shell, or evaluate text. */
export function nixDangers(args: readonly string[], dangersOf: DangersOf): readonly Danger[] {
  const at = args.indexOf('run');
  const before = readRunner('nix', NIX_RUN, at < 0 ? args : args.slice(0, at));
  if (at < 0 || before.target.length > 0) return [refuseSubcommand('nix', before.target[0] ?? '')];
  if (before.dangers.length > 0) return before.dangers;
  const words = args.slice(at + 1);
  const dangers = packageDangers('nix run', NIX_RUN, words, dangersOf);
  // Nixpkgs includes every interpreter, and names do not tell which package is one.
  const isAny = words.some((word) => /(?:^|[:/])nixpkgs(?:$|[/#])/i.test(word) && !/mcp/i.test(word));
  return isAny && words.length > 1
    ? [...dangers, markUnchecked('has nix run a program of nixpkgs with arguments')]
    : dangers;
}

/** `cargo run` compiles a project of this machine and fetches its dependencies. */
export function cargoDangers([subcommand = '', ...args]: readonly string[]): readonly Danger[] {
  if (subcommand !== 'run') return [refuseSubcommand('cargo', subcommand)];
  const { target, dangers } = readRunner('cargo run', CARGO_RUN, args);
  if (dangers.length > 0) return dangers;
  const options = args.slice(0, args.length - target.length);
  if (options.some((word) => KEEPS_LOCK.has(word))) return [];
  const fix = 'its dependencies can be other code tomorrow; add --locked';
  return [warn('unpinned_version', `has cargo run fetch code that is not pinned: ${fix}`)];
}

const KEEPS_LOCK: ReadonlySet<string> = new Set(['--locked', '--frozen', '--offline']);

function refuseSubcommand(program: string, subcommand: string): Danger {
  const why = `which can run or fetch whatever its arguments say; use "${program} run", or name the program that was built`;
  return refuse('runner_option', `starts ${program} with ${quoteWord(subcommand)}, ${why}`);
}
