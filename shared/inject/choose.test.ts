import { describe, expect, it } from 'vitest';
import type { HostBinding } from '../model/host_binding.ts';
import { chooseBinding } from './choose.ts';
import { emitDecision } from './emit_decision.ts';
import { schemeBinding, sampleRequest } from './testing/sample_requests.ts';

const PLAIN: HostBinding = { ...schemeBinding({ scheme: 'bearer' }), id: 'bnd_plain' };

function account(name: string): HostBinding {
  const emit = { mechanism: 'sentinel-swap', sentinel: `svc_sentinel_${name}` } as const;
  return { ...schemeBinding({ scheme: 'bearer' }, emit), id: `bnd_${name}` };
}

function describeChoice(bindings: readonly HostBinding[], token: string | null): string {
  const lines = token === null ? [] : [`Authorization: Bearer ${token}`];
  const choice = chooseBinding(bindings, sampleRequest('/', lines));
  return choice === null ? 'none' : `${choice.binding.id} ${choice.presented}`;
}

describe('chooseBinding', () => {
  const all = [account('work'), PLAIN, account('home')];

  it('takes the account whose sentinel the request presents', () => {
    expect(describeChoice(all, 'svc_sentinel_home')).toBe('bnd_home sentinel');
    expect(describeChoice(all, 'svc_sentinel_work')).toBe('bnd_work sentinel');
  });

  it('takes the binding without a sentinel when none is presented', () => {
    expect(describeChoice(all, null)).toBe('bnd_plain absent');
    expect(describeChoice(all, 'mine')).toBe('bnd_plain foreign');
  });

  it('takes the only binding of a host', () => {
    expect(describeChoice([account('work')], null)).toBe('bnd_work absent');
    expect(describeChoice([account('work')], 'mine')).toBe('bnd_work foreign');
  });

  it('takes none if several accounts are possible and none is named', () => {
    expect(describeChoice([account('work'), account('home')], null)).toBe('none');
    expect(describeChoice([], null)).toBe('none');
  });

  it('takes the first one with a foreign credential in its place if several accounts are possible', () => {
    expect(describeChoice([account('work'), account('home')], 'mine')).toBe('bnd_work foreign');
  });
});

const basic = (password: string): string => `Authorization: Basic ${btoa(`me:${password}`)}`;

describe('chooseBinding: bindings of one host in different places', () => {
  const API: HostBinding = {
    ...schemeBinding({ scheme: 'header-template', header: 'PRIVATE-TOKEN', template: '{token}' }),
    id: 'bnd_api',
  };
  const GIT: HostBinding = {
    ...schemeBinding(
      { scheme: 'basic', username: 'oauth2' },
      { mechanism: 'sentinel-swap', sentinel: 'svc_sentinel_git' },
    ),
    id: 'bnd_git',
  };
  const MEDIA: HostBinding = {
    ...schemeBinding(
      { scheme: 'query-param', queryParam: 'media_token' },
      { mechanism: 'sentinel-swap', sentinel: 'svc_sentinel_media' },
    ),
    id: 'bnd_media',
  };

  /** The chosen binding and whether its credential is written, for any order of the bindings. */
  function decideInAnyOrder(lines: readonly string[], target = '/'): string[] {
    const orders = [
      [API, GIT, MEDIA],
      [MEDIA, GIT, API],
    ];
    const answers = orders.map((bindings) => {
      const choice = chooseBinding(bindings, sampleRequest(target, lines));
      return choice === null ? 'none' : `${choice.binding.id} ${emitDecision(choice.binding, choice.presented)}`;
    });
    return [...new Set(answers)];
  }

  it('adds no credential beside a foreign one in the place of another binding', () => {
    expect(decideInAnyOrder([basic('mine')])).toEqual(['bnd_git keep_foreign']);
    expect(decideInAnyOrder(['Authorization: Bearer mine'])).toEqual(['bnd_git keep_foreign']);
    expect(decideInAnyOrder([], '/?media_token=mine')).toEqual(['bnd_media keep_foreign']);
  });

  it('adds the one that needs no sentinel when every place is empty', () => {
    expect(decideInAnyOrder([])).toEqual(['bnd_api write']);
    expect(decideInAnyOrder(['X-Note: PRIVATE-TOKEN'], '/?note=svc_sentinel_media')).toEqual(['bnd_api write']);
  });

  it('overwrites what is in the place of the one without a sentinel, which injects', () => {
    expect(decideInAnyOrder(['Private-Token: mine'])).toEqual(['bnd_api write']);
    expect(decideInAnyOrder(['Private-Token: mine', basic('mine')])).toEqual(['bnd_api write']);
  });

  it("takes a sentinel as the client's choice, whatever is in other places", () => {
    expect(decideInAnyOrder([basic('svc_sentinel_git')])).toEqual(['bnd_git write']);
    expect(decideInAnyOrder([basic('svc_sentinel_git')], '/?media_token=mine')).toEqual(['bnd_git write']);
    expect(decideInAnyOrder([basic('svc_sentinel_git'), 'PRIVATE-TOKEN: mine'])).toEqual(['bnd_git write']);
  });
});

describe('emitDecision', () => {
  it("overwrites the client's value under inject", () => {
    for (const presented of ['absent', 'foreign'] as const) expect(emitDecision(PLAIN, presented)).toBe('write');
  });

  it('keeps a foreign credential under sentinel-swap', () => {
    expect(emitDecision(account('work'), 'foreign')).toBe('keep_foreign');
    expect(emitDecision(account('work'), 'sentinel')).toBe('write');
    expect(emitDecision(account('work'), 'absent')).toBe('write');
  });

  it('keeps a URL signed with a foreign key under both', () => {
    expect(emitDecision(PLAIN, 'foreign_presigned')).toBe('keep_foreign');
    expect(emitDecision(account('work'), 'foreign_presigned')).toBe('keep_foreign');
  });
});
