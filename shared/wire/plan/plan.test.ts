import { describe, expect, test } from 'vitest';
import { planInput, toPlan } from './plan.ts';

const STEP = { id: 'fetch', command: ['curl', 'https://api.example.com/'] };
const TRUST = { effect: 'read', hosts: ['api.example.com'] };
const PLAN = { version: 1, name: 'nightly', image: 'agent-tools:1', steps: [STEP] };

/** Every problem, as `place: message`. */
function problems(plan: unknown): string[] {
  const parsed = planInput.safeParse(plan);
  return parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
}

const step = (fields: object): unknown => ({ ...PLAN, steps: [{ ...STEP, ...fields }] });
const trust = (fields: object): unknown => step({ trust: { ...TRUST, ...fields } });

/** Two steps that mount at the same place, the second one from `source`. */
function mounting(source: string): unknown {
  const target = '/srv/data';
  return [
    { ...STEP, mounts: [{ source: './data', target }] },
    { ...STEP, id: 'two', mounts: [{ source, target }] },
  ];
}

describe('a plan', () => {
  test("gets its defaults: no trust, 900 seconds, the last part of a path as an output's name", () => {
    const plan = toPlan(planInput.parse(step({ collect: [{ path: '/home/agent/report.json' }] })));
    expect(plan.steps).toEqual([
      {
        ...STEP,
        mounts: [],
        collect: [{ path: '/home/agent/report.json', as: 'report.json' }],
        timeoutSeconds: 900,
      },
    ]);
  });

  test('keeps hosts in canonical form: case, a trailing dot, the port 443', () => {
    const plan = toPlan(planInput.parse(trust({ hosts: ['API.Example.com:443', 'b.example.com.'] })));
    expect(plan.steps[0]?.trust?.hosts).toEqual(['api.example.com', 'b.example.com']);
  });

  test('keeps another port as part of the host', () => {
    const plan = toPlan(planInput.parse(trust({ hosts: ['API.Example.com.:8443'] })));
    expect(plan.steps[0]?.trust?.hosts).toEqual(['api.example.com:8443']);
  });

  test.each([
    ['an unknown field of the plan', { ...PLAN, setps: [] }, ': unknown field "setps": did you mean "steps"?'],
    [
      'an unknown field of a step',
      step({ timeout: 5 }),
      'steps.0: unknown field "timeout": did you mean "timeout_seconds"?',
    ],
    ['an unknown field of trust', trust({ host: 'x' }), 'steps.0.trust: unknown field "host": did you mean "hosts"?'],
    ['another version', { ...PLAN, version: 2 }, 'version: must be the number 1'],
    ['no steps', { ...PLAN, steps: [] }, 'steps: is empty'],
    ['an image that begins like an option', { ...PLAN, image: '--privileged' }, 'image: is not an image name'],
    ['a step id with a slash', step({ id: '../x' }), 'steps.0.id: may have only a-z'],
    ['a command as one text', step({ command: 'curl x' }), 'steps.0.command: is one text, and no shell splits it'],
    ['an empty command', step({ command: [] }), 'steps.0.command: is empty'],
    ['an empty program', step({ command: [''] }), 'steps.0.command: begins with an empty word'],
    ['a number in a command', step({ command: ['sleep', 5] }), 'steps.0.command.1: is a number'],
    ['a NUL in a command', step({ command: ['a\0b'] }), 'steps.0.command: contains a NUL'],
    ['an unknown effect', trust({ effect: 'reed' }), 'steps.0.trust.effect: is "reed", which is none of read,'],
    ['no hosts', trust({ hosts: [] }), 'leave trust out for a step without network'],
    ['a host pattern', trust({ hosts: ['*.example.com'] }), 'steps.0.trust.hosts.0: has a "*" in it'],
    ['no port', trust({ hosts: ['api.example.com:'] }), 'steps.0.trust.hosts.0: is followed by a port'],
    ['an IPv4 address', trust({ hosts: ['203.0.113.7'] }), 'steps.0.trust.hosts.0: is an IP address'],
    ['an address in hex', trust({ hosts: ['0x7f000001'] }), 'steps.0.trust.hosts.0: is an IP address'],
    ['an IPv6 address', trust({ hosts: ['[2001:db8::1]'] }), 'steps.0.trust.hosts.0: is an IP address'],
    ['a URL', trust({ hosts: ['https://api.example.com'] }), 'steps.0.trust.hosts.0: is a URL'],
    ['a look-alike host', trust({ hosts: ['аpi.example.com'] }), 'steps.0.trust.hosts.0:'],
    [
      'a host in two spellings',
      trust({ hosts: ['api.example.com', 'API.example.com:443'] }),
      'steps.0.trust.hosts.1: is api.example.com, which is already in the list',
    ],
    ['a credential in place of its reference', trust({ credential: 'ghp_x' }), 'must be a reference such as vault://'],
    ['no scopes', trust({ scopes: [] }), 'steps.0.trust.scopes: is empty'],
    ['a scope of nothing', trust({ scopes: ['vault://ci/github'] }), 'steps.0.trust.scopes: '],
    ['a scope of an unknown field', trust({ scopes: ['ci/github:branches=main'] }), '"branches"'],
    ['a field of a secret twice', trust({ scopes: ['ci/a:scopes=a', 'vault://ci/a:scopes=b'] }), 'twice'],
    ['a timeout of nothing', step({ timeout_seconds: 0 }), 'steps.0.timeout_seconds: is below 1'],
    ['half a second', step({ timeout_seconds: 0.5 }), 'steps.0.timeout_seconds: must be a whole number'],
    ['a relative output', step({ collect: [{ path: 'out' }] }), 'steps.0.collect.0.path: is not an absolute path'],
    ['an output above its folder', step({ collect: [{ path: '/out/../etc' }] }), 'has an empty, "." or ".." part'],
    [
      'an output named like a folder above',
      step({ collect: [{ path: '/out', as: '..' }] }),
      'collect.0.as: is not a plain file name',
    ],
    ['an output without a plain name', step({ collect: [{ path: '/out/.env' }] }), 'collect.0.as: is missing'],
    ['two outputs of one name', step({ collect: [{ path: '/a/x' }, { path: '/b/x' }] }), 'would overwrite output 1'],
    [
      'a mount over the helpers',
      step({ mounts: [{ source: './x', target: '/usr/local' }] }),
      'which belongs to the image',
    ],
    ['a mount with a colon', step({ mounts: [{ source: './x:y', target: '/srv/x' }] }), 'contains a ",", ":" or quote'],
    [
      'mounts within each other',
      step({
        mounts: [
          { source: './a', target: '/srv/a' },
          { source: './b', target: '/srv/a/b' },
        ],
      }),
      "is inside another mount's target",
    ],
  ])('refuses %s', (_what, plan, expected) => {
    expect(problems(plan).join('\n')).toContain(expected);
  });

  test('refuses an id that two steps have, even if one of them has another problem', () => {
    const steps = [STEP, { ...STEP, command: [] }];
    expect(problems({ ...PLAN, steps })).toContain(
      'steps.1.id: is "fetch", which step 1 already has: give each step its own id',
    );
  });

  test('accepts one mount for two steps, but not two sources at one place', () => {
    expect(problems({ ...PLAN, steps: mounting('./data') })).toEqual([]);
    expect(problems({ ...PLAN, steps: mounting('./other') })).toEqual([
      'steps.1.mounts.0.target: is where another source is mounted, and all steps share one container: choose another target',
    ]);
  });
});
