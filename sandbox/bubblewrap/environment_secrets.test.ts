import { expect, it } from 'vitest';
import { secretsNamedBy } from './environment_secrets.ts';

const ENV = {
  PATH: '/usr/bin',
  KUBECONFIG: '/srv/one:/srv/two:relative',
  AWS_SHARED_CREDENTIALS_FILE: '/srv/aws',
  CODEX_HOME: '/home/ada/shop/.codex',
  CLAUDE_CONFIG_DIR: '/srv/claude',
  XDG_CONFIG_HOME: '/srv/config',
  NETRC: '',
};
const paths = (agent: string | null) => secretsNamedBy(ENV, agent).map(({ path }) => path);

it('names what variables lead to', () => {
  expect(paths(null)).toEqual(
    expect.arrayContaining(['/srv/one', '/srv/two', '/srv/aws', '/home/ada/shop/.codex/auth.json', '/srv/config/gh']),
  );
  expect(paths(null)).not.toContain('relative');
});

it("leaves the agent's own login visible, and no other's", () => {
  expect(paths('codex')).not.toContain('/home/ada/shop/.codex/auth.json');
  expect(paths('codex')).toContain('/srv/claude/.credentials.json');
});
