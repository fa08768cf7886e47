import type { McpMode, McpTransport } from '../../model/mcp_server.ts';
import type { DangerCode } from '../dangers/danger.ts';
import type { InputFormat } from '../registry/registry_input.ts';

/** A part of a value: fixed text, or an input. */
export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'input'; readonly input: string };
export type Template = readonly Piece[];

/** One argument: a word, an option, or an option with its value. Omitted if one of its inputs has no value. */
export interface PlanArgument {
  /** The word before the value, or the word itself; null for a value without an option. */
  readonly flag: string | null;
  /** `--name=value`, one word. */
  readonly isJoined: boolean;
  /** Null: a flag without a value. */
  readonly value: Template | null;
  /** A flag without a value, present only if this input is true. */
  readonly when: string | null;
}

/** An environment variable or a header. Omitted if one of its inputs has no value. */
export interface PlanField {
  readonly name: string;
  readonly value: Template;
}

/** The part after `https://`. */
export interface PlanUrl {
  readonly authority: Template;
  readonly path: Template;
  /** Without `?`; null if there is none. */
  readonly query: Template | null;
}

export type InputTarget = 'env' | 'argument' | 'header' | 'url_host' | 'url_path' | 'url_query';

/** An input that the installing person is asked for. The texts are the publisher's. */
export interface PlanInput {
  /** The key of its value; unique in the plan. */
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  /** Its value goes into the vault, and the configuration only refers to it. */
  readonly secret: boolean;
  /** Null: text, or a boolean option (`true`). */
  readonly format: InputFormat | null;
  readonly default: string | null;
  readonly placeholder: string | null;
  /** Empty: any value. */
  readonly choices: readonly string[];
  readonly isRepeated: boolean;
  /** Where it is used, in words: `variable API_KEY`, `argument --unit`, `header Authorization`, `url`. */
  readonly goesTo: readonly string[];
  readonly targets: readonly InputTarget[];
  /** The name under which the vault can hold it, so that it may also be given later; null if it must be given now. */
  readonly credential: string | null;
}

const PLAN_WARNING_CODES = [
  'deprecated',
  'version_from_entry',
  'no_integrity',
  'runtime_hint_ignored',
  'argument_moved',
  'argument_ignored',
  'variable_ignored',
  'header_ignored',
] as const;

/** What a person should know before installing. */
export interface PlanWarning {
  readonly code: DangerCode | (typeof PLAN_WARNING_CODES)[number];
  readonly message: string;
}

/** One of an entry's packages or remotes, by its index in the entry. */
export interface InstallChoice {
  readonly kind: 'package' | 'remote';
  readonly index: number;
}

/** How an entry is installed, before inputs are given. */
export interface InstallationPlan {
  readonly registryId: string;
  readonly choice: InstallChoice;
  /** `npm`, `pypi`, `oci`, `nuget`, or `remote`. */
  readonly ecosystem: string;
  readonly mode: McpMode;
  /** The release that is started; for a remote server the entry's version. */
  readonly version: string | null;
  readonly command: readonly PlanArgument[];
  readonly env: readonly PlanField[];
  readonly url: PlanUrl | null;
  readonly transport: McpTransport | null;
  readonly headers: readonly PlanField[];
  readonly inputs: readonly PlanInput[];
  readonly warnings: readonly PlanWarning[];
}

const NOT_INSTALLABLE_REASONS = [
  'nothing_to_install',
  'no_such_choice',
  'deleted',
  'unsupported_registry',
  'bundle_not_supported',
  'unsupported_transport',
  'foreign_registry',
  'bad_identifier',
  'unpinned_version',
  'runtime_not_allowed',
  'argument_not_allowed',
  'variable_not_allowed',
  'header_not_allowed',
  'bad_url',
  'insecure_url',
  'local_url',
  'secret_in_url',
  'too_many_inputs',
  'command_refused',
] as const;
type NotInstallableReason = (typeof NOT_INSTALLABLE_REASONS)[number];

/** Why an entry, or one of its packages, cannot be installed safely. */
export interface NotInstallable {
  readonly reason: NotInstallableReason;
  /** A sentence for a person: the problem, and what can be done. */
  readonly message: string;
}

/** The whole word, unchanged. */
export function word(text: string): PlanArgument {
  return { flag: text, isJoined: false, value: null, when: null };
}

/** An option and its value, as two words. */
export function option(flag: string, value: Template): PlanArgument {
  return { flag, isJoined: false, value, when: null };
}

/** The text of a template without inputs; null if it has any. */
export function fixedText(template: Template | null): string | null {
  if (template === null || template.some((piece) => piece.kind === 'input')) return null;
  return template.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('');
}
