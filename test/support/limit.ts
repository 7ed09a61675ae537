/** Milliseconds until a test's wait is given up. The limit in .mocharc.json is longer, as its message names no wait. */
export const hangLimit = 300_000;
