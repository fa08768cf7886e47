/**
 * Who chose a secret, the strongest first: a person for one run, the profile of an agent, or the confirmed `.svc.toml` of a
 * folder. For each host the first that names one of its secrets decides.
 */
export const CHOSEN_BY = ['option', 'profile', 'folder'] as const;
export type ChosenBy = (typeof CHOSEN_BY)[number];

/** A secret that a session uses where a host is bound to several. */
export interface ChosenSecret {
  /** The vault path. It is looked for in the namespace of the bindings that apply to a host. */
  readonly path: string;
  readonly by: ChosenBy;
  /** The folder, or the name of the profile; null for an option. */
  readonly from: string | null;
}

/** The choice of a session. It is made when the session starts, and never changes. */
export interface AccountChoice {
  /** In order: of several secrets for one host, the first is used where a request presents no placeholder. */
  readonly secrets: readonly ChosenSecret[];
  /** The patterns that had a binding with a chosen secret when the session started. Later, no other account is used there. */
  readonly hosts: readonly string[];
}

/** The number of secrets that one session may choose. */
export const MAX_CHOSEN_SECRETS = 64;
