import type { Owner } from './host_binding.ts';

/**
 * Who chose a secret, the strongest first: a person for one run, the profile of an agent, or the confirmed `.svc.toml` of a
 * folder. For each host the first that names one of its secrets decides.
 */
export const CHOSEN_BY = ['option', 'profile', 'folder'] as const;
type ChosenBy = (typeof CHOSEN_BY)[number];

/** A secret that a session uses where a host is bound to several. */
export interface ChosenSecret {
  /** The vault path. It is looked for in the namespace of the bindings that apply to a host. */
  readonly path: string;
  readonly by: ChosenBy;
  /** The folder, or the name of the profile; null for an option. */
  readonly from: string | null;
}

/** What the choice means for a host pattern. It does not depend on later bindings. */
export interface HostDecision {
  /** A pattern of bindings when the session started. */
  readonly pattern: string;
  /** The owner of the bindings that applied, and so of the secrets. */
  readonly owner: Owner;
  /** In order: the first is used where a request presents no placeholder. Never empty. */
  readonly paths: readonly string[];
  readonly by: ChosenBy;
}

/** The choice of a session. It is made when the session starts, and never changes. */
export interface AccountChoice {
  /** In order, as they were named. */
  readonly secrets: readonly ChosenSecret[];
  readonly decisions: readonly HostDecision[];
  /** Patterns below a decided one that had bindings of their own, none of them with a chosen secret: the choice is not about them. */
  readonly exceptions: readonly string[];
}

/** The number of secrets that one session may choose. */
export const MAX_CHOSEN_SECRETS = 64;
