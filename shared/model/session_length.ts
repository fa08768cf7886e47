/** The longest time that a session may be given, in seconds: 30 days. */
export const MAX_SESSION_SECONDS = 30 * 24 * 3600;
