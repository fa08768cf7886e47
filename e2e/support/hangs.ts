/** What has not come or ended by then never will: nothing of a test takes so long, however busy the machine is. */
export const HANGS_MS = 1_200_000;
