import { z } from 'zod';
import { OWNERS } from '../model/host_binding.ts';
import { ENTRY_RISK_CODES, MCP_ISOLATIONS, MCP_TRANSPORTS } from '../model/mcp_server.ts';
import { oneOfValues } from './host_binding_fields.ts';
import { mcpServerRecord } from './mcp/mcp_servers.ts';
import { mcpNameText } from './mcp/mcp_server_fields.ts';
import { owner, time } from './primitives.ts';

/** The registry's page limit. */
const MAX_MARKETPLACE_PAGE = 100;
const DEFAULT_MARKETPLACE_PAGE = 50;

/** A server's transport: standard streams, or HTTP. */
export const MARKETPLACE_TRANSPORTS = ['stdio', ...MCP_TRANSPORTS] as const;

/** `GET /v1/marketplace/servers`. */
export const marketplaceQuery = z.strictObject({
  /** Text in the name or the description, in any case. */
  q: z.string().max(200).default(''),
  cursor: z.string().max(2_000).optional(),
  limit: z.coerce.number().int().min(1).max(MAX_MARKETPLACE_PAGE).default(DEFAULT_MARKETPLACE_PAGE),
  transport: z.enum(MARKETPLACE_TRANSPORTS).optional(),
  /** `npm`, `pypi`, `oci` and so on. */
  registry_type: z
    .string()
    .regex(/^[\w-]{1,32}$/, 'is not the name of a kind of packages, such as npm')
    .optional(),
  /** Whether an install asks for a secret. Entries that cannot be installed do neither. */
  needs_secret: z.enum(['true', 'false']).optional(),
  /** The part of the name before the slash, in any case. */
  publisher: z.string().min(1).max(200).optional(),
});
export type MarketplaceQuery = z.output<typeof marketplaceQuery>;

/** An environment variable or a header that a server accepts. */
const input = z.object({
  name: z.string(),
  description: z.string(),
  required: z.boolean(),
  secret: z.boolean(),
  default: z.string().nullable(),
  choices: z.array(z.string()),
});

/** An argument as the publisher wrote it, without a secret's value; `name` of a positional one is empty. */
const argument = z.object({
  ...input.shape,
  type: z.enum(['named', 'positional']),
  value: z.string().nullable(),
  value_hint: z.string().nullable(),
  repeated: z.boolean(),
});

const packageFields = z.object({
  registry_type: z.string(),
  /** The registry that publishes it, if not the public one of its kind. */
  registry_base_url: z.string().nullable(),
  identifier: z.string(),
  version: z.string().nullable(),
  transport: z.string(),
  /** The program with which the publisher would start it. An install derives its own command, which may differ. */
  runtime_hint: z.string().nullable(),
  /** For that program, before the package. */
  runtime_arguments: z.array(argument),
  /** For the package itself. */
  package_arguments: z.array(argument),
  environment_variables: z.array(input),
});

const remote = z.object({ transport: z.string(), url: z.string(), headers: z.array(input) });

/** A registry entry. Its texts are the publisher's, so they are untrusted for people and for models. */
const entryFields = {
  /** Its id in the registry, and here. */
  name: z.string(),
  title: z.string().nullable(),
  description: z.string(),
  version: z.string().nullable(),
  status: z.enum(['active', 'deprecated', 'deleted']),
  published_at: z.string().nullable(),
  updated_at: z.string().nullable(),
  repository_url: z.string().nullable(),
  website_url: z.string().nullable(),
  /** Whether the console can show an image for it. */
  has_icon: z.boolean().default(false),
  packages: z.array(packageFields),
  remotes: z.array(remote),
  /** The parts of the entry that could not be read. */
  problems: z.array(z.string()),
  /** What to know before an install, for the way in which it is installed by default. */
  risks: z.array(z.object({ code: z.enum(ENTRY_RISK_CODES), text: z.string() })).default([]),
  /** Why the rules of the caller's enterprise let none of its packages and remotes run; null if they let one run, and without sign-in. */
  rule_problem: z.string().nullable().default(null),
};

/** A registry entry, and whether the caller has it installed; always false without sign-in. */
const marketplaceItem = z.object({ ...entryFields, installed: z.boolean() }).meta({ id: 'MarketplaceServer' });
export type MarketplaceItem = z.output<typeof marketplaceItem>;

/** When the data was fetched, and whether the registry could not be asked again. */
const freshness = {
  fetched_at: time,
  /** The registry does not answer, so this is older data. */
  stale: z.boolean(),
};

export const marketplacePage = z
  .object({
    items: z.array(marketplaceItem),
    next_cursor: z.string().nullable(),
    ...freshness,
    /** The answer uses the registry's own search, which does not look at descriptions, or only a part of the registry. */
    partial: z.boolean(),
  })
  .meta({ id: 'MarketplacePage' });
export type MarketplacePage = z.output<typeof marketplacePage>;

/** The name of the entry; its slash may be percent-encoded. */
export const marketplaceParams = z.strictObject({ registryId: z.string().min(1).max(1_000) });
export const marketplaceDetailQuery = z.strictObject({
  /** By default the newest one. */
  version: z.string().min(1).max(255).optional(),
});

/** `GET /v1/marketplace/readmes/{registryId}`. */
export const marketplaceReadme = z
  .object({
    /** Plain text, at most 15,000 characters. Its publisher's, so it is untrusted for people and for models. */
    text: z.string(),
    /** The end is missing. */
    cut: z.boolean(),
    /** What it is the README of, such as `the npm package @acme/files`. The entry names it. */
    of: z.string(),
    /** The host that sent it. */
    host: z.string(),
  })
  .meta({ id: 'MarketplaceReadme' });
export type MarketplaceReadme = z.output<typeof marketplaceReadme>;

/** One way to install an entry: the index of one of its packages or remotes. */
const choice = z.object({ kind: z.enum(['package', 'remote']), index: z.number().int() });

/** A way to install an entry, or why it cannot be installed that way. */
const installOption = z.object({
  ...choice.shape,
  /** `npm`, `pypi` and so on; `remote` for a server reached over HTTP. */
  ecosystem: z.string(),
  label: z.string(),
  installable: z.boolean(),
  problem: z.object({ reason: z.string(), message: z.string() }).nullable(),
});

const planInput = z.object({
  name: z.string(),
  description: z.string(),
  required: z.boolean(),
  secret: z.boolean(),
  format: z.string().nullable(),
  default: z.string().nullable(),
  placeholder: z.string().nullable(),
  choices: z.array(z.string()),
  repeated: z.boolean(),
  /** Where its value is used, such as `variable API_KEY`. */
  goes_to: z.array(z.string()),
  /** The credential that stores it, which may also be given later; null: it must be given at install. */
  credential: z.string().nullable(),
});
export type MarketplaceInput = z.output<typeof planInput>;

/** The result of an install: exactly what is started or called, with `{input}` for values, and warnings. */
const installPreview = z
  .object({
    choice,
    mode: z.enum(['local', 'remote']),
    version: z.string().nullable(),
    /** The program and its arguments; no shell reads them. Empty for a remote server. */
    command: z.array(z.string()),
    env: z.record(z.string(), z.string()),
    url: z.string().nullable(),
    transport: z.string().nullable(),
    headers: z.record(z.string(), z.string()),
    inputs: z.array(planInput),
    warnings: z.array(z.object({ code: z.string(), message: z.string() })),
  })
  .meta({ id: 'InstallPreview' });
export type InstallPreview = z.output<typeof installPreview>;

const entryVersion = z.object({
  version: z.string().nullable(),
  status: z.enum(['active', 'deprecated', 'deleted']),
  published_at: z.string().nullable(),
  is_latest: z.boolean(),
});

export const marketplaceDetail = z
  .object({
    ...entryFields,
    installed: z.boolean(),
    /** The caller's servers that were installed from this entry. */
    installed_servers: z.array(
      z.object({ id: z.string(), name: z.string(), owner: z.enum(OWNERS), version: z.string().nullable() }),
    ),
    versions: z.array(entryVersion),
    options: z.array(installOption),
    /** For the option that an install uses by default; null if none can be installed. */
    preview: installPreview.nullable(),
    ...freshness,
  })
  .meta({ id: 'MarketplaceDetail' });
export type MarketplaceDetail = z.output<typeof marketplaceDetail>;

/** The given inputs' values; a list for a repeated one. Secrets are stored in the vault. */
const inputs = z
  .record(z.string().min(1).max(256), z.union([z.string().max(8_000), z.array(z.string().max(8_000)).max(50)]))
  .optional();

/** Which package or remote to use, by its index in the entry; by default the best one. */
const chosen = {
  package: z.number().int().min(0).max(50).optional(),
  remote: z.number().int().min(0).max(50).optional(),
  /** By default the newest one. */
  version: z.string().min(1).max(255).optional(),
  inputs,
};
const ONE_CHOICE = { error: 'use a package or a remote, not both', path: ['remote'] };
const isOneChoice = (body: { readonly package?: number | undefined; readonly remote?: number | undefined }) =>
  body.package === undefined || body.remote === undefined;

/** `POST /v1/marketplace/servers/{registryId}/preview`. */
export const marketplacePreviewInput = z
  .strictObject(chosen)
  .refine(isOneChoice, ONE_CHOICE)
  .meta({ id: 'PreviewMarketplaceServer' });
export type MarketplacePreviewInput = z.output<typeof marketplacePreviewInput>;

/** `POST /v1/marketplace/servers/{registryId}/install`; the body is optional. */
export const marketplaceInstallInput = z
  .strictObject({
    ...chosen,
    /** The server's name, which is also the prefix of its tools; by default made from the entry's name. */
    name: mcpNameText.optional(),
    owner: owner.optional(),
    /** Where a local server runs; by default as a process of the user. */
    isolation: oneOfValues(MCP_ISOLATIONS).optional(),
    /** Check everything, and install nothing. */
    dry_run: z.boolean().optional(),
  })
  .refine(isOneChoice, ONE_CHOICE)
  .meta({ id: 'InstallMarketplaceServer' });
export type MarketplaceInstallInput = z.output<typeof marketplaceInstallInput>;

const requiredCredential = z.object({
  name: z.string(),
  description: z.string(),
  required: z.boolean(),
  secret: z.boolean(),
});

const inputProblem = z.object({
  input: z.string(),
  code: z.enum(['missing', 'invalid', 'unknown']),
  message: z.string(),
});

/** What would be started or called with the given inputs; secrets are shown as references. */
const outcome = z.object({
  command: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  url: z.string().nullable(),
  headers: z.record(z.string(), z.string()),
});

export const marketplacePreviewReply = z
  .object({
    preview: installPreview,
    /** Null while inputs are missing or invalid. */
    outcome: outcome.nullable(),
    /** Why the rules of the enterprise do not let it run; null if they do. */
    rule_problem: z.string().nullable().default(null),
    required_credentials: z.array(requiredCredential),
    problems: z.array(inputProblem),
    ...freshness,
  })
  .meta({ id: 'MarketplacePreview' });
export type MarketplacePreviewReply = z.output<typeof marketplacePreviewReply>;

export const marketplaceInstallReply = z
  .object({
    /** Null for a dry run. */
    server: z.union([mcpServerRecord, z.null()]),
    /** The credentials that the server needs or accepts, by POST /v1/mcp-servers/{id}/credentials. */
    required_credentials: z.array(requiredCredential),
  })
  .meta({ id: 'MarketplaceInstall' });
export type MarketplaceInstallReply = z.output<typeof marketplaceInstallReply>;

/** `GET /v1/mcp-servers/{id}/upgrade`. */
export const upgradeQuery = z.strictObject({ version: z.string().min(1).max(255).optional() });

const changed = z.object({ before: z.string().nullable(), after: z.string().nullable() });

export const upgradeReply = z
  .object({
    from_version: z.string().nullable(),
    to_version: z.string().nullable(),
    /** The registry's name for that version, with which an upgrade can name exactly this one. */
    entry_version: z.string().nullable(),
    /** False: the server is already as an install would make it. */
    available: z.boolean(),
    /** The configuration was changed since its version was installed: the upgrade replaces the command. */
    customised: z.boolean(),
    diff: z.object({
      command: z.object({ before: z.array(z.string()), after: z.array(z.string()) }).nullable(),
      url: changed.nullable(),
      env: z.record(z.string(), changed),
      headers: z.record(z.string(), changed),
    }),
    preview: installPreview,
    /** Required inputs. */
    problems: z.array(inputProblem),
    ...freshness,
  })
  .meta({ id: 'McpServerUpgrade' });
export type UpgradeReply = z.output<typeof upgradeReply>;

/** `POST /v1/mcp-servers/{id}/upgrade`; the body is optional. */
export const upgradeInput = z
  .strictObject({ version: z.string().min(1).max(255).optional(), inputs })
  .meta({ id: 'UpgradeMcpServer' });
export type UpgradeInput = z.output<typeof upgradeInput>;
