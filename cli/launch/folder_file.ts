import { parse, TomlError } from 'smol-toml';
import { MAX_CHOSEN_SECRETS } from '../../shared/model/account_choice.ts';
import { mayBeCredential } from '../../shared/model/credential_shapes.ts';
import { didYouMean } from '../../shared/model/near_match.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { parseSecretName } from './secret_name.ts';

const KEYS = ['secrets'];
const EXAMPLE = 'secrets = ["user/github-work"]';

/**
 * Reads the vault paths of a `.svc.toml`: `secrets = ["user/github-work"]`. Any other setting is refused, because it may mean
 * something to a person who reads it. Messages never quote the file's text: people paste the secret itself in place of its path.
 */
export function parseFolderFile(text: string): Result<readonly string[], string> {
  const parsed = parseToml(text);
  if (!parsed.ok) return parsed;
  const unknown = Object.keys(parsed.value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) return err(`it has a setting that svc does not know${nearKey(unknown)}`);
  const { secrets = [] } = parsed.value;
  if (!Array.isArray(secrets)) return err(`"secrets" must be a list of paths in quotes: ${EXAMPLE}`);
  if (secrets.length === 0) return err(`it names no secret: ${EXAMPLE}`);
  if (secrets.length > MAX_CHOSEN_SECRETS) return err(`it names more than ${MAX_CHOSEN_SECRETS} secrets`);
  const paths = new Set<string>();
  for (const [index, entry] of secrets.entries()) {
    if (typeof entry !== 'string') return err(`entry ${index + 1} of "secrets" must be a path in quotes: ${EXAMPLE}`);
    const path = parseSecretName(entry);
    if (!path.ok) return err(`entry ${index + 1} of "secrets" cannot be used: ${path.error}`);
    paths.add(path.value);
  }
  return ok([...paths]);
}

function parseToml(text: string): Result<Record<string, unknown>, string> {
  try {
    return ok(parse(text));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    return err(`line ${error.line} is not TOML`);
  }
}

function nearKey(key: string): string {
  return mayBeCredential(key) ? '' : didYouMean(key, KEYS);
}
