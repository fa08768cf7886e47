import { describe, expect, test } from 'vitest';
import { formatGuide, type UpFacts } from './up_guide.ts';

const FACTS: UpFacts = {
  version: '4.0.0',
  controlUrl: 'http://127.0.0.1:7420',
  proxyUrl: 'http://127.0.0.1:7421',
  home: '/home/ada/.svc',
  command: './bin/svc',
  homeFlag: '',
  isFirst: true,
  inBackground: false,
  signIn: null,
};
const guide = (facts: Partial<UpFacts>): string => formatGuide({ ...FACTS, ...facts }, (_, text) => text);

describe('the guide of svc up', () => {
  test('shows how to seal a first credential until there is one', () => {
    const first = guide({ homeFlag: ' --home /srv/svc' });
    for (const command of ['claude', 'seal github']) {
      expect(first).toContain(`./bin/svc --home /srv/svc ${command}`);
    }
    expect(guide({ isFirst: false })).not.toContain('credential');
    expect(guide({ isFirst: false })).toContain('http://127.0.0.1:7420');
  });

  test('says how to stop it: Ctrl-C, or svc down if it runs in the background', () => {
    expect(guide({})).toMatch(/Ctrl-C stops it\.\n$/);
    const background = guide({ inBackground: true, homeFlag: ' --home /srv/svc' });
    expect(background).toContain('To seal a first credential:\n');
    expect(guide({})).toContain('To seal a first credential, in another terminal:\n');
    expect(background).toMatch(/"\.\/bin\/svc down --home \/srv\/svc" stops it\.\n$/);
  });
});
