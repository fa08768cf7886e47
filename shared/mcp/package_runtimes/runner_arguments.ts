import { err, ok, type Result } from '../../model/result.ts';
import { quoteWord } from '../dangers/danger.ts';
import type { NotInstallable } from '../install/plan.ts';
import type { PlanBuilder } from '../install/plan_builder.ts';
import type { RegistryArgument } from '../registry/registry_input.ts';

/** Which words may go to a runner, and which belong to the package. */
interface RunnerWords {
  readonly program: string;
  /** Words that the derived command already has. */
  readonly implied: ReadonlySet<string>;
  /** Runner options that decide where code comes from, or which code runs. */
  readonly refused: ReadonlySet<string>;
  /** True for the package itself, as a runner argument. */
  readonly isPackage: (text: string) => boolean;
}

/**
 * The arguments that an entry has for the package's runner, reduced to those of the package itself. An entry cannot give a
 * runner arguments: words that the runner gets anyway are dropped, words that would change the code are refused, and unknown
 * words are passed to the package's program, after its name.
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
