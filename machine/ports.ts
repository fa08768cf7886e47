/** Counters for `/metrics`; names as Prometheus writes them. */
export interface Metrics {
  increment(name: string, labels?: Readonly<Record<string, string>>): void;
}

/** Where operational messages go. Fields never hold a secret, a header value or a query string. */
export interface Log {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
