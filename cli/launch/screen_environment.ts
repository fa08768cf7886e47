import { credentialWithin } from '../../shared/model/credential_shapes.ts';
import { MAX_CHECKED_VALUES, MAX_SECRET_BYTES } from '../../shared/model/secret.ts';
import { isStripped, type Environment } from '../../sandbox/launch/session_environment.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { isUnreachable } from '../exit_codes.ts';
import { isListOf, isObjectOf, isText, isWholeNumber, replyOf, type ReplySchema } from '../read_fields.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

/** A variable whose value is a credential. */
export interface CredentialVariable {
  readonly name: string;
  /** `vault://PATH` if the value is stored. */
  readonly reference: string | null;
  /** What its shape says, such as `github`; null if only the vault knows it. */
  readonly shape: string | null;
}

/** An environment without credentials, and what became of them. */
export interface ScreenedEnvironment {
  readonly env: Environment;
  readonly withheld: readonly CredentialVariable[];
  /** Those that a person told us to pass on. */
  readonly kept: readonly CredentialVariable[];
}

/** A value that equals a stored secret: its place in what was asked, and the secret's path. */
interface StoredValue {
  readonly index: number;
  readonly path: string;
}

/**
 * What a run needs of `SecretCheckReply` about so many values. A match of another value is refused: the one that it means would be
 * passed on.
 */
function checkReplyOf(values: number): ReplySchema<{ readonly matches: readonly StoredValue[] }> {
  const isIndex = (value: unknown): value is number => isWholeNumber(value) && value >= 0 && value < values;
  return replyOf({ matches: isListOf(isObjectOf<StoredValue>({ index: isIndex, path: isText })) });
}

/** Shorter values would match by chance, and are not masked either. */
const SHORTEST_CREDENTIAL = 8;
/** Variables that hold no credential. Their values are not sent to the control plane; their shape is checked all the same. */
const ORDINARY =
  /^(_|PATH|HOME|PWD|OLDPWD|SHELL|SHLVL|TERM|TERM_.*|COLORTERM|LANG|LANGUAGE|LC_.*|LS_COLORS|USER|USERNAME|LOGNAME|HOSTNAME|HOSTTYPE|OSTYPE|MACHTYPE|MAIL|TZ|EDITOR|VISUAL|PAGER|LESS.*|MANPATH|INFOPATH|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|XDG_.*|DBUS_SESSION_BUS_ADDRESS|SSH_AUTH_SOCK|SSH_TTY|SSH_CLIENT|SSH_CONNECTION|GPG_TTY|TMPDIR|TMUX.*|STY|WINDOWID|NVM_(?:BIN|CD_FLAGS|DIR|INC)|PYENV_(?:ROOT|SHELL|VERSION)|CARGO_HOME|RUSTUP_HOME|GOPATH|GOROOT|JAVA_HOME|VIRTUAL_ENV|CONDA_(?:DEFAULT_ENV|EXE|PREFIX|PYTHON_EXE|SHLVL))$/;

/**
 * Takes variables out of an environment whose values are stored secrets, or have the shape of a known credential. If the
 * control plane cannot be reached, only the shape counts, and the session's start says so. Any other failure of the check
 * throws: a credential might be among the values. The signal ends it early, which throws too.
 */
export async function screenEnvironment(
  call: Call,
  keep: readonly string[],
  signal?: AbortSignal,
): Promise<ScreenedEnvironment> {
  const candidates = Object.entries(call.context.env).flatMap(([name, value]) =>
    value !== undefined && isCandidate(name, value) ? [{ name, value }] : [],
  );
  const sent = candidates.filter(({ name }) => !ORDINARY.test(name));
  const references = await findStoredReferences(call, sent, signal);
  const suspected = candidates.flatMap(({ name, value }): readonly CredentialVariable[] => {
    const reference = references.get(name) ?? null;
    const shape = credentialWithin(value);
    return reference === null && shape === null ? [] : [{ name, reference, shape }];
  });
  // Inside a session the variables hold placeholders, some with the shape of a credential.
  const placeholders = suspected.some(({ reference }) => reference === null)
    ? await knownPlaceholders(call, signal)
    : [];
  const found = suspected.filter(
    ({ name, reference }) => reference !== null || !placeholders.includes(call.context.env[name] ?? ''),
  );
  const withheld = found.filter(({ name }) => !keep.includes(name));
  const names = new Set(withheld.map(({ name }) => name));
  const env = Object.fromEntries(Object.entries(call.context.env).filter(([name]) => !names.has(name)));
  return { env, withheld, kept: found.filter(({ name }) => keep.includes(name)) };
}

function isCandidate(name: string, value: string): boolean {
  const fits = value.length >= SHORTEST_CREDENTIAL && value.length <= MAX_SECRET_BYTES;
  return fits && !isStripped(name);
}

/** The references of the values that are stored, by the names that they have here. */
export async function findStoredReferences(
  call: Call,
  candidates: readonly { readonly name: string; readonly value: string }[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const references = new Map<string, string>();
  for (const some of batchesOf(candidates)) {
    for (const { index, path } of await checkStored(
      call,
      some.map(({ value }) => value),
      signal,
    )) {
      const name = some[index]?.name;
      if (name !== undefined) references.set(name, `vault://${path}`);
    }
  }
  return references;
}

/** The placeholders of all bindings; none if the control plane cannot be reached. */
export async function knownPlaceholders(call: Call, signal?: AbortSignal): Promise<readonly string[]> {
  // Loaded on use, so that a run without an unknown credential starts faster.
  const { hostBindingsPage } = await import('../../shared/wire/host_bindings.ts');
  const bindings = await listIfReachable(
    () =>
      fetchAllPages(controlClient(call.context, call.options), '/v1/host-bindings', hostBindingsPage, {}, { signal }),
    signal,
  );
  return bindings.flatMap(({ sentinel }) => sentinel?.value ?? []);
}

/** The control plane reads no more than 1 MiB; a single value of the largest size fits, however it is escaped. */
const MAX_BATCH_BYTES = 512 * 1024;

function batchesOf<T extends { readonly value: string }>(candidates: readonly T[]): readonly (readonly T[])[] {
  const batches: T[][] = [];
  let bytes = Infinity;
  for (const candidate of candidates) {
    const size = Buffer.byteLength(JSON.stringify(candidate.value)) + 1;
    const last = batches.at(-1);
    if (last === undefined || last.length === MAX_CHECKED_VALUES || bytes + size > MAX_BATCH_BYTES) {
      batches.push([candidate]);
      bytes = size;
    } else {
      last.push(candidate);
      bytes += size;
    }
  }
  return batches;
}

function checkStored(
  call: Call,
  values: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly StoredValue[]> {
  return listIfReachable(async () => {
    const client = controlClient(call.context, call.options);
    return (await client.call('POST', '/v1/secrets/check', checkReplyOf(values.length), { body: { values }, signal }))
      .matches;
  }, signal);
}

async function listIfReachable<T>(
  list: () => Promise<readonly T[]>,
  signal: AbortSignal | undefined,
): Promise<readonly T[]> {
  try {
    return await list();
  } catch (error) {
    if (!isUnreachable(error, signal)) throw error;
    return [];
  }
}

/** Tells the person what was taken out, and how to seal it or to insist. A variable with a placeholder needs no word. */
export function tellOfWithheld(
  { print }: Pick<Call, 'print'>,
  { withheld }: ScreenedEnvironment,
  replaced: readonly string[],
): void {
  const told = withheld.filter(({ name }) => !replaced.includes(name));
  for (const variable of told) {
    const { name, shape, reference } = variable;
    print.warn(`${name} was taken out of the environment: it holds ${contentOf(variable)}`);
    if (reference === null && shape !== null && shape !== 'private key') {
      print.note(`  To seal it: svc seal ${shape} --from ${name}`);
    }
  }
  if (told.length > 0) print.note(`  To pass one on in plaintext, which is recorded: --keep-env NAME`);
}

function contentOf({ reference, shape }: CredentialVariable): string {
  if (reference !== null) return `the stored secret ${reference}`;
  return shape === 'private key' ? 'a private key' : `what looks like a credential of ${shape}`;
}
