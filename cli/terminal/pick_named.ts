import { didYouMean } from '../../shared/model/near_match.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** How records are named, and what a person is told whose name fits none of them, or several. */
interface Naming<T> {
  readonly nameOf: (record: T) => string;
  /** A record in the list of those that fit. */
  readonly line: (record: T) => string;
  /** Such as `there is no MCP server "files"`. */
  readonly none: string;
  readonly hint: string;
  /** Such as `servers`. */
  readonly plural: string;
  readonly advice?: string;
}

/** The only record in `found`, which are those of `all` that fit the name `wanted`. Throws if there is none, or several. */
export function pickNamed<T>(wanted: string, all: readonly T[], found: readonly T[], naming: Naming<T>): T {
  const [only, ...others] = found;
  if (only === undefined) {
    const near = didYouMean(wanted, all.map(naming.nameOf));
    throw new CliError(EXIT.failed, `${naming.none}${near}`, [naming.hint]);
  }
  if (others.length === 0) return only;
  const { plural, advice = 'give the id of one' } = naming;
  throw new CliError(EXIT.failed, `${found.length} ${plural} are named ${wanted}: ${advice}`, found.map(naming.line));
}
