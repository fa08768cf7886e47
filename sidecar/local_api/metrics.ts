import type { Metrics } from '../../machine/ports.ts';

interface Gauge {
  readonly name: string;
  readonly help: string;
  read(): number;
}

/** The most series of one counter; further label values share one series that says so. */
const MAX_SERIES = 500;
const OVERFLOW = '{overflow="true"}';

/** Counters, and gauges read on request, in Prometheus' text format. */
export class MetricsRegistry implements Metrics {
  readonly #counters = new Map<string, Map<string, number>>();
  readonly #help: ReadonlyMap<string, string>;
  readonly #gauges: Gauge[] = [];

  /** `help`: a sentence for each counter; those named here are shown at 0 from the start. */
  constructor(help: Readonly<Record<string, string>> = {}) {
    this.#help = new Map(Object.entries(help));
    for (const name of this.#help.keys()) this.#counters.set(name, new Map());
  }

  increment(name: string, labels?: Readonly<Record<string, string>>): void {
    const series = this.#seriesOf(name);
    const wanted = labels === undefined ? '' : labelText(labels);
    const key = series.has(wanted) || series.size < MAX_SERIES ? wanted : OVERFLOW;
    series.set(key, (series.get(key) ?? 0) + 1);
  }

  gauge(gauge: Gauge): void {
    this.#gauges.push(gauge);
  }

  /** The text of `/metrics`. */
  render(): string {
    const lines: string[] = [];
    for (const [name, series] of this.#counters) {
      const help = this.#help.get(name);
      if (help !== undefined) lines.push(`# HELP ${name} ${help}`);
      lines.push(`# TYPE ${name} counter`);
      if (series.size === 0) lines.push(`${name} 0`);
      for (const [labels, count] of series) lines.push(`${name}${labels} ${count}`);
    }
    for (const gauge of this.#gauges) {
      lines.push(`# HELP ${gauge.name} ${gauge.help}`, `# TYPE ${gauge.name} gauge`, `${gauge.name} ${gauge.read()}`);
    }
    return `${lines.join('\n')}\n`;
  }

  #seriesOf(name: string): Map<string, number> {
    const known = this.#counters.get(name);
    if (known !== undefined) return known;
    const series = new Map<string, number>();
    this.#counters.set(name, series);
    return series;
  }
}

function labelText(labels: Readonly<Record<string, string>>): string {
  let text = '';
  for (const name in labels) text += `${text === '' ? '' : ','}${name}="${escapeLabel(labels[name] ?? '')}"`;
  return text === '' ? '' : `{${text}}`;
}

function escapeLabel(value: string): string {
  if (!/["\\\n]/.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
