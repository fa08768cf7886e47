/** The result of one check. A `problem` makes `svc doctor` exit with 1. */
export interface Finding {
  readonly check: string;
  readonly level: 'ok' | 'warning' | 'problem';
  readonly text: string;
  readonly fix?: string;
}
