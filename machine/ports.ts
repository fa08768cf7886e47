/** Counters for `/metrics`, with Prometheus names. */
export interface Metrics {
  increment(name: string, labels?: Readonly<Record<string, string>>): void;
}

/** The operational log. Fields never contain a secret, a header value or a query string. */
export interface Log {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
