/** The reply to `GET /v1/me` for the owner of the samples. */
export const ME = {
  id: 'usr_01m7yjbz4dz98vffmftfxp52e5',
  email: null,
  display_name: 'Owner',
  role: 'owner',
  enterprise_id: 'ent_01m7yjbz4dz98vffmftfxp52e5',
  policy_version: 42,
  created_at: '2026-01-01T00:00:00.000Z',
};
