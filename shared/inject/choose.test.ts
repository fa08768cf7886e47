import { describe, expect, it } from 'vitest';
import type { HostBinding } from '../model/host_binding.ts';
import { chooseBinding } from './choose.ts';
import { emitDecision } from './decide.ts';
import { sampleBinding, sampleRequest } from './sample_requests.ts';

const PLAIN: HostBinding = { ...sampleBinding({ scheme: 'bearer' }), id: 'bnd_plain' };

function account(name: string): HostBinding {
  const emit = { mechanism: 'sentinel-swap', sentinel: `svc_sentinel_${name}` } as const;
  return { ...sampleBinding({ scheme: 'bearer' }, emit), id: `bnd_${name}` };
}

function chosen(bindings: readonly HostBinding[], token: string | null): string {
  const lines = token === null ? [] : [`Authorization: Bearer ${token}`];
  const choice = chooseBinding(bindings, sampleRequest('/', lines));
  return choice === null ? 'none' : `${choice.binding.id} ${choice.presented}`;
}

describe('chooseBinding', () => {
  const all = [account('work'), PLAIN, account('home')];

  it('takes the account whose sentinel the request presents', () => {
    expect(chosen(all, 'svc_sentinel_home')).toBe('bnd_home sentinel');
    expect(chosen(all, 'svc_sentinel_work')).toBe('bnd_work sentinel');
  });

  it('takes the binding without a sentinel when none is presented', () => {
    expect(chosen(all, null)).toBe('bnd_plain absent');
    expect(chosen(all, 'mine')).toBe('bnd_plain foreign');
  });

  it('takes the only binding of a host', () => {
    expect(chosen([account('work')], null)).toBe('bnd_work absent');
    expect(chosen([account('work')], 'mine')).toBe('bnd_work foreign');
  });

  it('takes none when several accounts are possible and none is named', () => {
    expect(chosen([account('work'), account('home')], null)).toBe('none');
    expect(chosen([account('work'), account('home')], 'mine')).toBe('none');
    expect(chosen([], null)).toBe('none');
  });
});

describe('emitDecision', () => {
  it('writes over whatever there is under inject', () => {
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
