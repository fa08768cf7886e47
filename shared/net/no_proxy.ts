import { canonicalHost } from './host.ts';
import type { HostPattern } from './host_pattern.ts';
import { nameOfHost } from './host_port.ts';
import { isIpLiteral, isInNetwork } from './ip_literal.ts';

/** The hosts that are called without an upstream proxy: the entries of a `NO_PROXY` variable, as curl reads them. */
export interface NoProxy {
  readonly entries: readonly Entry[];
}

/** An entry that is not understood has no form and exempts nothing. */
interface Entry {
  readonly text: string;
  readonly form:
    | { readonly kind: 'every' }
    | { readonly kind: 'name'; readonly name: string; readonly port: number | null }
    | { readonly kind: 'network'; readonly network: string; readonly port: number | null }
    | null;
}

/** Reads entries that are separated by commas or spaces. */
export function parseNoProxy(text: string): NoProxy {
  const texts = text.split(/[\s,]+/).filter((entry) => entry !== '');
  return { entries: texts.map((entry) => ({ text: entry, form: formOf(entry.toLowerCase()) })) };
}

function formOf(text: string): Entry['form'] {
  if (text === '*') return { kind: 'every' };
  const [, bare = '', digits] = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(text) ?? [null, text];
  const port = digits === undefined ? null : Number(digits);
  const [address = '', length] = bare.split('/');
  if (length !== undefined) {
    return /^\d{1,3}$/.test(length) && isIpLiteral(address) ? { kind: 'network', network: bare, port } : null;
  }
  if (isIpLiteral(bare)) return { kind: 'network', network: bare, port };
  const name = canonicalHost(bare.replace(/^\*?\./, ''));
  return name.ok ? { kind: 'name', name: name.value, port } : null;
}

/** Whether a canonical host is called without the proxy on this port. A name covers every name below it too. */
export function isExempt({ entries }: NoProxy, host: string, port: number): boolean {
  return entries.some(({ form }) => {
    if (form === null) return false;
    if (form.kind === 'every') return true;
    if (form.port !== null && form.port !== port) return false;
    if (form.kind === 'network') return isIpLiteral(host) && isInNetwork(host, form.network);
    return host === form.name || host.endsWith(`.${form.name}`);
  });
}

/** What a command may inherit of its user's `NO_PROXY`. */
interface KeptNoProxy {
  readonly kept: readonly string[];
  /** Entries with which a client would send a request to a bound host past the sidecar, or that mean every host. */
  readonly dropped: readonly string[];
}

/**
 * Keeps the entries that cover no bound host in any client's reading. Clients differ: some match `ample.com` to
 * `example.com`, some ignore the port, so an entry is read as widely as any of them does. One that is not understood is dropped.
 */
export function withoutBoundHosts({ entries }: NoProxy, bound: readonly HostPattern[]): KeptNoProxy {
  const covers = ({ form }: Entry): boolean => {
    if (form === null || form.kind === 'every') return true;
    return bound.some((pattern) => mayCover(form, pattern));
  };
  return {
    kept: entries.filter((entry) => !covers(entry)).map(({ text }) => text),
    dropped: entries.filter(covers).map(({ text }) => text),
  };
}

function mayCover(form: Exclude<Entry['form'], null | { kind: 'every' }>, pattern: HostPattern): boolean {
  // Some clients ignore the port of an entry.
  const name = nameOfHost(pattern.kind === 'exact' ? pattern.host : pattern.suffix);
  if (form.kind === 'network') {
    return pattern.kind === 'exact' && isIpLiteral(name) && isInNetwork(name, form.network);
  }
  if (pattern.kind === 'exact') return name.endsWith(form.name);
  return name.endsWith(form.name) || `.${form.name}`.endsWith(name);
}
