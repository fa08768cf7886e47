const LOOPBACK = /^(?:127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|::ffff:127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/;
const ADDRESS = /^[0-9A-Fa-f.:]{2,45}$/;

/**
 * The address that a call came from. Behind a proxy on this machine it is the last one that the proxy added; the client
 * itself may have sent the earlier ones.
 */
export function clientAddress(peer: string | null, forwardedFor: string | undefined): string | null {
  if (peer === null || !LOOPBACK.test(peer)) return peer;
  const last = forwardedFor?.split(',').at(-1)?.trim() ?? '';
  return ADDRESS.test(last) ? last : peer;
}
