import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import { enforceContract } from '../../shared/enforce/contract.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { compilePolicy, resolve } from '../../shared/resolve/resolve.ts';
import type { FuzzTarget } from './fuzz_engine.ts';

/** Patterns, one per line; those that begin with `e:` are the enterprise's. */
function bindingsOf(lines: readonly string[]): HostBinding[] {
  return lines
    .filter((line) => line.length > 2)
    .map((line, index) => {
      const isEnterprise = line.startsWith('e:');
      return {
        ...sampleBinding(),
        id: String(index),
        owner: isEnterprise ? 'enterprise' : 'personal',
        host: isEnterprise ? line.slice(2) : line,
      };
    });
}

/** The number of labels of the pattern that a host matches; 0 if it does not match, and more than any wildcard for an exact match. */
function rank(pattern: string, host: string): number {
  if (!pattern.startsWith('*')) return pattern === host ? Infinity : 0;
  const suffix = pattern.slice(1);
  return suffix.startsWith('.') && host.endsWith(suffix) && host.length > suffix.length ? suffix.length : 0;
}

/** Checks every binding: those of the best pattern and, among them, the personal ones if there are any. */
function slowBindings(bindings: readonly HostBinding[], host: string): readonly HostBinding[] {
  const best = Math.max(0, ...bindings.map((binding) => rank(binding.host, host)));
  const matching = bindings.filter((binding) => best > 0 && rank(binding.host, host) === best);
  const personal = matching.filter((binding) => binding.owner === 'personal');
  return personal.length > 0 ? personal : matching;
}

const policies: FuzzTarget = {
  name: 'policies',
  seeds: [
    'a.b.c.d\n*.d\n*.c.d\ne:*.b.c.d\n*.b.c.d\na.b.c.d\ne:a.b.c.d',
    'x.example.com\n*.example.com\ne:x.example.com\ne:*.com\nexample.com',
    'api.test\n*.api.test\ne:api.test\napi.test\napi.test',
  ],
  words: ['\n', 'e:', '*.', '.', 'a', 'b', 'c', '.d', 'a.b', '\n*.c.d', '\ne:*.c.d', '..', 'aa'],
  check(input) {
    const [host = '', ...lines] = input.split('\n');
    // A host never begins with a dot, and a wildcard always has one after it: both are refused when parsed.
    if (host === '' || host.startsWith('.') || host.startsWith('*')) return null;
    const bindings = bindingsOf(lines).filter(({ host: pattern }) => /^(\*\.[^*]+|[^*]+)$/.test(pattern));
    const resolution = resolve(compilePolicy(bindings), { method: 'GET', host, path: '/' });
    const fast = resolution.kind === 'binding' ? resolution.bindings.map(({ id }) => id) : [];
    const slow = slowBindings(bindings, host).map(({ id }) => id);
    return fast.join() === slow.join() ? null : `bindings ${fast.join()}, not ${slow.join()}`;
  },
};

const contracts: FuzzTarget = {
  name: 'contracts',
  seeds: [
    'GET|a.test|a.test,b.test|read|X-A,Y',
    'POST|a.test||write|',
    'GET|a.test||read|Upgrade',
    'HEAD|b.test|a.test|read|x-http-method-override',
    'POST|a.test||beside|',
    'DELETE|a.test||none|',
  ],
  words: [
    '|',
    ',',
    'GET',
    'get',
    'HEAD',
    'OPTIONS',
    'TRACE',
    'POST',
    'read',
    'write',
    'beside',
    'none',
    'a.test',
    'X-HTTP-Method',
    'X-Method-Override',
    'upgrade',
    'UPGRADE',
  ],
  check(input) {
    const [method = '', host = '', allowed = '', effect = '', headers = ''] = input.split('|');
    const allowedHosts = allowed === '' ? [] : allowed.split(',');
    const names = headers.split(',').map((name) => name.toLowerCase());
    const named =
      effect === 'none' || effect === 'beside' ? {} : ({ effect: effect === 'read' ? 'read' : 'write' } as const);
    const binding: HostBinding = { ...sampleBinding(), host, allowedHosts, ...named };
    const fields = names.map((name) => ({ name }));
    const found = enforceContract(binding, { host, method, fields, besideApprovals: effect !== 'none' });
    const overrides = ['upgrade', 'x-http-method-override', 'x-http-method', 'x-method-override'];
    const mayHost = allowed === '' || allowedHosts.some((one) => one === host);
    const mayDo =
      (effect !== 'read' && effect !== 'beside') ||
      (/^(GET|HEAD|OPTIONS)$/.test(method) && !names.some((name) => overrides.includes(name)));
    const due = !mayHost ? 'host_not_allowed' : !mayDo ? 'effect_not_allowed' : 'admitted';
    const said = found.ok ? 'admitted' : found.error.reason;
    return said === due ? null : `${said}, not ${due}`;
  },
};

export const DECISION_TARGETS: readonly FuzzTarget[] = [policies, contracts];
