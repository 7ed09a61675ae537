/** Time limit of a single wait, in milliseconds. The limit in .mocharc.json is longer, since its message names no wait. */
export const hangLimit = 300_000;
