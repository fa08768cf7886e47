import { err, ok, type Result } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import type { NotInstallable } from '../install/plan.ts';
import type { PlanBuilder } from '../install/plan_builder.ts';
import type { RegistryArgument } from '../registry/registry_input.ts';

/** Which words a runner may be given, and which are the package's. */
export interface RunnerWords {
  readonly program: string;
  /** Words that the derived command has anyway. */
  readonly implied: ReadonlySet<string>;
  /** Options of the runner that decide where code comes from, or which code runs. */
  readonly refused: ReadonlySet<string>;
  /** True for the package itself, as the runner would be told of it. */
  readonly isPackage: (text: string) => boolean;
}

/**
 * The arguments that an entry means for the package's runner, as far as they are the package's own. A runner is given
 * nothing by an entry: what it is told anyway is dropped, what would change the code that runs is refused, and what it
 * does not know is meant for the program in the package, after whose name it is put.
 */
export function runnerArguments(
  list: readonly RegistryArgument[],
  words: RunnerWords,
  builder: PlanBuilder,
): Result<readonly RegistryArgument[], NotInstallable> {
  const moved: RegistryArgument[] = [];
  for (const argument of list) {
    const text = argument.type === 'named' ? argument.name : (argument.value ?? '');
    const [name = ''] = text.split('=');
    if (words.refused.has(name)) {
      const message = `It asks ${words.program} for the option ${quoteWord(name)}, which decides what code is run. Add the server by hand if you trust it.`;
      return err({ reason: 'argument_not_allowed', message });
    }
    if (words.implied.has(text) || words.isPackage(text) || isEmpty(argument)) continue;
    moved.push(argument);
    const what = text === '' ? 'an argument' : `the argument ${quoteWord(text)}`;
    builder.warn('argument_moved', `${what} is given to the program of the package, not to ${words.program}`);
  }
  return ok(moved);
}

function isEmpty(argument: RegistryArgument): boolean {
  return argument.type === 'positional' && argument.value === null && !argument.isRequired;
}
