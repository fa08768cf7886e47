const REFUSAL = /[.](?:rejected|trust_denied|denied|refused|failed|head_broken|mismatch_noticed)$/;

/** Whether an event deserves a warning at its receiver: something was refused, failed, or does not verify. */
export function isRefusalEvent(type: string): boolean {
  return REFUSAL.test(type);
}
