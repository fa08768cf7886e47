import { describe, expect, test } from 'vitest';
import { parseUnsealed } from './unsealed.ts';

const GOOD = 'PGPASSWORD=vault://team/db,host=DB.example.com,reason=the client speaks no HTTP, and checks it';

describe('an unsealed credential', () => {
  test('has a variable, reference, host and reason; the reason may contain commas', () => {
    expect(parseUnsealed(GOOD)).toEqual({
      ok: true,
      value: {
        env: 'PGPASSWORD',
        reference: 'vault://team/db',
        host: 'db.example.com',
        reason: 'the client speaks no HTTP, and checks it',
      },
    });
  });

  test.each([
    ['without a reason', 'A=vault://x/y,host=h.example.com'],
    ['with an empty reason', 'A=vault://x/y,host=h.example.com,reason= '],
    ['with a reason of two lines', 'A=vault://x/y,host=h.example.com,reason=a\nb'],
    ['without a host', 'A=vault://x/y,reason=r'],
    ['with an invalid host', 'A=vault://x/y,host=a b,reason=r'],
    ['with a reserved path', 'A=vault://connectors/y,host=h.example.com,reason=r'],
    ['in a variable that loads code', 'LD_PRELOAD=vault://x/y,host=h.example.com,reason=r'],
    ['in a variable of svc', 'SVC_TOKEN=vault://x/y,host=h.example.com,reason=r'],
    ['in a variable of docker', 'DOCKER_HOST=vault://x/y,host=h.example.com,reason=r'],
  ])('is refused %s', (_what, text) => {
    expect(parseUnsealed(text).ok).toBe(false);
  });

  test('never shows the text in place of the reference: people paste the secret there', () => {
    for (const text of ['A=s3cr3t-value', 'A=s3cr3t-value,host=h.example.com,reason=r']) {
      const refused = parseUnsealed(text);
      expect(!refused.ok && refused.error).not.toContain('s3cr3t');
    }
  });
});
