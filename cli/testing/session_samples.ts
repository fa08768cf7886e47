/** What the control plane and the sidecar answer to a command that opens a session. */

export const ME = {
  id: 'usr_01m7yjbx7ew79r4fq8xxezcbp1',
  enterprise_id: 'ent_01m7yjbx7e82g443zkn66jbwfz',
  email: null,
  display_name: 'Local owner',
  role: 'admin',
  policy_version: 7,
  created_at: '2026-01-01T00:00:00.000Z',
};

export const SESSION = {
  session_id: 'ses_1',
  token: 'svc_session_t',
  expires_at: '2026-01-02T00:00:00.000Z',
  proxy_url: 'http://ses_1:svc_session_t@127.0.0.1:7421',
  ca_pem_path: '/s/ca.pem',
  ca_bundle_path: '/s/bundle.pem',
  sentinels: [{ env: 'DEMO_TOKEN', value: 'placeholder' }],
};

/** A container's session, whose proxy listens inside of the container. */
export const CONTAINER_SESSION = {
  session_id: 'ses_1',
  token: 'planted-token',
  proxy_url: 'http://ses_1:planted-token@127.0.0.1:7421',
  ca_pem_path: '/s/ca.pem',
  listener: 'namespace',
  listener_port: 7421,
  sentinels: [],
};

/** A live session, as the sidecar lists it. */
export const LIVE_SESSION = {
  session_id: 'ses_1',
  name: 'work',
  state: 'live',
  created_at: '2026-01-01T11:00:00Z',
  expires_at: '2026-01-02T11:00:00Z',
  open_tunnels: 0,
};
