import { refusal } from '../../shared/model/refusal.ts';
import { err } from '../../shared/model/result.ts';

/** Before the first policy. */
export const NONE_YET = err(
  refusal(
    'control_plane_unavailable',
    'No policy has arrived from the control plane yet. Check that it runs and that this machine can reach it.',
  ),
);
/** The control plane has not confirmed the policy for too long. */
export const EXPIRED = err(
  refusal(
    'snapshot_expired',
    'The policy is too old to use: the control plane has been unreachable for too long. Check that it runs and that this machine can reach it.',
  ),
);
/** While this sidecar is revoked. */
export const REVOKED = err(
  refusal(
    'control_plane_unavailable',
    'The control plane no longer knows this sidecar: it was revoked. Enrol it again and restart it.',
  ),
);
