import { describe, expect, test } from 'vitest';
import { headerField } from '../../shared/net/http/http1_head.ts';
import type { LiveSession, SessionDirectory } from '../ports.ts';
import { authenticate } from './authenticate.ts';

const session: LiveSession = {
  id: 'ses_1',
  ca: { secureContextFor: () => Promise.reject(new Error('not asked')) },
  openTunnel: () => null,
};
const opened: SessionDirectory = {
  authenticate: (id, token) => (id === 'ses_1' && token === 't:o:k' ? session : null),
};
const relay: SessionDirectory = { ...opened, findVouchedSession: () => session };

function basic(pair: string): string {
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

function reasonOf(values: readonly string[], directory = opened): string {
  const fields = values.map((value) => headerField('Proxy-Authorization', value));
  const result = authenticate(fields, directory);
  return result.ok ? result.value.id : result.error.reason;
}

describe('proxy authentication', () => {
  test('uses session id and token, and a token may contain colons', () => {
    expect(reasonOf([basic('ses_1:t:o:k')])).toBe('ses_1');
  });

  test.each([
    ['nothing', []],
    ['a wrong token', [basic('ses_1:wrong')]],
    ['another session', [basic('ses_2:t:o:k')]],
    ['no colon', [basic('ses_1')]],
    ['another scheme', ['Bearer t:o:k']],
    ['two headers', [basic('ses_1:t:o:k'), basic('ses_1:t:o:k')]],
    ['no base64', ['Basic ???']],
  ])('refuses %s', (_what, values) => {
    expect(reasonOf(values)).toBe('proxy_authentication_required');
  });
});

describe('on a listener that belongs to one session', () => {
  test('a client without credentials acts for that session', () => {
    expect(reasonOf([], relay)).toBe('ses_1');
  });

  test('a client with wrong credentials is still refused', () => {
    expect(reasonOf([basic('ses_2:x')], relay)).toBe('proxy_authentication_required');
    expect(reasonOf(['Basic ???'], relay)).toBe('proxy_authentication_required');
  });

  test('nobody acts for a session that has ended', () => {
    expect(reasonOf([], { ...opened, findVouchedSession: () => null })).toBe('proxy_authentication_required');
  });
});
