import { z } from 'zod';
import { OWNERS } from '../model/host_binding.ts';
import { MCP_TRANSPORTS } from '../model/mcp_server.ts';
import { mcpServerRecord } from './mcp_servers.ts';
import { mcpNameText } from './mcp_server_fields.ts';
import { owner, time } from './primitives.ts';

/** The registry gives no more at a time. */
export const MAX_MARKETPLACE_PAGE = 100;
const DEFAULT_MARKETPLACE_PAGE = 50;

/** How a server is spoken to: a program on its standard streams, or over HTTP. */
export const MARKETPLACE_TRANSPORTS = ['stdio', ...MCP_TRANSPORTS] as const;

/** `GET /v1/marketplace/servers`. */
export const marketplaceQuery = z.strictObject({
  /** Text in the name or the description, whatever its case. */
  q: z.string().max(200).default(''),
  cursor: z.string().max(2_000).optional(),
  limit: z.coerce.number().int().min(1).max(MAX_MARKETPLACE_PAGE).default(DEFAULT_MARKETPLACE_PAGE),
  transport: z.enum(MARKETPLACE_TRANSPORTS).optional(),
  /** `npm`, `pypi`, `oci` and so on. */
  registry_type: z
    .string()
    .regex(/^[\w-]{1,32}$/, 'is not the name of a kind of packages, such as npm')
    .optional(),
});
export type MarketplaceQuery = z.output<typeof marketplaceQuery>;

/** A variable of the environment or a header that a server takes. */
const input = z.object({
  name: z.string(),
  description: z.string(),
  required: z.boolean(),
  secret: z.boolean(),
  default: z.string().nullable(),
  choices: z.array(z.string()),
});

/** An argument as the publisher wrote it; `name` of a positional one is empty. A secret's value is left out. */
const argument = z.object({
  ...input.shape,
  type: z.enum(['named', 'positional']),
  value: z.string().nullable(),
  value_hint: z.string().nullable(),
  repeated: z.boolean(),
});

const packageFields = z.object({
  registry_type: z.string(),
  /** Where it is published, when that is not the public registry of its kind. */
  registry_base_url: z.string().nullable(),
  identifier: z.string(),
  version: z.string().nullable(),
  transport: z.string(),
  /** The program that the publisher would start it with. What an install starts is derived, and may be another one. */
  runtime_hint: z.string().nullable(),
  /** For that program, before the package. */
  runtime_arguments: z.array(argument),
  /** For the package itself. */
  package_arguments: z.array(argument),
  environment_variables: z.array(input),
});

const remote = z.object({ transport: z.string(), url: z.string(), headers: z.array(input) });

/** A registry entry. Its texts are the publisher's: they may say anything, to people and to models. */
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
  packages: z.array(packageFields),
  remotes: z.array(remote),
  /** What of the entry could not be read. */
  problems: z.array(z.string()),
};

/** A registry entry with whether the caller has it installed; without sign-in nothing is. */
export const marketplaceItem = z.object({ ...entryFields, installed: z.boolean() }).meta({ id: 'MarketplaceServer' });
export type MarketplaceItem = z.output<typeof marketplaceItem>;

/** When the registry said so, and whether it could not be asked again. */
const freshness = {
  fetched_at: time,
  /** The registry does not answer, or was not asked for a while: this is what it said then. */
  stale: z.boolean(),
};

export const marketplacePage = z
  .object({
    items: z.array(marketplaceItem),
    next_cursor: z.string().nullable(),
    ...freshness,
    /** The answer rests on the registry's own search, which does not look at descriptions, or on a part of it. */
    partial: z.boolean(),
  })
  .meta({ id: 'MarketplacePage' });
export type MarketplacePage = z.output<typeof marketplacePage>;

/** The name of the entry, its slash as it is or percent-encoded. */
export const marketplaceParams = z.strictObject({ registryId: z.string().min(1).max(1_000) });
export const marketplaceDetailQuery = z.strictObject({
  /** The newest one without it. */
  version: z.string().min(1).max(255).optional(),
});

/** One way to install an entry: which of its packages or remotes it is, by its place there. */
const choice = z.object({ kind: z.enum(['package', 'remote']), index: z.number().int() });

/** A way to install an entry, or why it cannot be installed that way. */
const installOption = z.object({
  ...choice.shape,
  /** `npm`, `pypi` and so on; `remote` for a server that is reached over HTTP. */
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
  /** Where its value goes, such as `variable API_KEY`. */
  goes_to: z.array(z.string()),
  /** The credential that holds it, which may also be given later; null: it is given at install. */
  credential: z.string().nullable(),
});
export type MarketplaceInput = z.output<typeof planInput>;

/** What an install comes to: exactly what is started or called, `{input}` where a value belongs, and what to know of it. */
export const installPreview = z
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
    /** The caller's servers that were installed from it. */
    installed_servers: z.array(
      z.object({ id: z.string(), name: z.string(), owner: z.enum(OWNERS), version: z.string().nullable() }),
    ),
    versions: z.array(entryVersion),
    options: z.array(installOption),
    /** Of the option that an install takes when nothing is chosen; null when none can be installed. */
    preview: installPreview.nullable(),
    ...freshness,
  })
  .meta({ id: 'MarketplaceDetail' });
export type MarketplaceDetail = z.output<typeof marketplaceDetail>;

/** A value for each input that is given; a list for one that is repeated. What is secret goes into the vault. */
const inputs = z
  .record(z.string().min(1).max(256), z.union([z.string().max(8_000), z.array(z.string().max(8_000)).max(50)]))
  .optional();

/** Which package or remote to take, by its place in the entry; the best one without. */
const chosen = {
  package: z.number().int().min(0).max(50).optional(),
  remote: z.number().int().min(0).max(50).optional(),
  /** The newest one without it. */
  version: z.string().min(1).max(255).optional(),
  inputs,
};
const ONE_CHOICE = { error: 'take a package or a remote, not both', path: ['remote'] };
const isOneChoice = (body: { readonly package?: number | undefined; readonly remote?: number | undefined }) =>
  body.package === undefined || body.remote === undefined;

/** `POST /v1/marketplace/servers/{registryId}/preview`. */
export const marketplacePreviewInput = z
  .strictObject(chosen)
  .refine(isOneChoice, ONE_CHOICE)
  .meta({ id: 'PreviewMarketplaceServer' });
export type MarketplacePreviewInput = z.output<typeof marketplacePreviewInput>;

/** `POST /v1/marketplace/servers/{registryId}/install`; the body may be left out. */
export const marketplaceInstallInput = z
  .strictObject({
    ...chosen,
    /** The name of the server and the prefix of its tools; made of the entry's without it. */
    name: mcpNameText.optional(),
    owner: owner.optional(),
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
export type RequiredCredentialRecord = z.output<typeof requiredCredential>;

const inputProblem = z.object({
  input: z.string(),
  code: z.enum(['missing', 'invalid', 'unknown']),
  message: z.string(),
});

/** What would be started or called with the inputs that were given; secrets are references. */
const outcome = z.object({
  command: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  url: z.string().nullable(),
  headers: z.record(z.string(), z.string()),
});

export const marketplacePreviewReply = z
  .object({
    preview: installPreview,
    /** Null while inputs are missing or do not fit. */
    outcome: outcome.nullable(),
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
    /** What the server lacks, or may be given, with POST /v1/mcp-servers/{id}/credentials. */
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
    /** What the registry calls that version: what an upgrade to just this one names. */
    entry_version: z.string().nullable(),
    /** False: the server is as an install would make it. */
    available: z.boolean(),
    /** The configuration is not what its version was installed as: the upgrade replaces the command. */
    customised: z.boolean(),
    diff: z.object({
      command: z.object({ before: z.array(z.string()), after: z.array(z.string()) }).nullable(),
      url: changed.nullable(),
      env: z.record(z.string(), changed),
      headers: z.record(z.string(), changed),
    }),
    preview: installPreview,
    /** Inputs that have to be given. */
    problems: z.array(inputProblem),
    ...freshness,
  })
  .meta({ id: 'McpServerUpgrade' });
export type UpgradeReply = z.output<typeof upgradeReply>;

/** `POST /v1/mcp-servers/{id}/upgrade`; the body may be left out. */
export const upgradeInput = z
  .strictObject({ version: z.string().min(1).max(255).optional(), inputs })
  .meta({ id: 'UpgradeMcpServer' });
export type UpgradeInput = z.output<typeof upgradeInput>;
