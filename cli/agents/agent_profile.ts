import { z } from 'zod';
import { TOKEN_REQUESTS } from '../../shared/model/connector.ts';
import { LOGIN_GRANTS } from '../../shared/model/new_login.ts';
import { mayHoldSentinel } from '../../sandbox/launch/session_environment.ts';
import { findVariableRefusal } from '../../shared/mcp/dangers/environment_dangers.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { escapeHidden, replaceHidden } from '../../shared/model/shown_text.ts';
import { parseOwnVaultPath } from '../../shared/model/vault_path.ts';
import { parseHostPattern } from '../../shared/net/host_pattern.ts';
import { fieldProblems } from '../../shared/wire/errors.ts';
import { hostBindingInput, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { isPlainPath } from '../../shared/net/http/plain_path.ts';
import { MAX_CHOSEN_SECRETS } from '../../shared/model/account_choice.ts';
import { checkedText } from '../../shared/wire/checked_text.ts';
import { parseSecretName } from '../launch/secret_name.ts';
import { AGENT_NAME } from './agent_names.ts';
import { LOGIN_FORMAT_NAMES } from './login_formats.ts';
import { randomCharacters, shapeProblem } from './placeholder_shape.ts';

/** A placeholder with fewer random characters could occur in a request by chance, or be guessed. */
const LEAST_RANDOM_CHARACTERS = 16;

const line = checkedText(300, 'write one line of text', (text) =>
  text === '' || replaceHidden(text, { keepsLines: false, write: escapeHidden }) !== text
    ? 'must be one line of visible text'
    : null,
);
const link = z.url({ protocol: /^https$/, error: 'must be a link that begins with https://' });

/** A variable that the profile sets or removes. It must not decide which code a program loads, or how it reaches the proxy. */
const variableName = checkedText(128, 'write the name of a variable', variableProblem);

function variableProblem(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return 'is not a name of A-Z, a-z, 0-9 and "_"';
  const refusal = findVariableRefusal(name);
  if (refusal !== null) return `is ${name}, which ${refusal}`;
  return mayHoldSentinel(name) ? null : `is ${name}, which decides what code programs load or how they reach the proxy`;
}

/** Exact: a profile brings a credential to the hosts that it names, and a wildcard would take in hosts that nobody looked at. */
const exactHost = checkedText(255, 'write a host such as api.example.com', (text) => {
  const host = parseHostPattern(text);
  if (!host.ok) return host.error.message;
  return host.value.kind === 'exact' ? null : 'has a "*" in it: a profile names each host';
});

/** A file below the user's home. */
const homePath = checkedText(200, 'write a path such as ~/.agent/settings.json', (text) =>
  /^~\/\.\w[\w.-]*(?:\/(?!\.\.?(?:\/|$))[\w.-]+)*$/.test(text)
    ? null
    : 'must begin with "~/." and have no ".." or empty part: a profile names only files of its agent',
);

/** Other programs read these for commands and keys; no profile writes there. */
const NOT_FOR_PROFILES = /^~\/\.(?:ssh|gnupg|svc|aws|kube|docker|local|config\/(?:systemd|autostart|git|fish))(?:\/|$)/;

/** A path that an agent may use as its own. */
const ownPath = homePath.superRefine((path, context) => {
  if (NOT_FOR_PROFILES.test(path)) context.addIssue({ code: 'custom', message: 'belongs to another program' });
});

/** Where a program keeps its data and its state, by its name. */
const DATA_FOLDER = /^~\/\.local\/(?:share|state)\/([\w-]+)$/;

/** A path that is shown in the agent's sandbox; whose a folder of data is, {@link checkDataFolders} decides. */
const shownPath = homePath.superRefine((path, context) => {
  if (!DATA_FOLDER.test(path) && NOT_FOR_PROFILES.test(path)) {
    context.addIssue({ code: 'custom', message: 'belongs to another program' });
  }
});

const writtenPath = ownPath.superRefine((path, context) => {
  if (!path.endsWith('.json'))
    context.addIssue({ code: 'custom', message: 'must end in .json: no other file is written' });
});

const bindingFields = z.strictObject({
  host: exactHost,
  scheme: z.enum(['bearer', 'header-template', 'query-param', 'basic']),
  header: z.string().optional(),
  template: z.string().optional(),
  query_param: z.string().optional(),
  username: z.string().optional(),
});

const placeholderShape = checkedText(256, 'write the shape of the placeholder', (text) => {
  const problem = shapeProblem(text);
  if (problem !== null) return problem;
  return randomCharacters(text) < LEAST_RANDOM_CHARACTERS
    ? `has fewer than ${LEAST_RANDOM_CHARACTERS} random characters: such a placeholder could be guessed`
    : null;
});

const login = z.strictObject({
  /** The word for `--as`. */
  name: checkedText(32, 'write a word such as key', (text) =>
    AGENT_NAME.test(text) ? null : 'must be one lower-case word',
  ),
  title: line,
  /** Where a person gets the credential: a page or a command. */
  get: line,
  /** What the credential begins with. It tells the logins of a profile apart, and a credential of another service is refused. */
  prefix: line.optional(),
  /** Where the credential is stored if nothing else is said. */
  secret: checkedText(128, 'write a path of the vault', (text) => {
    const path = parseOwnVaultPath(text);
    return path.ok ? null : path.error.message;
  }),
  /** The variable in which every session gets the placeholder. */
  variable: variableName,
  /** More variables for the placeholder, when `svc` runs this agent. */
  also: z.array(variableName).default([]),
  placeholder: placeholderShape,
  bindings: z.array(bindingFields).min(1).max(10),
});

const json = z.json();

/** The agent's own login, whose refresh token svc keeps. */
const account = z.strictObject({
  title: line,
  /** How a person logs in with the agent itself. */
  get: line,
  /** The endpoint that issues the tokens, and only to this client. */
  token_url: link,
  client_id: line,
  token_request: z.enum(TOKEN_REQUESTS),
  /** Where its tokens are revoked (RFC 7009), on the server of the token URL; absent: the provider names none. */
  revocation_url: link.optional(),
  /** How a new login asks for its tokens. */
  grants: z.array(z.enum(LOGIN_GRANTS)).min(1),
  /** The arguments with which the program logs in. Only profiles of the catalog have an account, so no other names arguments. */
  log_in: z.strictObject({
    args: z.array(line).min(1).max(5),
    /** The same with a code that is typed on another device. */
    device_args: z.array(line).min(1).max(5).optional(),
  }),
  placeholder: placeholderShape,
  /** The hosts that get the access token. */
  hosts: z.array(exactHost).min(1).max(10),
  /** The paths there, with all below them, at which it is used: none that gives out lasting credentials. */
  paths: z
    .array(z.string().refine(isPlainPath, { error: 'must be a plain path' }))
    .min(1)
    .max(50),
  file: z.strictObject({
    path: homePath,
    moved_by: variableName.optional(),
    format: z.enum(LOGIN_FORMAT_NAMES),
  }),
});

const secretName = checkedText(256, 'write the path of a secret such as user/github-work', (text) => {
  const path = parseSecretName(text);
  if (!path.ok) return path.error;
  return path.value === text ? null : 'must be a path without vault://';
});

/** A package of npm: no link, no folder, no tag. */
const packageName = checkedText(214, 'write the name of a package of npm', (text) =>
  /^(?:@[a-z0-9][a-z0-9._-]*\/)?[a-z0-9][a-z0-9._-]*$/.test(text)
    ? null
    : 'must be the name of a package of npm, such as @acme/coder: no version, link or folder',
);
const exactVersion = z.string().regex(/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/, 'must be an exact version such as 1.2.3');

/** How the agent gets into an image, and what its home needs there. No command of a profile or of a package runs for it. */
const containerPart = z.strictObject({
  package: packageName,
  /** Where nothing is `tried`. */
  version: exactVersion.optional(),
  /** What npm has to say of packages that it fetches, by their names: the agent's, and those with its program. */
  integrity: z
    .record(packageName, z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/, 'must be a hash such as sha512-…'))
    .optional(),
  /**
   * The program below `node_modules`, for a package whose own script would put it into its place. `{cpu}` is x64 or arm64,
   * `{musl}` is `-musl` on Alpine and the like. Without it, npm links the package's command.
   */
  program: checkedText(200, 'write a path below node_modules', (text) =>
    /^(?!.*(?:^|\/)\.)(?:[\w@.-]|\{cpu\}|\{musl\})+(?:\/(?:[\w@.-]|\{cpu\}|\{musl\})+)+$/.test(text)
      ? null
      : 'must be a path below node_modules without ".."; only {cpu} and {musl} may be in braces',
  ).optional(),
  /** Set unless the person passes them on. */
  variables: z.record(variableName, line).default({}),
  /** Written before each start, whatever the login, so that the agent does not ask again. `{workspace}` is the project's folder. */
  files: z
    .array(z.strictObject({ path: writtenPath, write: z.enum(['merge', 'create']), json: z.record(z.string(), json) }))
    .default([]),
});

const profile = z
  .strictObject({
    name: checkedText(32, 'write the name of the agent', (text) =>
      AGENT_NAME.test(text) ? null : 'must be lower-case words joined by "-"',
    ),
    title: line,
    /** The program, as it is found on PATH. */
    command: checkedText(64, 'write the name of the program', (text) =>
      /^[A-Za-z0-9][\w.+-]*$/.test(text) ? null : 'must be a name that is looked up on PATH: no path, no arguments',
    ),
    /** How a person installs it. */
    install: line,
    /** The version that the end-to-end tests run; null for a profile that nobody has tried. */
    tried: z
      .string()
      .regex(/^\d+\.\d+\.\d+$/, 'must be a version such as 1.2.3')
      .nullable(),
    source: z.strictObject({ title: line, url: link }),
    notes: z.array(line).default([]),
    logins: z.array(login).max(5),
    account: account.optional(),
    /** The agent uses all logins that are stored, such as one for each model; otherwise it uses one. */
    several: z.boolean().default(false),
    /** Set unless the user has set them. */
    variables: z.record(variableName, line).default({}),
    /** Taken away: with one of them the agent would use a credential that svc does not hold. */
    clears: z.array(variableName).default([]),
    /** JSON that has to be in a file of the agent before it accepts its placeholder. */
    files: z
      .array(
        z.strictObject({
          path: writtenPath,
          /** The variable that moves the file's folder. */
          moved_by: variableName.optional(),
          login: z.string(),
          /** `create` leaves a file that exists as it is. */
          write: z.enum(['merge', 'create']),
          json: z.record(z.string(), json),
        }),
      )
      .default([]),
    /** Where the agent keeps a login of its own: a person is told about one that is there. */
    credential_files: z
      .array(
        z.strictObject({
          path: homePath,
          moved_by: variableName.optional(),
          /** Beginnings of its tokens, for a file that is there also without a login. */
          tokens: z.array(line).min(1).optional(),
        }),
      )
      .default([]),
    container: containerPart.optional(),
    /** What the agent keeps in the home, writable in its sandbox. A path that ends in .json is a file, any other is a folder. */
    sandbox: z
      .strictObject({
        writes: z.array(z.strictObject({ path: shownPath, moved_by: variableName.optional() })).min(1),
      })
      .optional(),
    /** Hosts that it also calls. They get no credential, even if the agent sends its placeholder there. */
    hosts: z.array(exactHost).default([]),
    /** Secrets to use where a host is bound to several, such as the account of one project. */
    secrets: z.array(secretName).max(MAX_CHOSEN_SECRETS).default([]),
  })
  .superRefine(checkReferences)
  .superRefine(checkDataFolders);

/** How `svc` runs a coding agent: a file of `catalog/agents/`, or of `agents/` in the state directory. */
export type AgentProfile = z.output<typeof profile>;
export type AgentLogin = AgentProfile['logins'][number];
export type AgentAccount = NonNullable<AgentProfile['account']>;

/** The package with the version that a container gets: the one that svc's tests run, else the profile's own. */
export function packageOf({
  container,
  tried,
}: AgentProfile): { readonly name: string; readonly version: string } | null {
  const version = container?.version ?? tried;
  return container === undefined || version === null ? null : { name: container.package, version };
}

/** Checks a profile file's content, as returned by the YAML parser. Each problem is one line. */
export function parseAgentProfile(value: unknown): Result<AgentProfile, readonly string[]> {
  const parsed = profile.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  return err(fieldProblems(parsed.error).map(({ field, message }) => `${field || 'the profile'}: ${message}`));
}

/** The bindings of a login, for a secret and a placeholder. */
export function bindingsOf(
  { title }: AgentProfile,
  { variable, bindings }: AgentLogin,
  credential: { readonly path: string; readonly placeholder: string },
): readonly ValidHostBinding[] {
  return bindings.map((fields) =>
    hostBindingInput.parse({
      ...fields,
      credential_ref: `vault://${credential.path}`,
      emit_mechanism: 'sentinel-swap',
      sentinel: { value: credential.placeholder, env: variable },
      // Agents send whole conversations with files: they would be larger than what is buffered.
      body: 'stream',
      description: title,
    }),
  );
}

interface Checked {
  readonly logins: readonly z.output<typeof login>[];
  readonly files: readonly { readonly login: string }[];
  readonly tried: string | null;
  readonly container?: z.output<typeof containerPart> | undefined;
}

interface Shown {
  readonly name: string;
  readonly sandbox?: { readonly writes: readonly { readonly path: string }[] } | undefined;
}

function checkDataFolders({ name, sandbox }: Shown, context: z.RefinementCtx): void {
  for (const [at, { path }] of (sandbox?.writes ?? []).entries()) {
    const owner = DATA_FOLDER.exec(path)?.[1] ?? name;
    if (owner === name) continue;
    context.addIssue({
      code: 'custom',
      path: ['sandbox', 'writes', at, 'path'],
      message: 'belongs to another program',
    });
  }
}

function checkReferences({ logins, files, tried, container: inContainer }: Checked, context: z.RefinementCtx): void {
  for (const [at, { name, variable, bindings }] of logins.entries()) {
    const issue = (path: readonly (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path: ['logins', at, ...path], message });
    if (logins.findIndex((other) => other.name === name) !== at) issue(['name'], 'is there twice');
    for (const [index, fields] of bindings.entries()) {
      const checked = hostBindingInput.safeParse({
        ...fields,
        credential_ref: 'vault://user/demo',
        emit_mechanism: 'sentinel-swap',
        sentinel: { value: 'x'.repeat(LEAST_RANDOM_CHARACTERS), env: variable },
      });
      for (const { path, message } of checked.error?.issues ?? [])
        issue(['bindings', index, ...path.map(String)], message);
    }
  }
  if (inContainer !== undefined && (inContainer.version === undefined) === (tried === null)) {
    const message =
      tried === null
        ? 'is missing: nothing is tried, so name the exact version'
        : 'is there although a version is tried';
    context.addIssue({ code: 'custom', path: ['container', 'version'], message });
  }
  for (const [at, file] of files.entries()) {
    if (logins.some(({ name }) => name === file.login)) continue;
    context.addIssue({ code: 'custom', path: ['files', at, 'login'], message: 'names none of the logins' });
  }
}
