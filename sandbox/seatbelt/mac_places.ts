import type { SystemPlaces } from '../bubblewrap/plan_sandbox.ts';

/** macOS keeps `/etc`, `/tmp` and `/var` below `/private`, and links lead there. */
export const MAC_PLACES: SystemPlaces = {
  system: ['/usr', '/bin', '/sbin', '/System', '/Library', '/opt', '/Applications', '/nix/store', '/private/etc'],
  replaced: ['/dev', '/private/var/run', '/private/var/db', '/private/var/root', '/cores'],
  shared: ['/private/tmp', '/private/var/tmp', '/private/var/folders'],
  partlyPrivate: [
    { path: '/private/etc', levels: 16 },
    { path: '/opt', levels: 3 },
    { path: '/usr/local', levels: 3 },
  ],
  secrets: [
    '/Library/Keychains',
    '/Library/Application Support/com.apple.TCC',
    '/private/etc/master.passwd',
    '/private/etc/sudoers',
    '/private/etc/sudoers.d',
    '/private/etc/ssh',
    '/private/etc/krb5.keytab',
    '/private/etc/ppp',
  ],
};

/** Below the home, besides what every system has: keychains, and what browsers, mail and messages keep. */
export const MAC_HOME_SECRETS: readonly string[] = [
  'Library/Keychains',
  'Library/Cookies',
  'Library/Safari',
  'Library/Mail',
  'Library/Messages',
  'Library/Containers',
  'Library/Group Containers',
  'Library/LaunchAgents',
  'Library/Application Support',
  'Library/Preferences',
  '.orbstack',
  '.colima',
  '.lima',
];
