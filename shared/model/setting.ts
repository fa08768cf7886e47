/** The programs that read a setting. */
export type SettingReader = 'control' | 'sidecar' | 'cli';

/** One environment variable: its row in docs/reference/settings.md, and how its text is read. */
export interface Setting {
  readonly name: string;
  /** The flag that overrides it, or null if it is only read from the environment. */
  readonly flag: string | null;
  /** The default, for display. */
  readonly default: string;
  readonly meaning: string;
  readonly readBy: readonly SettingReader[];
}

/** An unusable value: the setting's name, and a sentence with the problem and the fix. */
export interface SettingProblem {
  readonly name: string;
  readonly message: string;
}
