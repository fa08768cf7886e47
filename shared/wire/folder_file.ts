import { mayBeCredential } from '../model/credential_shapes.ts';
import { didYouMean } from '../model/near_match.ts';
import { err, ok, type Result } from '../model/result.ts';
import { parseOwnVaultPath, VAULT_SCHEME } from '../model/vault_path.ts';
import { MAX_CHOSEN_SECRETS } from '../model/account_choice.ts';

/** The file of a project's folder that names the secrets which sessions there use (decision 0064). */
export const FOLDER_FILE = '.svc.toml';
/** Larger than any honest list; a larger file is not read. */
export const MAX_FOLDER_FILE_BYTES = 16 * 1024;

const KEYS = ['secrets'];

/**
 * Reads the vault paths of a `.svc.toml`: `secrets = ["user/github-work"]` and comments, in TOML 1.0. Other TOML is refused: the
 * file comes with a repository, and what svc does not know may mean something to a person who reads it. Messages never quote
 * the file's text, because people paste the secret itself in place of its path.
 */
export function parseFolderFile(text: string): Result<readonly string[], string> {
  const tokens = tokenise(text);
  if (!tokens.ok) return tokens;
  const reader = new TokenReader(tokens.value);
  let secrets: readonly string[] | null = null;
  for (;;) {
    reader.skipLines();
    const key = reader.take();
    if (key === null) break;
    if (key.kind !== 'key') return fault(key, 'must be: secrets = ["PATH"]');
    if (!KEYS.includes(key.text)) return fault(key, `has a setting that svc does not know${nearKey(key.text)}`);
    if (secrets !== null) return fault(key, 'has "secrets" a second time');
    const list = reader.readList(key);
    if (!list.ok) return list;
    secrets = list.value;
  }
  if (secrets === null || secrets.length === 0) return err('it names no secret: secrets = ["user/github-work"]');
  if (secrets.length > MAX_CHOSEN_SECRETS) return err(`it names more than ${MAX_CHOSEN_SECRETS} secrets`);
  return ok([...new Set(secrets)]);
}

function nearKey(key: string): string {
  return mayBeCredential(key) ? '' : didYouMean(key, KEYS);
}

/** The vault path of an entry. A value in place of a path is refused without being shown. */
export function parseSecretName(text: string): Result<string, string> {
  const name = text.startsWith(VAULT_SCHEME) ? text.slice(VAULT_SCHEME.length) : text;
  if (name.split('/').some(mayBeCredential)) {
    return err(
      'looks like a credential, or has a part of more than 32 characters, so it is not shown: name the path of a stored secret, such as user/github-work',
    );
  }
  const path = parseOwnVaultPath(name);
  return path.ok ? path : err(path.error.message);
}

type Token =
  | { readonly kind: 'key' | 'text'; readonly text: string; readonly line: number }
  | { readonly kind: '=' | '[' | ']' | ',' | 'end of line'; readonly text: string; readonly line: number };

/** TOML allows no control characters but tabs, also in comments. Escapes are not supported: no path needs one. */
const PIECES: readonly (readonly [Token['kind'] | null, RegExp])[] = [
  [null, /[ \t]+|#(?:[^\p{Cc}]|\t)*/uy],
  ['end of line', /\r?\n/y],
  ['key', /[A-Za-z0-9_-]+/y],
  ['text', /"(?!"")[^"\\\p{Cc}]*"|'(?!'')[^'\p{Cc}]*'/uy],
  ['=', /=/y],
  ['[', /\[/y],
  [']', /\]/y],
  [',', /,/y],
];

function tokenise(text: string): Result<readonly Token[], string> {
  const tokens: Token[] = [];
  let line = 1;
  for (let at = 0; at < text.length;) {
    const found = matchAt(text, at);
    if (found === null) return err(`line ${line} is not what svc reads: only secrets = ["PATH", ...] and comments`);
    const { kind, piece } = found;
    if (kind === 'text') tokens.push({ kind, text: piece.slice(1, -1), line });
    else if (kind !== null) tokens.push({ kind, text: piece, line });
    if (kind === 'end of line') line += 1;
    at += piece.length;
  }
  return ok(tokens);
}

function matchAt(text: string, at: number): { readonly kind: Token['kind'] | null; readonly piece: string } | null {
  for (const [kind, pattern] of PIECES) {
    pattern.lastIndex = at;
    const piece = pattern.exec(text)?.[0];
    if (piece !== undefined) return { kind, piece };
  }
  return null;
}

/** Reads tokens in order. */
class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  take(): Token | null {
    const token = this.#tokens[this.#at] ?? null;
    this.#at += 1;
    return token;
  }

  skipLines(): void {
    while (this.#tokens[this.#at]?.kind === 'end of line') this.#at += 1;
  }

  /** `= [ "..." , ... ]` and the end of the line. The list may be on several lines. */
  readList(key: Token): Result<readonly string[], string> {
    if (this.take()?.kind !== '=' || this.take()?.kind !== '[') return fault(key, 'must be: secrets = ["PATH"]');
    const paths: string[] = [];
    for (;;) {
      this.skipLines();
      let token = this.take();
      if (token?.kind === 'text') {
        const path = parseSecretName(token.text);
        if (!path.ok) return fault(token, `has an entry that svc cannot use: ${path.error}`);
        paths.push(path.value);
        this.skipLines();
        token = this.take();
        if (token?.kind === ',') continue;
      }
      if (token?.kind !== ']') return fault(token ?? key, 'must be a list of paths in quotes: secrets = ["PATH"]');
      const after = this.take();
      return after === null || after.kind === 'end of line' ? ok(paths) : fault(after, 'has more after the list');
    }
  }
}

function fault({ line }: Pick<Token, 'line'>, problem: string): Result<never, string> {
  return err(`line ${line} ${problem}`);
}
