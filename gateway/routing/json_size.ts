/** Whether a JSON value would take more than about `limit` characters; stops counting there. */
export function isLargerThan(value: unknown, limit: number): boolean {
  return measureRoom(value, limit) < 0;
}

function measureRoom(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length - 2;
  if (typeof value !== 'object' || value === null) return room - 5;
  let rest = room - 2;
  for (const [key, member] of Object.entries(value)) {
    rest = measureRoom(member, rest - (Array.isArray(value) ? 1 : key.length + 4));
    if (rest < 0) return rest;
  }
  return rest;
}
